"""A run begins, works and settles in the promised order, and leaves exactly what it should."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import AwsError, InputError, PolicyInvalid, RecordTooNew, RecordUnreadable
from stackhold.model import codec
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.exports import Export, ExportsIndex
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName
from stackhold.model.instant import Instant, Millis, Span
from stackhold.model.journal import JournalOperation
from stackhold.model.record import DropResource, SetStack, StateRecord
from stackhold.model.run import Intent, IntentKind, IntentState, Outcome, RunFile
from stackhold.ports.engine import WorkResult
from stackhold.runs.guard import FixedWait, RunSettings
from stackhold.runs.layout import Keys, exports_key
from stackhold.testing.engine import DONE, TYPE, ScriptedEngine, create, thing
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.engine import Run

FAILED = WorkResult(
    Outcome.FAILED,
    ExitCode.PARTLY,
    done=(JournalOperation(LogicalId("A"), "CREATE", TYPE, PhysicalId("a-1"), {}),),
    settled=False,
    error="B failed",
)


def creating(*names: str) -> ScriptedEngine:
    def script(run: Run) -> WorkResult:
        create(run, *names)
        return DONE

    return ScriptedEngine(script, names)


def failing(run: Run) -> WorkResult:
    create(run, "A")
    run.mark(LogicalId("B"), IntentState.DONE)
    return FAILED


def names_of(record: StateRecord | None) -> set[str]:
    return set() if record is None else {str(name) for name in record.resources}


def test_a_finished_run_leaves_its_record_and_its_log_and_nothing_else() -> None:
    scene = RunScene()
    report = scene.play(creating("A", "B"))
    assert (report.outcome, report.exit_code, report.changed) == (Outcome.SUCCEEDED, ExitCode.DONE, True)
    assert names_of(scene.record) == {"A", "B"}
    assert [entry.key for entry in scene.store.list("stackhold/")] == [KEYS.event(report.identity.run_id), KEYS.record]
    log = scene.log(report)
    assert log is not None
    assert (log.outcome, log.exit_code, log.generation) == (Outcome.SUCCEEDED, 0, report.generation)


def test_a_first_deploy_of_one_resource_costs_ten_calls() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.run.run(creating("A"))
    assert len(actor.store.calls) == 10


def test_settling_goes_record_then_log_then_run_file_then_lock() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.run.run(creating("A"))
    changes = [call.key.removeprefix(KEYS.root) for call in actor.store.calls if call.method != "read"]
    assert changes[-4:] == ["state.json", f"events/{actor.identity.run_id}.json", "run.json", "lock.json"]


def test_the_stamp_comes_before_the_engine_acts_and_names_this_run() -> None:
    scene = RunScene()
    seen: list[tuple[StateRecord | None, RunFile | None, str | None]] = []

    def script(_: Run) -> WorkResult:
        seen.append((scene.record, scene.run_file, scene.lock.id if scene.lock else None))
        return DONE

    report = scene.play(ScriptedEngine(script, ["A"]))
    [(record, run_file, lock_id)] = seen
    assert record is not None
    assert run_file is not None
    assert record.lock_id == run_file.lock_id == lock_id
    assert record.generation == run_file.generation == report.generation
    assert [intent.logical_id for intent in run_file.intents] == ["A"]


def test_generation_and_serial_only_rise() -> None:
    scene = RunScene()
    seen = []
    for _ in range(3):
        report = scene.play(creating("A"))
        assert scene.record is not None
        seen.append((report.generation or 0, scene.record.serial))
    assert seen == sorted(set(seen))


def test_lineage_is_made_once() -> None:
    scene = RunScene()
    lineages = set()
    for _ in range(2):
        scene.play(creating("A"))
        lineages.add(scene.record.lineage if scene.record else None)
    assert len(lineages) == 1
    assert None not in lineages


def test_nothing_to_do_writes_only_the_log() -> None:
    scene = RunScene()
    scene.play(creating("A"))
    before = scene.data(KEYS.record)
    report = scene.play(ScriptedEngine())
    assert report.is_empty
    assert report.exit_code is ExitCode.DONE
    assert not report.changed
    assert scene.data(KEYS.record) == before
    assert scene.lock is None


def test_nothing_to_do_is_only_said_of_the_record_as_it_is_under_the_lock() -> None:
    scene = RunScene()
    scene.play(creating("A"))
    actor = scene.actor()
    engine = ScriptedEngine()

    def change_once(_: StateRecord | None) -> None:
        if len(engine.planned) == 1:
            assert scene.record is not None
            scene.store.put(KEYS.record, codec.encode_record(replace(scene.record, serial=99)))

    engine.on_plan = change_once
    actor.run.run(engine)
    assert [record.serial if record else None for record in engine.planned][-1] == 99


def test_a_declined_plan_changes_nothing() -> None:
    scene = RunScene()
    report = scene.play(creating("A"), approve=lambda _: False)
    assert (report.outcome, report.exit_code, report.changed) == (Outcome.BLOCKED, ExitCode.FAILED, False)
    assert (scene.record, scene.run_file, scene.lock) == (None, None, None)


def test_a_failed_run_leaves_a_journal_and_the_next_that_settles_removes_it() -> None:
    scene = RunScene()
    report = scene.play(ScriptedEngine(failing, ["A", "B"]))
    assert (report.exit_code, report.error) == (ExitCode.PARTLY, "B failed")
    assert scene.journal is not None
    [segment] = scene.journal.segments
    assert (segment.reason, segment.is_initial_deploy, segment.operations) == ("failed", True, FAILED.done)
    scene.play(ScriptedEngine(failing, ["A", "B"]))
    assert scene.journal is not None
    assert [segment.is_initial_deploy for segment in scene.journal.segments] == [True, False]
    scene.play(creating("B"))
    assert scene.journal is None


def test_a_destroy_deletes_the_record_before_the_run_file_and_the_lock() -> None:
    scene = RunScene()
    scene.play(creating("A"))

    def script(run: Run) -> WorkResult:
        run.save([DropResource(LogicalId("A"))])
        run.mark(LogicalId("A"), IntentState.DONE)
        return WorkResult(Outcome.SUCCEEDED, ExitCode.DONE, record_gone=True)

    actor = scene.actor(operation="destroy")
    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert report.record is None
    assert scene.record is None
    deletes = [call.key for call in actor.store.calls if call.method == "delete"]
    assert deletes == [KEYS.record, KEYS.run_file, KEYS.lock]


def test_intents_that_are_not_done_stay_in_the_run_file() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A")
        run.mark(LogicalId("B"), IntentState.UNKNOWN)
        return FAILED

    scene.play(ScriptedEngine(script, ["A", "B"]))
    assert scene.run_file is not None
    assert [(intent.logical_id, intent.state) for intent in scene.run_file.intents] == [("B", IntentState.UNKNOWN)]


def leave_over(scene: RunScene) -> Intent:
    intent = Intent(LogicalId("Old"), TYPE, IntentKind.CREATE, RunId("run-0000"), name="old-1")
    left = RunFile(RunId("run-0000"), LockId("0" * 32), 3, "deploy", "gone@h:1", Instant(5), 7, (intent,))
    scene.store.put(KEYS.run_file, codec.encode_run_file(left))
    return intent


def test_what_an_earlier_run_left_unresolved_is_carried_on_and_named() -> None:
    scene = RunScene()
    leave_over(scene)
    actor = scene.actor()
    report = actor.run.run(creating("A"))
    assert report.exit_code is ExitCode.DONE
    assert "these may exist without being recorded: Old (old-1)" in report.warnings[0]
    assert scene.run_file is not None
    assert [(intent.logical_id, intent.run_id) for intent in scene.run_file.intents] == [("Old", "run-0000")]
    assert scene.run_file.intents[0].first_seen_at is not None


def test_with_a_leftover_the_stamp_comes_first_and_the_run_file_is_read_after_it() -> None:
    scene = RunScene()
    leave_over(scene)
    actor = scene.actor()
    actor.run.run(creating("A"))
    keys = [(call.method, call.key.removeprefix(KEYS.root)) for call in actor.store.calls]
    stamp = keys.index(("write", "state.json"))
    assert keys.index(("read", "run.json"), stamp) < keys.index(("write", "run.json"))


def test_a_refused_stamp_plans_again_from_what_is_there_now() -> None:
    scene = RunScene()
    engine = creating("A")

    def foreign_write_once(_: StateRecord | None) -> None:
        if len(engine.planned) == 1:
            foreign = StateRecord(KEYS.stack, KEYS.region, {LogicalId("Theirs"): thing("t-1")})
            scene.store.put(KEYS.record, codec.encode_record(foreign))

    engine.on_plan = foreign_write_once
    report = scene.play(engine)
    assert report.exit_code is ExitCode.DONE
    assert [names_of(record) for record in engine.planned] == [set(), {"Theirs"}]
    assert names_of(scene.record) == {"Theirs", "A"}
    assert scene.run_file is None


def test_a_stack_that_keeps_changing_is_left_alone() -> None:
    scene = RunScene()
    engine = creating("A")

    def foreign_write(_: StateRecord | None) -> None:
        foreign = StateRecord(KEYS.stack, KEYS.region, last_modified=Instant(len(engine.planned)))
        scene.store.put(KEYS.record, codec.encode_record(foreign))

    engine.on_plan = foreign_write
    report = scene.play(engine)
    assert (report.outcome, report.exit_code) == (Outcome.PLAN_CHANGED, ExitCode.FAILED)
    assert (names_of(scene.record), scene.run_file, scene.lock) == (set(), None, None)


def test_a_refused_stamp_without_the_lock_stands_down() -> None:
    scene = RunScene()
    engine = creating("A")

    def steal(_: StateRecord | None) -> None:
        assert scene.lock is not None
        scene.store.put(KEYS.lock, codec.encode_lock(replace(scene.lock, id=None, owner="li@laptop:9")))
        scene.store.put(KEYS.record, codec.encode_record(StateRecord(KEYS.stack, KEYS.region)))

    engine.on_plan = steal
    report = scene.play(engine)
    assert (report.outcome, report.exit_code) == (Outcome.LOCK_LOST, ExitCode.FAILED)
    assert "li@laptop:9" in report.error
    assert scene.lock is not None


def test_beside_a_record_of_another_tool_the_lock_is_read_once_more_after_the_stamp() -> None:
    scene = RunScene()
    scene.store.put(KEYS.record, codec.encode_record(StateRecord(KEYS.stack, KEYS.region)))
    actor = scene.actor()
    actor.run.run(creating("A"))
    calls = [(call.method, call.key.removeprefix(KEYS.root)) for call in actor.store.calls]
    assert ("read", "lock.json") in calls[calls.index(("write", "state.json")) :]


def test_an_engine_that_raises_leaves_record_and_intents_and_no_lock() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        create(run, "A")
        raise RuntimeError("our mistake")

    with pytest.raises(RuntimeError, match="our mistake"):
        scene.play(ScriptedEngine(script, ["A", "B"]))
    assert names_of(scene.record) == {"A"}
    assert scene.run_file is not None
    assert scene.lock is None


@pytest.mark.parametrize(
    "error",
    [InputError("bad template"), AwsError(service="s3", operation="ListBuckets", code="AccessDenied", reason="no")],
)
def test_a_plan_that_cannot_be_made_is_raised_and_the_lock_released(error: Exception) -> None:
    scene = RunScene()

    def refuse(_: StateRecord | None) -> None:
        raise error

    with pytest.raises(type(error)):
        scene.play(ScriptedEngine(creates=["A"], on_plan=refuse))
    assert (scene.record, scene.run_file, scene.lock) == (None, None, None)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b'{"version": 8, "reg', RecordUnreadable),
        (b'{"version": 9}', RecordTooNew),
        (codec.encode_record(StateRecord(StackName("Other"), Region("eu-west-1"))), RecordUnreadable),
    ],
)
@pytest.mark.parametrize("key", [KEYS.record])
def test_an_unreadable_record_stops_the_run_and_nothing_is_written(
    key: str, data: bytes, error: type[Exception]
) -> None:
    scene = RunScene()
    scene.store.put(key, data)
    with pytest.raises(error, match=r"state\.json"):
        scene.play(creating("A"))
    assert [entry.key for entry in scene.store.list("") if not entry.key.startswith(KEYS.events)] == [key]
    assert scene.data(key) == data


def test_the_last_ten_records_are_kept() -> None:
    scene = RunScene()
    for _ in range(13):
        scene.play(creating("A"))
        scene.clock.advance(1000)
    kept = [codec.decode_record(scene.data(entry.key) or b"", key="") for entry in scene.store.list(KEYS.backups)]
    assert len(kept) == 10
    assert scene.record is not None
    assert max(record.serial for record in kept) < scene.record.serial


def test_exports_change_only_the_entries_of_this_stack() -> None:
    scene = RunScene()
    key = exports_key(KEYS.prefix, KEYS.region)
    theirs = Export("x", StackName("Other"), KEYS.region, {"kept": 1})
    stale = Export("y", KEYS.stack, KEYS.region)
    scene.store.put(Keys(KEYS.prefix, theirs.producer_stack, KEYS.region).record, b"{}")
    scene.store.put(key, codec.encode_exports(ExportsIndex(KEYS.region, {"Theirs": theirs, "Gone": stale})))

    def script(run: Run) -> WorkResult:
        run.save([SetStack(outputs={"Url": "u"})])
        return replace(DONE, exports={"ShopUrl": "u", "Theirs": "never"})

    scene.play(ScriptedEngine(script, ["A"]))
    index = codec.decode_exports(scene.data(key) or b"", key=key)
    assert index.exports == {"Theirs": theirs, "ShopUrl": Export("u", KEYS.stack, KEYS.region)}


def test_exports_that_cannot_be_written_are_a_warning() -> None:
    scene = RunScene()
    key = exports_key(KEYS.prefix, KEYS.region)
    actor = scene.actor()
    actor.store.plan(lambda call: Fault.CONFLICT if (call.method, call.key) == ("write", key) else Fault.NONE)
    report = actor.run.run(ScriptedEngine(lambda _: replace(DONE, exports={"A": "1"}), ["A"]))
    assert report.exit_code is ExitCode.DONE
    assert "exports index was not updated" in report.warnings[0]


def test_a_long_run_is_seen_live_in_its_log() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(_: Run) -> WorkResult:
        scene.clock.advance(2_500)
        until(lambda: scene.log(actor) is not None)
        log = scene.log(actor)
        assert log is not None
        assert log.ended_at is None
        assert EventKind.PLANNED in [event.kind for event in log.events]
        return DONE

    actor.run.run(ScriptedEngine(script, ["A"]))
    log = scene.log(actor)
    assert log is not None
    assert log.ended_at is not None
    assert log.events[-1].kind is EventKind.RUN_FINISHED


@pytest.mark.parametrize(
    ("deadline", "wait", "words"),
    [
        (Span(Millis(5_000), "--deadline"), FixedWait(300_000), "from --deadline"),
        (Span(Millis(10_000)), FixedWait(10_000, "stackhold.toml"), "from stackhold.toml"),
        (Span(Millis(500)), FixedWait(0), "must be from 1 s to 86400 s"),
        (Span(Millis(3_600_000)), FixedWait(3_601_000), "must be from 0 s to 3600 s"),
    ],
)
def test_clocks_that_contradict_each_other_start_no_run(deadline: Span, wait: FixedWait, words: str) -> None:
    scene = RunScene(settings=RunSettings(deadline=deadline, lock_wait=wait))
    with pytest.raises(PolicyInvalid) as caught:
        scene.play(creating("A"))
    assert words in caught.value.message
    assert list(scene.store.list("")) == []


def test_a_destroy_never_waits_on_the_check_of_the_clocks() -> None:
    scene = RunScene(settings=RunSettings(deadline=Span(Millis(5_000)), lock_wait=FixedWait(300_000)))
    assert scene.play(creating("A"), operation="destroy").exit_code is ExitCode.DONE


def fault_on(method: str, key: str, *faults: Fault) -> Callable[[StoreCall], Fault]:
    left = list(faults)

    def plan(call: StoreCall) -> Fault:
        return left.pop(0) if left and (call.method, call.key) == (method, key) else Fault.NONE

    return plan


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_ANSWER, Fault.CONFLICT])
@pytest.mark.parametrize("key", [KEYS.record, KEYS.run_file, KEYS.lock])
@pytest.mark.parametrize("method", ["write", "delete"])
def test_one_unclear_answer_changes_nothing_about_the_end(method: str, key: str, fault: Fault) -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(fault_on(method, key, fault))
    report = actor.run.run(creating("A"))
    assert (report.exit_code, report.warnings) == (ExitCode.DONE, ())
    assert (names_of(scene.record), scene.run_file, scene.lock) == ({"A"}, None, None)


def test_a_stamp_that_the_store_denies_is_raised_and_the_lock_released() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(fault_on("write", KEYS.record, Fault.REFUSE))
    with pytest.raises(Exception, match="denies"):
        actor.run.run(creating("A"))
    assert (scene.record, scene.lock) == (None, None)
