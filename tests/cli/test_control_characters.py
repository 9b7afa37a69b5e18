"""What a stranger could write into a store is shown by every command, and acts on no terminal."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.typing_scene import Typed
from tests.runs.lock_scene import LOCK_ID, RUN, LockScene

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.cli.app import run
from stackhold.cli.surroundings import Surroundings
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LogicalId
from stackhold.ports.store import Stored

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "x\x1b[2J\x1b]0;t\x07\r\nstackhold: all is well\x9b31m"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class TerminalShell:
    """Types commands whose output is a terminal with colours."""

    cwd: Path

    def type(self, *arguments: str) -> Typed:
        out, err = _Terminal(), _Terminal()
        environ = {"TERM": "xterm", "AWS_REGION": "eu-west-1"}
        code = run(arguments, Surroundings(environ=environ, cwd=self.cwd, stdin=io.StringIO(), stdout=out, stderr=err))
        return Typed(code, out.getvalue(), err.getvalue())


@pytest.fixture
def shell(tmp_path: Path) -> TerminalShell:
    return TerminalShell(tmp_path)


@pytest.fixture
def scene(shell: TerminalShell) -> LockScene:
    clock = SystemClock()
    return LockScene(store=DirectoryStore(shell.cwd / ".stackhold", clock=clock), clock=clock)


def spoil(scene: LockScene, key: str, spoiled: dict[str, Any]) -> None:
    """Put other values into a stored object."""
    found = scene.store.read(key)
    assert isinstance(found, Stored)
    scene.put(key, json.dumps({**json.loads(found.data), **spoiled}).encode())


def harmless(typed: Typed) -> str:
    """What was said, in which nothing acts and no line is forged."""
    said = typed.out + typed.err
    assert "all is well" in said
    assert not any(line.startswith("stackhold: all is well") for line in said.splitlines())
    said = said.replace("\r\x1b[2K", "\n")  # the live view, drawn again
    for ours in ("[1m", "[2m", "[31m", "[32m", "[33m", "[36m", "[0m", "[?25l", "[?25h", "[1A", "[2K"):
        said = said.replace(f"\x1b{ours}", "")
    said = said.replace("\n\r", "\n")
    assert all(char == "\n" or char.isprintable() for char in said), repr(said)
    return said


@pytest.mark.parametrize("command", [["show"], ["resources"]])
def test_a_record_is_only_shown(shell: TerminalShell, scene: LockScene, command: list[str]) -> None:
    scene.record()
    resource = {"physicalId": EVIL, "resourceType": EVIL, "properties": {}, "attributes": {}}
    spoil(
        scene,
        scene.keys.record,
        {
            "resources": {EVIL: resource},
            "outputs": {EVIL: EVIL},
            "pendingDeletes": [{"logicalId": EVIL, "resource": resource, "reason": EVIL}],
        },
    )
    assert "\\x1b[2J" in harmless(shell.type("state", *command, "payments"))
    assert repr(EVIL)[1:-1] in repr(shell.type("state", *command, "payments", "--json").json())


def test_a_record_that_cannot_be_read_is_only_named(shell: TerminalShell, scene: LockScene) -> None:
    scene.record()
    spoil(scene, scene.keys.record, {"resources": {EVIL: 5}})
    harmless(shell.type("state", "show", "payments"))
    harmless(shell.type("destroy", "payments", "--yes"))


@pytest.mark.parametrize(
    "command",
    [
        ["state", "list", "--long"],
        ["state", "show", "payments"],
        ["cancel", "payments"],
        ["force-unlock", "payments", "--yes"],
        ["force-unlock", "payments"],
        ["destroy", "payments", "--yes"],
    ],
    ids=" ".join,
)
def test_a_lock_is_only_shown(shell: TerminalShell, scene: LockScene, command: list[str]) -> None:
    scene.record()
    scene.lock()
    spoil(scene, scene.keys.lock, {"owner": EVIL, "operation": EVIL})
    harmless(shell.type(*command))


def test_a_lock_of_another_tool_is_only_shown(shell: TerminalShell, scene: LockScene) -> None:
    scene.lock(owner=EVIL, lock_id=None)
    harmless(shell.type("cancel", "payments"))


@pytest.mark.parametrize("flags", [[], ["--run", RUN[:4]], ["--follow", "--run", RUN]], ids=" ".join)
def test_a_runs_log_is_only_shown(shell: TerminalShell, scene: LockScene, flags: list[str]) -> None:
    log = scene.log(lock_id=LOCK_ID)
    kinds = (EventKind.OPERATION_STARTED, EventKind.OPERATION_DONE, EventKind.OPERATION_FAILED, EventKind.WARNING)
    data = {"type": EVIL, "operation": EVIL, "durationMs": 800}
    told = tuple(Event(kind, log.started_at, LogicalId(EVIL), EVIL, data=data) for kind in kinds)
    scene.write_log(replace(log, events=told, ended_at=log.started_at, error=EVIL))
    spoil(
        scene,
        scene.keys.event(RUN),
        {"operation": EVIL, "engine": EVIL, "stackholdVersion": EVIL, "owner": EVIL, "lockWait": EVIL},
    )
    harmless(shell.type("events", "payments", *flags))


def test_a_template_and_a_file_of_parameters_are_only_named(shell: TerminalShell) -> None:
    (shell.cwd / "t.json").write_text(json.dumps({"Resources": {EVIL: {"Type": EVIL}}}))
    harmless(shell.type("diff", "t.json"))
    (shell.cwd / "t.json").write_text(json.dumps({"Resources": {"A": {"Type": "AWS::SQS::Queue"}}}))
    (shell.cwd / "p.json").write_text(json.dumps({EVIL: {}}))
    harmless(shell.type("diff", "t.json", "--parameters-file", "p.json"))
