"""A late writer never wins: lost locks, outages, foreign writes and paused holders."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stackhold.errors import StoodDown
from stackhold.model import codec
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LockId, LogicalId
from stackhold.model.instant import MINUTE, SECOND, Millis, Span
from stackhold.model.record import DropResource, SetResource, StateRecord
from stackhold.model.run import Outcome, StopCause
from stackhold.ports.engine import WorkResult
from stackhold.runs.guard import FixedWait, RunSettings
from stackhold.runs.lock import Renewed
from stackhold.testing.clock import FakeClock
from stackhold.testing.engine import DONE, ScriptedEngine, create, thing
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene, until

if TYPE_CHECKING:
    from stackhold.ports.engine import Run
    from stackhold.testing.run_scene import Actor

PARTLY = WorkResult(Outcome.FAILED, ExitCode.PARTLY, settled=False)


def force_unlock(scene: RunScene) -> None:
    scene.store.remove(KEYS.lock)


def steal(scene: RunScene) -> None:
    assert scene.lock is not None
    lock = replace(scene.lock, id=LockId("e" * 32), owner="li@laptop:9")
    scene.store.put(KEYS.lock, codec.encode_lock(lock))


def names(scene: RunScene) -> set[str]:
    return set() if scene.record is None else {str(name) for name in scene.record.resources}


def edit(scene: RunScene, **resources: str) -> None:
    """As a hand would, or a tool that does not know our fields."""
    assert scene.record is not None
    added = {LogicalId(name): thing(physical_id) for name, physical_id in resources.items()}
    record = replace(scene.record, resources={**scene.record.resources, **added})
    scene.store.put(KEYS.record, codec.encode_record(record))


def test_a_refused_renewal_stops_the_run_and_names_the_new_holder() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        steal(scene)
        scene.clock.advance(2 * MINUTE)
        until(run.stopping)
        stop = run.stopping()
        assert stop is not None
        assert stop.cause is StopCause.LOCK_LOST
        with pytest.raises(StoodDown):
            run.check_call()
        create(run, "B")
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A", "B"]))
    assert (report.outcome, report.exit_code, report.holder) == (Outcome.LOCK_LOST, ExitCode.FAILED, "li@laptop:9")
    assert "li@laptop:9 holds it now" in report.error
    # One more save, over our own last version; lock, run file and journal are not ours to touch.
    assert names(scene) == {"A", "B"}
    assert scene.lock is not None
    assert scene.lock.owner == "li@laptop:9"
    assert scene.run_file is not None
    assert scene.journal is None


def test_a_run_that_learns_of_its_lost_lock_while_it_begins_writes_no_run_file() -> None:
    scene = RunScene()
    left = scene.play(ScriptedEngine(lambda _: PARTLY, ["A"])).identity.run_id
    actor = scene.actor()

    def lose_it(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.record):
            force_unlock(scene)
            scene.clock.advance(2 * MINUTE)
            until(lambda: actor.reporter.of(EventKind.STOPPING))
        return Fault.NONE

    actor.store.plan(lose_it)
    report = actor.run.run(ScriptedEngine(lambda _: PARTLY, ["A"]))
    assert report.outcome is Outcome.LOCK_LOST
    assert scene.run_file is not None
    assert (scene.run_file.run_id, scene.lock) == (left, None)


def test_a_lock_that_is_gone_is_never_created_again() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        force_unlock(scene)
        scene.clock.advance(2 * MINUTE)
        until(run.stopping)
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A"]))
    assert report.outcome is Outcome.LOCK_LOST
    assert "nobody holds it now" in report.error
    assert scene.lock is None


def test_an_outage_of_the_store_stands_the_run_down_and_it_stays_down() -> None:
    scene = RunScene()
    actor = scene.actor()
    is_out = True

    def outage(call: StoreCall) -> Fault:
        return Fault.UNREACHABLE if is_out and call.key == KEYS.lock and call.expect is not None else Fault.NONE

    def script(run: Run) -> WorkResult:
        nonlocal is_out
        scene.clock.advance(25 * MINUTE - 1)
        assert run.stopping() is None
        run.check_call()
        scene.clock.advance(1)
        stop = run.stopping()
        assert stop is not None
        assert (stop.cause, stop.is_over) == (StopCause.STOOD_DOWN, False)
        with pytest.raises(StoodDown):
            run.check_call()
        is_out = False
        serial = scene.lock.serial if scene.lock else 0
        scene.clock.advance(30 * SECOND)
        until(lambda: scene.lock is not None and scene.lock.serial > serial)
        with pytest.raises(StoodDown):
            run.check_call()
        return PARTLY

    actor.store.plan(outage)
    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert (report.outcome, report.exit_code, report.cause) == (
        Outcome.LOCK_LOST,
        ExitCode.FAILED,
        StopCause.STOOD_DOWN,
    )
    assert scene.lock is None


def test_past_the_cut_what_is_in_flight_is_given_up() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(lambda call: Fault.UNREACHABLE if call.key == KEYS.lock and call.expect else Fault.NONE)

    def script(run: Run) -> WorkResult:
        scene.clock.advance(29 * MINUTE)
        stop = run.stopping()
        assert stop is not None
        assert stop.is_over
        return PARTLY

    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert report.outcome is Outcome.LOCK_LOST
    assert scene.lock is not None
    left = [warning for warning in report.warnings if "the lock was not released" in warning]
    assert left == [next(warning for warning in report.warnings if "it expires by itself" in warning)]


def test_a_short_outage_is_sat_out() -> None:
    scene = RunScene()
    actor = scene.actor()
    left = 4

    def outage(call: StoreCall) -> Fault:
        nonlocal left
        if call.method == "write" and call.key == KEYS.record and call.expect is not None and left:
            left -= 1
            return Fault.UNREACHABLE
        return Fault.NONE

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        return DONE

    actor.store.plan(outage)
    assert actor.run.run(ScriptedEngine(script, ["A"])).exit_code is ExitCode.DONE
    assert names(scene) == {"A"}


def test_a_foreign_write_under_our_lock_keeps_both_and_starts_nothing_new() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        edit(scene, Theirs="t-1")
        create(run, "B", confirmed=True)
        stop = run.stopping()
        assert stop is not None
        assert stop.cause is StopCause.FOREIGN_WRITE
        run.check_call()
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A", "B"]))
    assert report.exit_code is ExitCode.FAILED
    assert "changed by someone else" in report.error
    assert names(scene) == {"A", "B", "Theirs"}
    assert scene.lock is None


def test_a_foreign_write_that_changes_no_resource_stops_nothing() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        assert scene.record is not None
        scene.store.put(KEYS.record, codec.encode_record(replace(scene.record, extra={"note": "by hand"})))
        create(run, "B", confirmed=True)
        assert run.stopping() is None
        return DONE

    assert scene.play(ScriptedEngine(script, ["A", "B"])).exit_code is ExitCode.DONE
    assert scene.record is not None
    assert (names(scene), scene.record.extra) == ({"A", "B"}, {"note": "by hand"})


def test_a_resource_that_others_recorded_in_our_place_stays_and_ours_waits_for_its_deletion() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        edit(scene, A="t-1")
        create(run, "A", confirmed=True)
        run.save([SetResource(LogicalId("A"), thing("a-1", done=True))], confirmed=True)
        return PARTLY

    scene.play(ScriptedEngine(script, ["A"]))
    assert scene.record is not None
    assert {name: resource.physical_id for name, resource in scene.record.resources.items()} == {"A": "t-1"}
    assert [pending.resource for pending in scene.record.pending_deletes] == [thing("a-1", done=True)]


def test_a_destroy_does_not_delete_a_record_in_which_others_recorded_something_meanwhile() -> None:
    scene = RunScene()

    def first(run: Run) -> WorkResult:
        create(run, "A")
        return DONE

    scene.play(ScriptedEngine(first, ["A"]))

    def script(run: Run) -> WorkResult:
        edit(scene, Theirs="t-1")
        run.save([DropResource(LogicalId("A"))], confirmed=True)
        return WorkResult(Outcome.SUCCEEDED, ExitCode.DONE, record_gone=True)

    report = scene.play(ScriptedEngine(script, ["A"]), operation="destroy")
    assert report.exit_code is ExitCode.FAILED
    assert names(scene) == {"Theirs"}


def test_what_others_recorded_in_our_place_is_not_dropped_with_ours() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        edit(scene, A="t-1")
        create(run, "A", confirmed=True)
        run.save([DropResource(LogicalId("A"))], confirmed=True)
        return PARTLY

    scene.play(ScriptedEngine(script, ["A"]))
    assert scene.record is not None
    assert {name: resource.physical_id for name, resource in scene.record.resources.items()} == {"A": "t-1"}
    assert not scene.record.pending_deletes


def test_an_edit_that_keeps_our_serial_is_still_seen_as_foreign() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)

        def edit_after_the_lost_answer(call: StoreCall) -> Fault:
            if (call.method, call.key) == ("read", KEYS.record):
                actor.store.plan([])
                edit(scene, Theirs="t-1")
            return Fault.LOSE_ANSWER if (call.method, call.key) == ("write", KEYS.record) else Fault.NONE

        actor.store.plan(edit_after_the_lost_answer)
        create(run, "B", confirmed=True)
        assert run.stopping() is not None
        return PARTLY

    actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert names(scene) == {"A", "B", "Theirs"}


def test_a_record_that_is_gone_gets_only_what_is_not_saved_and_it_is_said() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        scene.store.remove(KEYS.record)
        create(run, "B", confirmed=True)
        stop = run.stopping()
        assert stop is not None
        assert stop.cause is StopCause.FOREIGN_WRITE
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A", "B"]))
    assert names(scene) == {"B"}
    assert any("was deleted by someone else" in warning for warning in report.warnings)
    assert report.unsaved == ("A a-1",)
    assert "in no record: A a-1" in report.warnings


def test_a_record_that_is_gone_with_the_lock_is_said_to_be_gone_with_what_it_held() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        for entry in list(scene.store.list(KEYS.root)):
            scene.store.remove(entry.key)
        create(run, "B")
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A", "B"]))
    assert report.outcome is Outcome.LOCK_LOST
    assert "nobody holds it now" in report.error
    assert report.unsaved == ("A a-1", "B b-1")
    said = "in no record, because the last save was refused (the lock was lost and the record is gone): A a-1, B b-1"
    assert said in report.warnings
    assert scene.record is None


def test_what_was_deleted_after_the_record_had_gone_is_not_said_to_exist() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", "B", confirmed=True)
        scene.store.remove(KEYS.record)
        run.save([DropResource(LogicalId("A"))], confirmed=True)
        return PARTLY

    assert scene.play(ScriptedEngine(script, ["A", "B"])).unsaved == ("B b-1",)


def test_a_record_that_became_unreadable_is_not_overwritten() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        scene.store.put(KEYS.record, b"{ mended by ha")
        with pytest.raises(StoodDown):
            create(run, "A", confirmed=True)
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A"]))
    assert scene.data(KEYS.record) == b"{ mended by ha"
    assert report.unsaved == ("A a-1",)
    assert any("A a-1" in warning for warning in report.warnings)


def test_after_a_force_unlock_the_new_record_survives_and_the_old_run_stops_at_its_next_save() -> None:
    scene = RunScene()
    old = scene.actor(owner="old@h:1")

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        force_unlock(scene)
        new = scene.actor(owner="new@h:2")

        def new_script(new_run: Run) -> WorkResult:
            create(new_run, "New", confirmed=True)
            with pytest.raises(StoodDown):
                create(run, "Late", confirmed=True)
            stop = run.stopping()
            assert stop is not None
            assert stop.cause is StopCause.LOCK_LOST
            return DONE

        assert new.run.run(ScriptedEngine(new_script, ["New"])).exit_code is ExitCode.DONE
        return PARTLY

    report = old.run.run(ScriptedEngine(script, ["A", "Late"]))
    assert (report.outcome, report.exit_code, report.holder) == (Outcome.LOCK_LOST, ExitCode.FAILED, "new@h:2")
    assert report.unsaved == ("Late late-1",)
    assert names(scene) == {"A", "New"}
    assert scene.lock is None
    log = scene.log(report)
    assert log is not None
    assert any("Late late-1" in warning for warning in log.warnings)


def test_a_paused_holder_overwrites_nothing_and_names_the_new_holder() -> None:
    scene = RunScene()
    sleeper = scene.actor(owner="sleeper@h:1")
    sent_and_paused = threading.Event()
    awake = threading.Event()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)

        def frozen(_: StoreCall) -> Fault:
            sent_and_paused.set()
            assert awake.wait(10)
            return Fault.NONE

        sleeper.store.plan(frozen)
        create(run, "Late")
        assert awake.wait(10)
        with pytest.raises(StoodDown):
            run.check_call()
        return PARTLY

    sleeper.start(ScriptedEngine(script, ["A", "Late"]))
    assert sent_and_paused.wait(10)
    scene.clock.advance(30 * MINUTE + 5 * SECOND)
    other = scene.actor(owner="other@h:2")

    def overtake(run: Run) -> WorkResult:
        create(run, "New", confirmed=True)
        awake.set()
        until(lambda: sleeper.report is not None or sleeper.error is not None)
        return DONE

    report = other.run.run(ScriptedEngine(overtake, ["New"]))
    assert report.exit_code is ExitCode.DONE
    late = sleeper.end()
    assert (late.outcome, late.exit_code, late.holder) == (Outcome.LOCK_LOST, ExitCode.FAILED, "other@h:2")
    assert names(scene) == {"A", "New"}
    assert scene.run_file is not None
    assert {intent.logical_id for intent in scene.run_file.intents} == {"A", "Late"}
    assert scene.lock is None


def test_saves_are_gathered_into_few_writes() -> None:
    scene = RunScene()
    actor = scene.actor()
    many = [f"R{number}" for number in range(200)]

    def script(run: Run) -> WorkResult:
        for name in many:
            create(run, name)
        return DONE

    actor.run.run(ScriptedEngine(script, many))
    assert names(scene) == set(many)
    writes = [call for call in actor.store.calls if (call.method, call.key) == ("write", KEYS.record)]
    assert len(writes) <= 5


def test_a_confirmed_save_is_in_the_store_when_it_returns() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        for name in ("A", "B", "C"):
            create(run, name, confirmed=True)
            assert name in names(scene)
        return DONE

    assert scene.play(ScriptedEngine(script, ["A", "B", "C"])).exit_code is ExitCode.DONE


FLAKY = st.sampled_from([Fault.NONE] * 4 + [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.CONFLICT, Fault.UNREACHABLE])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(faults=st.lists(FLAKY, max_size=60))
def test_whatever_answers_are_lost_no_saved_resource_disappears_and_no_lock_stays(faults: list[Fault]) -> None:
    scene = RunScene(clock=FakeClock(seed="flaky"))
    actor = scene.actor()
    saved: set[str] = set()
    left = list(faults)

    def flaky(call: StoreCall) -> Fault:
        fault = left.pop() if left else Fault.NONE
        is_resolvable = call.method in {"write", "delete"} or fault is Fault.NONE
        return fault if is_resolvable else Fault.NONE

    def script(run: Run) -> WorkResult:
        for name in ("A", "B", "C"):
            create(run, name, confirmed=True)
            saved.add(name)
        return DONE

    actor.store.plan(flaky)
    try:
        report = actor.run.run(ScriptedEngine(script, ["A", "B", "C"]))
    except Exception:
        assert saved == set()
    else:
        assert saved <= names(scene)
        if report.exit_code is ExitCode.DONE:
            assert names(scene) == {"A", "B", "C"}
        assert scene.lock is None or any("not released" in warning for warning in report.warnings)


def test_an_empty_foreign_record_does_not_hide_what_we_saved() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        scene.store.put(KEYS.record, codec.encode_record(StateRecord(KEYS.stack, KEYS.region)))
        create(run, "B", confirmed=True)
        return PARTLY

    report = scene.play(ScriptedEngine(script, ["A", "B"]))
    assert report.cause is StopCause.FOREIGN_WRITE
    assert scene.record is not None
    assert scene.record.serial > 1


def create_new(run: Run) -> WorkResult:
    create(run, "New")
    return DONE


def test_a_holder_that_wakes_after_its_successor_is_done_names_it() -> None:
    scene = RunScene()
    sleeper = scene.actor(owner="sleeper@h:1")

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        force_unlock(scene)
        other = scene.actor(owner="other@h:2")
        assert other.run.run(ScriptedEngine(create_new, ["New"])).exit_code is ExitCode.DONE
        create(run, "Late")
        return PARTLY

    report = sleeper.run.run(ScriptedEngine(script, ["A", "Late"]))
    assert (report.outcome, report.exit_code, report.holder) == (Outcome.LOCK_LOST, ExitCode.FAILED, "other@h:2")
    assert "other@h:2 ran since" in report.error
    assert names(scene) == {"A", "New"}


def test_after_the_loss_there_is_one_more_save_with_everything() -> None:
    scene = RunScene()
    actor = scene.actor()
    at_loss: list[int] = []

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        steal(scene)
        scene.clock.advance(2 * MINUTE)
        until(run.stopping)
        at_loss.append(len(actor.store.calls))
        for name in ("B", "C"):
            with pytest.raises(StoodDown):
                create(run, name, confirmed=True)
        return PARTLY

    actor.run.run(ScriptedEngine(script, ["A", "B", "C"]))
    later = [call for call in actor.store.calls[at_loss[0] :] if (call.method, call.key) == ("write", KEYS.record)]
    assert len(later) == 1
    assert names(scene) == {"A", "B", "C"}


def test_a_renewal_after_the_release_does_not_create_the_lock_again() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.run.run(ScriptedEngine(creates=["A"]))
    lock = actor.run._parts.lock
    assert lock.renew()[0] is Renewed.UNCLEAR
    assert scene.lock is None


@pytest.mark.parametrize("seed", range(12))
def test_runs_that_race_over_a_lossy_store_lose_nothing_that_was_saved(seed: int) -> None:
    """The clock jumps whenever anybody sleeps, far faster than heartbeats beat: locks go stale under live runs."""
    scene = RunScene(settings=RunSettings(lock_wait=FixedWait(40 * MINUTE), deadline=Span(Millis(86_400_000))))
    saved: set[str] = set()
    guard = threading.Lock()

    def play_part(number: int) -> Actor:
        actor = scene.actor(owner=f"run@h:{number}")
        dice = random.Random(seed * 100 + number)

        def lossy(call: StoreCall) -> Fault:
            faults = [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.CONFLICT, Fault.LAND_LATE]
            with guard:
                if dice.random() < 0.05:
                    scene.store.land()
                return (
                    dice.choice(faults) if call.method in {"write", "delete"} and dice.random() < 0.15 else Fault.NONE
                )

        def script(run: Run) -> WorkResult:
            for index in range(4):
                if run.stopping() is not None:
                    return PARTLY
                name = f"N{number}x{index}"
                create(run, name, confirmed=True)
                with guard:
                    saved.add(name)
                run.wait(dice.randrange(1, 8) * MINUTE)
            return DONE

        actor.store.plan(lossy)
        return actor.start(ScriptedEngine(script, ["X"]))

    actors = [play_part(number) for number in range(3)]
    for actor in actors:
        actor.join()
    scene.store.land()
    assert saved
    assert saved <= names(scene)
