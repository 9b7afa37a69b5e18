"""At its end a run deletes what late requests of the run before have made, and records what it cannot delete."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.engines.cloudformation.stage import THING, Stage, ThingHandler

from stackhold.engines.cloudformation.after import with_last_look
from stackhold.engines.cloudformation.findings import TWIN
from stackhold.engines.cloudformation.sweep import sweep
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, RunId
from stackhold.model.record import DropResource
from stackhold.model.run import Intended, Intent, IntentKind, Outcome
from stackhold.ports.engine import WorkResult

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.ports.engine import Run

A = LogicalId("A")
DONE = WorkResult(Outcome.SUCCEEDED, ExitCode.DONE, record_gone=True)


def late(name: str, *needs: str) -> Intent:
    intended = Intended(is_own_name=True, dependencies=tuple(LogicalId(need) for need in needs))
    return Intent(A, THING, IntentKind.CREATE, RunId("dead"), name=name, intended=intended)


@pytest.fixture
def stage() -> Stage:
    return Stage(handler=ThingHandler()).has(A={"Name": "mine"})


def land(stage: Stage, name: str) -> None:
    stage.cloud.call("fake", "CreateThing", {"Name": name, "Properties": {}})


def warnings(stage: Stage) -> list[str]:
    return [event.message for event in stage.run.events if event.kind is EventKind.WARNING]


def test_a_twin_goes_and_the_recorded_one_stays(stage: Stage) -> None:
    land(stage, "late")
    assert sweep(stage.bench(), [late("late"), late("mine")], stage.run.record)
    assert set(stage.cloud.things) == {"mine"}
    assert warnings(stage) == [f"deleted late: {TWIN}"]


def test_nothing_that_landed_is_nothing_to_say(stage: Stage) -> None:
    assert sweep(stage.bench(), [late("late")], stage.run.record)
    assert warnings(stage) == []


def test_a_twin_that_cannot_be_deleted_is_recorded_for_the_next_run(stage: Stage) -> None:
    land(stage, "late")
    stage.cloud.refuse("DeleteThing", "late")
    assert not sweep(stage.bench(), [late("late")], stage.run.record)
    [pending] = stage.run.record.pending_deletes
    assert pending.resource.physical_id == "late"
    assert pending.reason.startswith(TWIN)


def test_what_needs_a_resource_that_is_not_there_cannot_have_landed(stage: Stage) -> None:
    stage.cloud.log.clear()
    assert sweep(stage.bench(), [late("late", "Parent")], stage.run.record)
    assert stage.cloud.log == []


def test_a_stopped_run_leaves_the_look_to_the_next_one(stage: Stage) -> None:
    land(stage, "late")
    stage.run.stop()
    assert sweep(stage.bench(), [late("late")], stage.run.record)
    assert "late" in stage.cloud.things


def test_a_look_that_is_refused_is_a_warning(stage: Stage) -> None:
    stage.cloud.refuse("GetThing", "late", reason="throttled")
    assert sweep(stage.bench(), [late("late")], stage.run.record)
    assert "could not be looked for once more" in warnings(stage)[0]


def test_a_record_stays_as_long_as_it_says_what_is_still_to_be_deleted(stage: Stage) -> None:
    land(stage, "late")
    stage.cloud.refuse("DeleteThing", "late")
    bench = stage.bench()

    def bench_for(run: Run) -> Bench:
        return dataclasses.replace(bench, run=run)

    def work(bench: Bench) -> WorkResult:
        bench.save(DropResource(A))
        return DONE

    result = with_last_look(stage.run, stage.run.record, [late("late")], bench_for=bench_for, work=work)
    assert (result.record_gone, result.exit_code) == (False, ExitCode.PARTLY)
    assert stage.run.record.resources == {}
    assert len(stage.run.record.pending_deletes) == 1


def test_without_anything_lost_the_work_is_all(stage: Stage) -> None:
    bench = stage.bench()
    result = with_last_look(stage.run, stage.run.record, (), bench_for=lambda _: bench, work=lambda _: DONE)
    assert result is DONE
