"""A run that finds another's run file stamps, reads it, looks, saves, plans, and carries on what may still come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import AwsError, StoodDown
from stackhold.model import codec
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LockId, LogicalId, PhysicalId, RunId
from stackhold.model.instant import Instant, Millis
from stackhold.model.lock import Lock
from stackhold.model.record import DropResource, SetResource, StateRecord
from stackhold.model.run import Intended, Intent, IntentKind, Outcome, RunFile, StopCause
from stackhold.ports.engine import Recovery
from stackhold.runs.guard import RunSettings
from stackhold.testing.engine import DONE, TYPE, Looked, RecoveringScript, create, thing
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.engine import Looking, Run, WorkResult

OLD = LogicalId("Old")
DEAD = RunId("run-0000")
TTL = Millis(60_000)


def old_create(**more: object) -> Intent:
    fields = {"name": "old-1", "intended": Intended(), **more}
    return Intent(OLD, TYPE, IntentKind.CREATE, DEAD, **fields)  # type: ignore[arg-type]


def leave_over(scene: RunScene, *intents: Intent, record: StateRecord | None = None) -> None:
    """What a run leaves that was killed."""
    left = RunFile(
        DEAD, LockId("0" * 32), 3, "deploy", "gone@h:1", Instant(5), 7, intents, plan=({"logicalId": "Old"},)
    )
    scene.store.put(KEYS.run_file, codec.encode_run_file(left))
    if record is not None:
        scene.store.put(KEYS.record, codec.encode_record(record))


def recorded(**resources: str) -> StateRecord:
    found = {LogicalId(name): thing(physical_id) for name, physical_id in resources.items()}
    return StateRecord(KEYS.stack, KEYS.region, found, lock_id=LockId("0" * 32), serial=4, generation=3)


def creating(
    *names: str, on_look: Callable[[Looked, Looking], Recovery] = lambda looked, _: Recovery(seen=looked.left)
) -> RecoveringScript:
    def script(run: Run) -> WorkResult:
        create(run, *names)
        return DONE

    return RecoveringScript(script, names, on_look=on_look)


def finds(looked: Looked, _: Looking) -> Recovery:
    """Everything exists, under the name that it was sent with."""
    changes = tuple(SetResource(one.logical_id, thing(one.name or "")) for one in looked.left)
    return Recovery(changes=changes, seen=looked.left, taken_on=("Old (Test::Thing) as old-1",))


def finds_nothing(looked: Looked, _: Looking) -> Recovery:
    return Recovery(absent=tuple(f"{one.logical_id} (create {one.name})" for one in looked.left))


def test_what_was_found_is_recorded_before_the_plan_and_leaves_the_run_file() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    engine = creating("A", on_look=finds)
    report = scene.play(engine)
    assert report.exit_code is ExitCode.DONE
    [planned] = engine.planned
    assert planned is not None
    assert planned.resources.keys() == {"Old"}
    assert scene.record is not None
    assert scene.record.resources.keys() == {"Old", "A"}
    assert scene.run_file is None
    assert report.warnings == (
        "an earlier run did not settle (deploy of gone@h:1). taken on: Old (Test::Thing) as old-1",
    )


def test_the_order_is_stamp_read_look_save_plan_stamp_and_list() -> None:
    scene = RunScene()
    leave_over(scene, old_create(), record=recorded())
    order: list[str] = []
    actor = scene.actor()

    def note(call: StoreCall) -> Fault:
        if call.method != "list" and call.key in (KEYS.record, KEYS.run_file):
            order.append(f"{call.method} {call.key.removeprefix(KEYS.root)}")
        return Fault.NONE

    def look(looked: Looked, run: Looking) -> Recovery:
        order.append("look")
        return finds(looked, run)

    engine = creating("A", on_look=look)
    engine.on_plan = lambda _: order.append("plan")
    actor.store.plan(note)
    actor.run.run(engine)
    stamp = order.index("write state.json")
    before = order[stamp : order.index("plan")]
    assert before[:4] == ["write state.json", "read run.json", "look", "write state.json"]
    assert sorted(before[4:]) == ["read run.json", "read state.json"]
    after = order[order.index("plan") :]
    assert sorted(after[1:3]) == ["write run.json", "write state.json"]


def test_a_former_writer_can_save_nothing_once_the_run_file_is_read() -> None:
    scene = RunScene()
    before = recorded(Kept="k-1")
    leave_over(scene, old_create(), record=before)
    versions: list[tuple[LockId | None, int]] = []

    def look(looked: Looked, _: Looking) -> Recovery:
        assert scene.record is not None
        versions.append((scene.record.lock_id, scene.record.serial))
        return Recovery(seen=looked.left)

    report = scene.play(creating("A", on_look=look))
    [(lock_id, serial)] = versions
    assert lock_id != before.lock_id
    assert serial == before.serial + 1
    assert scene.record is not None
    assert report.generation == scene.record.generation


def test_both_stamps_of_a_run_have_one_generation() -> None:
    scene = RunScene()
    leave_over(scene, old_create(), record=recorded())
    seen: list[int | None] = []

    def look(looked: Looked, _: Looking) -> Recovery:
        seen.append(scene.record.generation if scene.record else None)
        return Recovery(seen=looked.left)

    report = scene.play(creating("A", on_look=look))
    assert seen == [report.generation]


def test_an_absent_create_found_with_a_free_lock_is_carried_on_for_one_ttl_even_by_runs_that_settle() -> None:
    scene = RunScene(settings=RunSettings(ttl_ms=TTL))
    leave_over(scene, old_create())
    report = scene.play(creating("A", on_look=finds_nothing))
    assert report.exit_code is ExitCode.DONE
    assert "not there: Old (create old-1)" in report.warnings[0]
    assert scene.run_file is not None
    [kept] = scene.run_file.intents
    assert (kept.run_id, kept.first_seen_at is not None) == (DEAD, True)

    scene.clock.advance(TTL - 1_000)
    engine = creating("A", on_look=finds_nothing)
    report = scene.play(engine)
    assert len(engine.looked) == 1
    assert report.warnings == ()
    assert scene.run_file.intents == (kept,)

    scene.clock.advance(1_000)
    scene.play(creating("A", on_look=finds_nothing))
    assert scene.run_file is None


def test_a_create_that_lands_after_the_look_is_found_by_the_run_after() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    scene.play(creating("A", on_look=finds_nothing))
    scene.play(creating("A", on_look=finds))
    assert scene.record is not None
    assert OLD in scene.record.resources


def test_after_an_expiry_nothing_can_land_any_more() -> None:
    scene = RunScene()
    now = scene.clock.now()
    leave_over(scene, old_create())
    stale = Lock("gone@h:1", now, Instant(now + TTL), "deploy", id=LockId("0" * 32), ttl=TTL, serial=1)
    scene.store.put(KEYS.lock, codec.encode_lock(stale))
    scene.clock.advance(TTL + 5_000)
    engine = creating("A", on_look=finds_nothing)
    report = scene.play(engine)
    assert [looked.may_still_land for looked in engine.looked] == [False]
    assert "took over the lock of gone@h:1" in report.warnings[0]
    assert scene.run_file is None


def test_with_a_free_lock_the_look_is_told_that_a_request_may_still_land() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    engine = creating("A")
    scene.play(engine)
    assert [looked.may_still_land for looked in engine.looked] == [True]


def test_what_cannot_be_looked_for_stays_and_is_named_with_its_command_each_time() -> None:
    scene = RunScene(settings=RunSettings(ttl_ms=TTL))
    leave_over(scene, old_create())

    def cannot_tell(looked: Looked, _: Looking) -> Recovery:
        return Recovery(unknown=looked.left, advice=("Old (Test::Thing): no tags; look for it with: aws look",))

    for _ in range(2):
        report = scene.play(creating("A", on_look=cannot_tell))
        assert report.exit_code is ExitCode.DONE
        assert "look for it with: aws look" in report.warnings[-1]
        assert scene.run_file is not None
        assert [intent.logical_id for intent in scene.run_file.intents] == ["Old"]
        scene.clock.advance(2 * TTL)


def test_an_entry_that_this_run_sends_once_more_is_listed_once() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    listed: list[tuple[Intent, ...]] = []

    def script(run: Run) -> WorkResult:
        assert scene.run_file is not None
        listed.append(scene.run_file.intents)
        create(run, "Old")
        return DONE

    engine = RecoveringScript(script, ["Old"], on_look=finds_nothing)
    again = old_create()

    def plan_again(_: StateRecord | None) -> None:
        engine.intents_instead = (again,)

    engine.on_plan = plan_again
    scene.play(engine)
    assert listed == [(again,)]
    assert scene.run_file is not None
    [kept] = scene.run_file.intents
    assert kept == replace(again, first_seen_at=kept.first_seen_at)
    assert kept.first_seen_at is not None


def test_what_was_meant_for_a_resource_that_this_run_deleted_is_done() -> None:
    scene = RunScene()
    delete = Intent(OLD, TYPE, IntentKind.DELETE, DEAD, physical_id=PhysicalId("old-1"))
    leave_over(scene, delete, record=recorded(Old="old-1"))

    def script(run: Run) -> WorkResult:
        run.save([DropResource(OLD)])
        create(run, "A")
        return DONE

    scene.play(RecoveringScript(script, ["A"], on_look=lambda looked, run: Recovery()))
    assert scene.run_file is None


def test_a_delete_that_may_still_be_carried_out_is_carried_on_while_its_resource_is_recorded() -> None:
    scene = RunScene()
    delete = Intent(OLD, TYPE, IntentKind.DELETE, DEAD, physical_id=PhysicalId("old-1"))
    leave_over(scene, delete, record=recorded(Old="old-1"))
    scene.play(creating("A", on_look=lambda looked, run: Recovery()))
    assert scene.run_file is not None
    assert [intent.kind for intent in scene.run_file.intents] == [IntentKind.DELETE]


def test_nothing_to_do_after_a_look_still_settles_the_run_file() -> None:
    scene = RunScene()
    leave_over(scene, old_create(), record=recorded())
    report = scene.play(RecoveringScript(on_look=finds))
    assert report.is_empty
    assert scene.record is not None
    assert OLD in scene.record.resources
    assert scene.run_file is None
    assert scene.lock is None


def test_a_declined_plan_keeps_what_was_found_and_what_is_still_open() -> None:
    scene = RunScene()
    lost = Intent(LogicalId("Lost"), TYPE, IntentKind.CREATE, DEAD, name="lost-1", intended=Intended())
    leave_over(scene, old_create(), lost)

    def finds_one(looked: Looked, _: Looking) -> Recovery:
        return Recovery(changes=(SetResource(OLD, thing("old-1")),), seen=looked.left[:1])

    report = scene.play(creating("A", on_look=finds_one), approve=lambda _: False)
    assert report.outcome is Outcome.BLOCKED
    assert scene.record is not None
    assert OLD in scene.record.resources
    assert scene.run_file is not None
    assert [intent.logical_id for intent in scene.run_file.intents] == ["Lost"]


def test_a_run_that_changes_nothing_leaves_no_record_of_its_own() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    report = scene.play(creating("A"), approve=lambda _: False)
    assert report.outcome is Outcome.BLOCKED
    assert (scene.record, scene.run_file, scene.lock) == (None, None, None)


def test_a_stop_while_looking_changes_nothing() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    before = scene.data(KEYS.run_file)
    actor = scene.actor()

    def stopped(_: Looked, run: Looking) -> Recovery:
        actor.stops.request(StopCause.SIGTERM)
        assert run.stopping() is not None
        raise StoodDown("stopped")

    report = actor.run.run(creating("A", on_look=stopped))
    assert report.outcome is Outcome.INTERRUPTED
    assert not report.changed
    assert scene.data(KEYS.run_file) == before
    assert (scene.record, scene.lock) == (None, None)


def test_a_look_that_fails_is_raised_and_leaves_everything_for_the_next_run() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    before = scene.data(KEYS.run_file)

    def refused(_: Looked, __: Looking) -> Recovery:
        raise AwsError(service="sts", operation="GetCallerIdentity", code="ExpiredToken", reason="expired")

    with pytest.raises(AwsError, match="expired"):
        scene.play(creating("A", on_look=refused))
    assert scene.data(KEYS.run_file) == before
    assert scene.lock is None
    assert scene.play(creating("A", on_look=finds)).exit_code is ExitCode.DONE


def test_a_refused_first_stamp_reads_and_looks_again() -> None:
    scene = RunScene()
    leave_over(scene, old_create(), record=recorded())
    actor = scene.actor()
    foreign = iter([True])

    def write_between(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.record) and next(foreign, False):
            scene.store.put(KEYS.record, codec.encode_record(recorded(Theirs="t-1")))
        return Fault.NONE

    actor.store.plan(write_between)
    engine = creating("A", on_look=finds)
    report = actor.run.run(engine)
    assert report.exit_code is ExitCode.DONE
    assert scene.record is not None
    assert scene.record.resources.keys() == {"Theirs", "Old", "A"}


def test_a_run_without_the_lock_looks_for_nothing() -> None:
    scene = RunScene()
    leave_over(scene, old_create(), record=recorded())
    actor = scene.actor()
    stolen = iter([True])

    def steal(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.record) and next(stolen, False):
            assert scene.lock is not None
            scene.store.put(KEYS.lock, codec.encode_lock(replace(scene.lock, id=None, owner="li@laptop:9")))
            scene.store.put(KEYS.record, codec.encode_record(recorded(Theirs="t-1")))
        return Fault.NONE

    actor.store.plan(steal)
    engine = creating("A", on_look=finds)
    report = actor.run.run(engine)
    assert report.outcome is Outcome.LOCK_LOST
    assert engine.looked == []


def test_what_was_found_is_not_looked_for_again_after_a_plan_that_was_refused() -> None:
    scene = RunScene()
    leave_over(scene, old_create())

    def plan_fails(_: StateRecord | None) -> None:
        raise AwsError(service="ec2", operation="DescribeVpcs", code="Denied", reason="no")

    engine = creating("A", on_look=finds)
    engine.on_plan = plan_fails
    with pytest.raises(AwsError):
        scene.play(engine)
    assert scene.record is not None
    assert OLD in scene.record.resources
    again = creating("A")
    scene.play(again)
    assert again.looked == []
    assert scene.run_file is None


def test_the_look_is_told_as_an_event() -> None:
    scene = RunScene()
    leave_over(scene, old_create())
    report = scene.play(creating("A", on_look=finds))
    log = scene.log(report)
    assert log is not None
    [event] = [event for event in log.events if event.kind is EventKind.RECOVERED]
    counts = {"takenOn": 1, "gone": 0, "absent": 0, "unknown": 0}
    assert event.data == {"runId": DEAD, **counts, "isWarning": True}
    assert event.message in report.warnings
    assert event.message not in [each.message for each in log.events if each.kind is EventKind.WARNING]


def test_a_takeover_that_meets_a_run_file_only_after_its_stamp_looks_before_it_acts() -> None:
    scene = RunScene()
    now = scene.clock.now()
    stale = Lock("gone@h:1", now, Instant(now + TTL), "deploy", id=LockId("0" * 32), ttl=TTL, serial=1)
    scene.store.put(KEYS.lock, codec.encode_lock(stale))
    scene.clock.advance(TTL + 5_000)
    actor = scene.actor()
    late = iter([True])

    def land_late(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.record) and next(late, False):
            leave_over(scene, old_create())
        return Fault.NONE

    actor.store.plan(land_late)
    engine = creating("A", on_look=finds)
    report = actor.run.run(engine)
    assert report.exit_code is ExitCode.DONE
    assert len(engine.looked) == 1
    assert scene.record is not None
    assert scene.record.resources.keys() == {"Old", "A"}
    assert scene.run_file is None
