"""The parts that tests on real runtimes stand on: each runtime, both providers, and the faults of the probe's cloud."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtimes import catalogue, modules, probe_server
from tests.runtimes.probe_server import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.runtimes


class Module:
    """A root module, a runtime and an environment; `tf` runs one command and holds it to an exit code."""

    def __init__(self, runtime: catalogue.Runtime, env: dict[str, str], folder: Path) -> None:
        self.runtime = runtime
        self.env = env
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def tf(self, *arguments: str, code: int = 0) -> str:
        done = self.runtime.run(*arguments, folder=self.folder, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "out").open("wb") as out:
            process = subprocess.Popen(
                [*self.runtime.command, *arguments],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "out").read_text().splitlines()]

    def resources(self) -> list[str]:
        return self.tf("state", "list").split()

    def change_summary(self, *arguments: str) -> dict[str, int]:
        events = [json.loads(line) for line in self.tf("apply", "-auto-approve", "-json", *arguments).splitlines()]
        counted: dict[str, int] = [one["changes"] for one in events if one["type"] == "change_summary"][-1]
        return {what: counted[what] for what in ("add", "change", "remove")}


@pytest.fixture
def module(runtime: catalogue.Runtime, runtime_env: dict[str, str], tmp_path: Path) -> Iterator[Module]:
    made = Module(runtime, runtime_env, tmp_path / "module")
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def chain(module: Module) -> Module:
    modules.write(module.folder, modules.CHAIN)
    module.tf("init")
    return module


@pytest.fixture
def thing(module: Module) -> Module:
    modules.write(module.folder, modules.THING)
    module.tf("init")
    return module


def test_a_module_lives_from_apply_to_destroy_and_each_thing_is_made_once(
    chain: Module, probe: probe_server.ProbeServer
) -> None:
    assert chain.change_summary() == {"add": 3, "change": 0, "remove": 0}
    assert chain.change_summary("-var", "value=two") == {"add": 0, "change": 1, "remove": 0}
    assert [(one.name, one.created_count) for one in probe.things()] == [("first", 1), ("second", 1)]
    assert [one.value for one in probe.things()] == ["two", probe.things()[0].id]
    assert probe.things()[0].secret == "s3cr3t-of-first"
    assert chain.tf("plan", "-detailed-exitcode", "-var", "value=two")
    chain.tf("destroy", "-auto-approve")
    assert probe.things() == []
    assert [probe.created(name) for name in ("first", "second")] == [1, 1]
    assert [probe.deleted(name) for name in ("first", "second")] == [1, 1]


def test_drift_shows_and_a_thing_that_is_gone_is_made_again(thing: Module, probe: probe_server.ProbeServer) -> None:
    thing.tf("apply", "-auto-approve")
    probe.change("only", value="by hand")
    thing.tf("plan", "-detailed-exitcode", code=2)
    probe.remove("only")
    assert thing.change_summary() == {"add": 1, "change": 0, "remove": 0}
    assert probe.created("only") == 2
    assert probe.deleted("only") == 0


def test_another_kind_replaces_the_thing(chain: Module, probe: probe_server.ProbeServer) -> None:
    chain.tf("apply", "-auto-approve")
    modules.write(chain.folder, modules.CHAIN.replace('"plain"', '"fancy"'))
    assert chain.change_summary() == {"add": 1, "change": 0, "remove": 1}
    assert (probe.created("first"), probe.created("second"), probe.deleted("second")) == (1, 2, 1)


def test_a_thing_is_imported_by_its_id(thing: Module, probe: probe_server.ProbeServer) -> None:
    made = probe.put("only", value="")
    thing.tf("import", "probe_thing.only", made.id)
    thing.tf("plan", "-detailed-exitcode")
    assert probe.created("only") == 1


def test_a_lost_answer_leaves_a_thing_that_the_state_does_not_know(
    thing: Module, probe: probe_server.ProbeServer
) -> None:
    probe.add(Fault("create", "only", times=1, lose=True))
    thing.tf("apply", "-auto-approve", code=1)
    assert (probe.names(), thing.resources()) == (["only"], [])
    thing.tf("apply", "-auto-approve")
    assert (probe.names(), probe.created("only")) == (["only", "only"], 2)


def test_a_refused_create_makes_nothing(thing: Module, probe: probe_server.ProbeServer) -> None:
    probe.add(Fault("create", "only", times=1, status=503))
    assert "503" in thing.runtime.run("apply", "-auto-approve", folder=thing.folder, env=thing.env).stderr
    assert probe.things() == []
    thing.tf("apply", "-auto-approve")
    assert probe.created("only") == 1


def test_an_interrupted_create_may_exist_without_the_state_knowing_it(
    thing: Module, probe: probe_server.ProbeServer
) -> None:
    probe.add(Fault("create", "only", times=1, hang=True))
    process = thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: bool(server.requests("create")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 1
    assert thing.resources() == []
    probe.release()
    probe.wait_until(lambda server: server.names() == ["only"])


def test_a_stubborn_provider_finishes_its_call_after_a_signal(thing: Module, probe: probe_server.ProbeServer) -> None:
    thing.env["PROBE_STUBBORN"] = "1"
    probe.add(Fault("create", "only", times=1, hang=True))
    process = thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: bool(server.requests("create")))
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    probe.release()
    process.wait(60)
    assert thing.resources() == ["probe_thing.only"]


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_a_frozen_provider_outlives_a_first_signal(thing: Module, probe: probe_server.ProbeServer, how: Any) -> None:
    probe.add(Fault("create", "only", times=1, freeze=how))
    process = thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: len(server.frozen()) == 1)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)
    assert probe.names() == ["only"]
    assert len(probe.providers()) == 1
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    probe.wait_until(lambda server: not server.providers())


def test_a_slow_data_source_holds_up_a_plan(module: Module, probe: probe_server.ProbeServer) -> None:
    modules.write(module.folder, modules.PROVIDERS + 'data "probe_count" "one" {\n  name = "one"\n}\n')
    module.tf("init")
    probe.add(Fault("count", "one", hang=True))
    process = module.start("plan", "-json")
    probe.wait_until(lambda server: bool(server.requests("count")))
    assert process.poll() is None
    probe.release()
    assert process.wait(60) == 0
