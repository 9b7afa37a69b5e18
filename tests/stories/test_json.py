"""What programs rely on: one JSON document on standard output, however a command ends, and nothing else there."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.scene import STACKHOLD, Result
from tests.stories.slow_chain import STACK, chain_in

from stackhold.testing.proxy import Answer, Rule

if TYPE_CHECKING:
    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

TEMPLATE = "Resources:\n  Name: {Type: 'AWS::SSM::Parameter', Properties: {Type: String, Value: x}}\n"
ESCAPE = "\x1b["


def document(scene: Scene, *args: str, code: int = 0) -> dict[str, Any]:
    """The one document of a command."""
    result = scene.run(*args, "--json", expect=code)
    found = json.loads(result.out)
    assert isinstance(found, dict)
    assert result.out.endswith("}\n")
    assert ESCAPE not in result.out + result.err
    if code:
        assert isinstance(found["error"], dict)
        assert found["error"]["message"]
        assert found["exitCode"] == code
        assert "stackhold: " in result.err
    return found


def test_every_command_that_goes_well_gives_one_document(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    assert document(scene, "diff", "t.yaml")["counts"] == {"create": 1}
    assert document(scene, "deploy", "t.yaml")["outcome"] == "succeeded"
    assert document(scene, "deploy", "t.yaml")["isEmpty"] is True
    assert document(scene, "drift", "t")["isDrifted"] is False
    assert document(scene, "state", "list")["stacks"][0]["stack"] == "t"
    assert document(scene, "state", "list", "--long")["stacks"][0]["lock"] is None
    assert document(scene, "state", "show", "t").keys() == {"state", "lock", "children"}
    assert document(scene, "state", "resources", "t")["resources"][0]["logicalId"] == "Name"
    assert document(scene, "state", "info")["setBy"] == "STACKHOLD_STATE"
    runs = document(scene, "events", "t")["runs"]
    assert [run["outcome"] for run in runs] == ["succeeded", "succeeded"]
    assert document(scene, "events", "t", "--run", runs[0]["runId"])
    assert document(scene, "force-unlock", "t")["result"] == "absent"
    assert document(scene, "destroy", "t", "--yes")["counts"] == {"delete": 1}
    assert document(scene, "bootstrap", "--state", "s3://the-state")["created"] is True


@pytest.mark.parametrize(
    "command",
    [
        "deploy none.yaml",
        "diff none.yaml",
        "destroy nobody --yes",
        "drift nobody",
        "cancel nobody",
        "events nobody --run 2026",
        "events nobody --follow",
        "state show nobody",
        "state resources nobody",
        "state list --state s3://nobody-made-this",
        "state info --state s3://nobody-made-this",
        "force-unlock nobody --state s3://nobody-made-this",
        "bootstrap --state file:here",
    ],
)
def test_every_command_that_fails_gives_one_document(scene: Scene, command: str) -> None:
    assert document(scene, *command.split(), code=1)["error"]["kind"] != "Bug"


@pytest.mark.parametrize("command", ["deploy", "nobody", "state nobody", "deploy t.yaml --deadline soon", "cancel"])
def test_a_usage_error_is_a_document_too(scene: Scene, command: str) -> None:
    assert document(scene, *command.split(), code=64)["error"]["kind"] == "UsageError"


def test_a_run_that_fails_or_is_refused_gives_one_document(scene: Scene) -> None:
    with chain_in(scene) as chain:
        denied = chain.proxy.add(
            Rule(service="ssm", operation="PutParameter", answer=Answer(400, "AccessDenied", "no"))
        )
        failed = chain.deploy("--json").finish()
        found = json.loads(failed.out)
        assert (failed.code, found["exitCode"], found["outcome"]) == (1, 1, "failed")
        assert "AccessDenied" in found["error"]["message"]
        assert found["failures"][0]["logicalId"] == "First"
        chain.proxy.remove(denied)

        held = chain.hold()
        running = chain.deploy()
        held.wait_reached()
        locked = document(scene, "deploy", "chain.yaml", "--lock-timeout", "0", code=1)
        assert locked["error"]["kind"] == "LockHeld"
        assert any("deploy" in line for line in locked["error"]["details"])
        assert "force-unlock" in locked["error"]["hint"]
        assert document(scene, "state", "show", STACK)["lock"]["operation"] == "deploy"
        assert document(scene, "force-unlock", STACK, code=1)["error"]["kind"] == "InputError"
        assert document(scene, "cancel", STACK)["asked"]
        held.release()
        running.finish()
        assert document(scene, "destroy", STACK, code=1)["error"]["hint"] == "Say it with --yes."


@pytest.mark.parametrize(
    "command",
    ["state show t", "state show t --json", "deploy t.yaml", "deploy t.yaml --json", "events t", "deploy --help"],
)
def test_a_reader_that_leaves_early_is_no_failure_that_is_shown(scene: Scene, command: str) -> None:
    scene.write("t.yaml", TEMPLATE)
    scene.run("deploy", "t.yaml")
    piped = shell(scene, f"{shlex.quote(STACKHOLD)} {command} | true")
    assert piped.out == ""
    assert "stackhold: " not in piped.err
    assert "Traceback" not in piped.err
    assert scene.lock("t") is None


def test_a_reader_that_leaves_during_a_run_does_not_stop_it(scene: Scene) -> None:
    with chain_in(scene) as chain:
        held = chain.hold()
        running = chain.deploy()
        held.wait_reached()
        assert running.process.stdout is not None
        running.process.stdout.close()
        held.release()
        assert running.process.wait(60) == 0
        assert chain.in_cloud() == chain.recorded() == {"First", "Second", "Third"}


def test_output_that_cannot_be_written_is_said_and_the_lock_is_released(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    full = shell(scene, f"{shlex.quote(STACKHOLD)} deploy t.yaml > /dev/full")
    assert full.code == 1
    assert full.err.startswith("stackhold: the output cannot be written: No space left on device")
    assert scene.lock("t") is None
    closed = shell(scene, f"{shlex.quote(STACKHOLD)} deploy t.yaml <&- >&- 2>&-")
    assert closed.code == 0
    assert scene.record("t")["resources"].keys() == {"Name"}


def test_no_color_and_pipes_are_plain_and_a_terminal_is_not(scene: Scene) -> None:
    scene.write("t.yaml", TEMPLATE)
    assert ESCAPE in on_terminal(scene, "diff", "t.yaml", no_color="")
    assert ESCAPE not in on_terminal(scene, "diff", "t.yaml", no_color="1")
    piped = scene.run("diff", "t.yaml", env={"NO_COLOR": ""})
    assert ESCAPE not in piped.out + piped.err


def on_terminal(scene: Scene, *args: str, no_color: str) -> str:
    """What a command writes to a terminal."""
    controller, terminal = pty.openpty()
    environment = {**scene.env(), "NO_COLOR": no_color, "TERM": "xterm"}
    with subprocess.Popen(
        [STACKHOLD, *args], env=environment, cwd=scene.folder, stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        told = b""
        try:
            while chunk := os.read(controller, 4096):
                told += chunk
        except OSError:
            pass  # the terminal's last user has gone
        assert process.wait(60) == 0
    os.close(controller)
    return told.decode()


def shell(scene: Scene, line: str) -> Result:
    """A line typed into a shell."""
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env=scene.env(),
        cwd=scene.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Result(done.returncode, done.stdout, done.stderr)
