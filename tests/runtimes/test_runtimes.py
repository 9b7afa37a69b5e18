"""The parts that tests on real runtimes stand on: each runtime, both providers, and the faults of the probe's cloud."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import Any

import pytest
from tests.runtimes import modules
from tests.runtimes.probe_server import Fault, ProbeServer

pytestmark = pytest.mark.runtimes


def test_a_module_lives_from_apply_to_destroy_and_each_thing_is_made_once(
    chain: modules.Module, probe: ProbeServer
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


def test_drift_shows_and_a_thing_that_is_gone_is_made_again(thing: modules.Module, probe: ProbeServer) -> None:
    thing.tf("apply", "-auto-approve")
    probe.change("only", value="by hand")
    thing.tf("plan", "-detailed-exitcode", code=2)
    probe.remove("only")
    assert thing.change_summary() == {"add": 1, "change": 0, "remove": 0}
    assert probe.created("only") == 2
    assert probe.deleted("only") == 0


def test_another_kind_replaces_the_thing(chain: modules.Module, probe: ProbeServer) -> None:
    chain.tf("apply", "-auto-approve")
    modules.write(chain.folder, modules.CHAIN.replace('"plain"', '"fancy"'))
    assert chain.change_summary() == {"add": 1, "change": 0, "remove": 1}
    assert (probe.created("first"), probe.created("second"), probe.deleted("second")) == (1, 2, 1)


def test_a_thing_is_imported_by_its_id(thing: modules.Module, probe: ProbeServer) -> None:
    made = probe.put("only", value="")
    thing.tf("import", "probe_thing.only", made.id)
    thing.tf("plan", "-detailed-exitcode")
    assert probe.created("only") == 1


def test_a_lost_answer_leaves_a_thing_that_the_state_does_not_know(thing: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "only", times=1, lose=True))
    thing.tf("apply", "-auto-approve", code=1)
    assert (probe.names(), thing.resources()) == (["only"], [])
    thing.tf("apply", "-auto-approve")
    assert (probe.names(), probe.created("only")) == (["only", "only"], 2)


def test_a_refused_create_makes_nothing(thing: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "only", times=1, status=503))
    assert "503" in thing.runtime.run("apply", "-auto-approve", folder=thing.folder, env=thing.env).stderr
    assert probe.things() == []
    thing.tf("apply", "-auto-approve")
    assert probe.created("only") == 1


def test_an_interrupted_create_may_exist_without_the_state_knowing_it(
    thing: modules.Module, probe: ProbeServer
) -> None:
    probe.add(Fault("create", "only", times=1, hang=True))
    process = thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: bool(server.requests("create")))
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 1
    assert thing.resources() == []
    probe.release()
    probe.wait_until(lambda server: server.names() == ["only"])


def test_a_stubborn_provider_finishes_its_call_after_a_signal(thing: modules.Module, probe: ProbeServer) -> None:
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
def test_a_frozen_provider_outlives_a_first_signal(thing: modules.Module, probe: ProbeServer, how: Any) -> None:
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


def test_a_slow_data_source_holds_up_a_plan(module: modules.Module, probe: ProbeServer) -> None:
    modules.write(module.folder, modules.PROVIDERS + 'data "probe_count" "one" {\n  name = "one"\n}\n')
    module.tf("init")
    probe.add(Fault("count", "one", hang=True))
    process = module.start("plan", "-json")
    probe.wait_until(lambda server: bool(server.requests("count")))
    assert process.poll() is None
    probe.release()
    assert process.wait(60) == 0
