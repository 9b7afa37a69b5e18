"""How a run stops in the middle of an apply: at a deadline, by a signal, by a request; at once by a second signal."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.runtimes.probe_server import Fault
from tests.terraform_faults.scenes import assert_free, assert_gone, begun, converged, recorded
from tests.terraform_faults.yard import STACKHOLD, wait_until

if TYPE_CHECKING:
    from tests.terraform_faults.yard import Plot

pytestmark = [pytest.mark.runtimes, pytest.mark.slow]

HANGS = Fault("create", "second", times=1, hang=True)
STUBBORN = {"PROBE_STUBBORN": "1"}


def test_a_deadline_in_the_middle_of_an_apply_keeps_what_was_made_and_frees_both_locks(plot: Plot) -> None:
    process = begun(plot, HANGS, "--deadline", "25s", "--lock-timeout", "5s", "--json")
    ended = plot.end(process)
    assert ended.code == 124, ended.told()
    document = json.loads(ended.out)
    assert document["outcome"] == "deadline-exceeded"
    assert document["plan"]["error"]["kind"] == "interrupted"
    assert document["plan"]["error"]["step"] == "apply"
    assert recorded(plot) == ["probe_thing.first"]
    assert_free(plot)
    converged(plot)
    assert plot.probe.created("first") == 1


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_first_signal_lets_the_call_in_flight_end(plot: Plot, signum: signal.Signals, code: int) -> None:
    process = begun(plot, HANGS, "--json", env=STUBBORN)
    process.send_signal(signum)
    wait_until(lambda: "Interrupt" in plot.said(process) or plot.probe.things(), "the signal")
    time.sleep(1.0)
    plot.probe.release()
    ended = plot.end(process)
    assert ended.code == code, ended.told()
    assert json.loads(ended.out)["outcome"] in ("interrupted", "succeeded")
    assert recorded(plot) == ["probe_thing.first", "probe_thing.second"]
    assert_free(plot)
    converged(plot)
    assert (plot.probe.created("first"), plot.probe.created("second")) == (1, 1)


def test_a_second_signal_ends_it_at_once_and_the_next_run_takes_it_up(plot: Plot) -> None:
    process = begun(plot, HANGS, env=STUBBORN)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended = plot.end(process)
    assert time.monotonic() - began < 5
    assert ended.code == 130, ended.told()
    assert_gone(plot)
    plot.probe.release()
    wait_until(lambda: plot.probe.names() == ["first", "second"], "what was in flight")
    plan = plot.run("plan")
    assert plan.code == 0, plan.told()
    for thing in plot.probe.things():
        named = thing.id in plan.said or f"probe_thing.{thing.name} may have been made" in plan.said
        assert thing.id in plot.ids() or named, plan.told()
    for thing in plot.probe.things():
        if thing.id not in plot.ids():
            plot.probe.remove_id(thing.id)
    converged(plot)
    assert_free(plot)


def test_a_run_that_is_asked_to_stop_stops_as_by_a_signal(own: Plot) -> None:
    process = begun(own, HANGS, "--stop-poll", "1s")
    asked = subprocess.run(
        [STACKHOLD, "cancel", "module", "--workspace", "default", "--wait"],
        env=dict(own.env),
        cwd=own.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert asked.returncode == 0, asked.stderr
    ended = own.end(process)
    assert ended.code == 143, ended.told()
    assert recorded(own) == ["probe_thing.first"]
    assert_free(own)
    converged(own)


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_a_frozen_provider_never_outlives_the_grace(plot: Plot, how: str) -> None:
    fault = Fault("create", "second", times=1, freeze="stop" if how == "stop" else "hang")
    process = begun(plot, fault, "--grace", "12s", "--lock-ttl", "40s")
    plot.probe.wait_until(lambda server: len(server.frozen()) == 1)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended = plot.end(process)
    assert ended.code == 143, ended.told()
    assert 8 < time.monotonic() - began < 13
    assert_gone(plot)
    assert not plot.stored("lock.json").exists()
    plan = plot.run("plan")
    assert plan.code == 0, plan.told()
    for thing in plot.probe.things():
        named = thing.id in plan.said or f"probe_thing.{thing.name} may have been made" in plan.said
        assert thing.id in plot.ids() or named, plan.told()
    assert_free(plot)


def test_two_runs_at_once_take_turns(own: Plot) -> None:
    first = begun(own, HANGS)
    second = own.start("apply", "--yes")
    wait_until(lambda: "waiting for the lock" in own.said(second), "the second run to wait")
    own.probe.release()
    assert [own.end(first).code, own.end(second).code] == [0, 0]
    assert (own.probe.created("first"), own.probe.created("second")) == (1, 1)
    assert_free(own)
