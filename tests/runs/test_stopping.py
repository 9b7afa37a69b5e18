"""How a run stops: every cause has its exit code, and leaves record, journal and lock as promised."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import StoodDown
from stackhold.model import codec
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LockId, LogicalId, PhysicalId
from stackhold.model.instant import SECOND, Millis, Span
from stackhold.model.journal import JournalOperation
from stackhold.model.run import IntentState, Outcome, StopCause, StopRequest
from stackhold.ports.engine import WorkResult
from stackhold.runs.control import Control
from stackhold.runs.guard import RunSettings
from stackhold.runs.stops import Stops
from stackhold.testing.engine import DONE, TYPE, ScriptedEngine, create
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene, until

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run
    from stackhold.testing.run_scene import Actor

A_DONE = JournalOperation(LogicalId("A"), "CREATE", TYPE, PhysicalId("a-1"), {})
STOPPED = WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=(A_DONE,), settled=False)


def stopped(run: Run) -> WorkResult:
    """As an engine stops: what was in flight ends, nothing new starts, the rest was never sent."""
    create(run, "A")
    run.mark(LogicalId("B"), IntentState.DONE)
    return STOPPED


def stop_by(actor: Actor, scene: RunScene, cause: StopCause) -> None:
    match cause:
        case StopCause.SIGINT:
            actor.stops.signal(signal.SIGINT)
        case StopCause.SIGTERM:
            actor.stops.signal(signal.SIGTERM)
        case StopCause.DEADLINE:
            scene.clock.advance(3600 * SECOND)
        case _:
            assert scene.lock is not None
            assert scene.lock.id is not None
            request = StopRequest(scene.lock.id, "li@laptop:9", scene.clock.now())
            scene.store.put(KEYS.stop_request, codec.encode_stop_request(request))
            scene.clock.advance(15 * SECOND)


@pytest.mark.parametrize(
    ("cause", "outcome", "exit_code", "reason"),
    [
        (StopCause.SIGINT, Outcome.INTERRUPTED, ExitCode.INTERRUPTED, "interrupted"),
        (StopCause.SIGTERM, Outcome.INTERRUPTED, ExitCode.TERMINATED, "interrupted"),
        (StopCause.CANCEL, Outcome.INTERRUPTED, ExitCode.TERMINATED, "interrupted"),
        (StopCause.DEADLINE, Outcome.DEADLINE_EXCEEDED, ExitCode.DEADLINE, "deadline"),
    ],
)
def test_a_first_stop_saves_writes_the_journal_and_releases(
    cause: StopCause, outcome: Outcome, exit_code: ExitCode, reason: str
) -> None:
    # A long ttl: the deadline of an hour passes in one step, faster than any heartbeat.
    scene = RunScene(settings=RunSettings(ttl_ms=4 * 3600 * SECOND))
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        stop_by(actor, scene, cause)
        until(run.stopping)
        stop = run.stopping()
        assert stop is not None
        assert (stop.cause, stop.is_over) == (cause, False)
        run.check_call()
        return stopped(run)

    report = actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert (report.outcome, report.exit_code, report.cause) == (outcome, exit_code, cause)
    assert scene.record is not None
    assert set(scene.record.resources) == {"A"}
    assert scene.journal is not None
    assert [segment.reason for segment in scene.journal.segments] == [reason]
    assert (scene.lock, scene.run_file) == (None, None)
    log = scene.log(report)
    assert log is not None
    assert (log.outcome, log.exit_code, log.cause) == (outcome, int(exit_code), cause.value)
    assert actor.reporter.of(EventKind.STOPPING)


def test_a_cancelled_run_removes_the_request_that_stopped_it() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        stop_by(actor, scene, StopCause.CANCEL)
        until(run.stopping)
        return stopped(run)

    actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert scene.data(KEYS.stop_request) is None


def test_a_stop_request_for_another_lock_is_not_heeded_and_not_removed() -> None:
    scene = RunScene()
    actor = scene.actor()
    request = StopRequest(LockId("0" * 32), "li@laptop:9", scene.clock.now())
    scene.store.put(KEYS.stop_request, codec.encode_stop_request(request))

    def script(run: Run) -> WorkResult:
        scene.clock.advance(15 * SECOND)
        until(lambda: any(call.key == KEYS.stop_request for call in actor.store.calls))
        assert run.stopping() is None
        return DONE

    assert actor.run.run(ScriptedEngine(script, ["A"])).exit_code is ExitCode.DONE
    assert scene.data(KEYS.stop_request) is not None


def test_a_run_shorter_than_15_s_never_looks_for_a_stop_request() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.run.run(ScriptedEngine(creates=["A"]))
    assert not any(call.key == KEYS.stop_request for call in actor.store.calls)


@pytest.mark.parametrize(("grace", "until_over"), [(600_000, 570_000), (8_000, 6_000), (40_000, 30_000)])
def test_the_grace_less_its_margin_gives_up_what_is_in_flight(grace: int, until_over: int) -> None:
    scene = RunScene(settings=RunSettings(grace_ms=grace))
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        create(run, "A")
        actor.stops.request(StopCause.SIGTERM)
        scene.clock.advance(until_over - 1)
        stop = run.stopping()
        assert stop is not None
        assert not stop.is_over
        run.check_call()
        scene.clock.advance(1)
        stop = run.stopping()
        assert stop is not None
        assert stop.is_over
        with pytest.raises(StoodDown):
            run.check_call()
        with pytest.raises(StoodDown):
            run.wait(1000)
        run.mark(LogicalId("B"), IntentState.UNKNOWN)
        return STOPPED

    report = actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert report.exit_code is ExitCode.TERMINATED
    assert scene.lock is None
    assert scene.run_file is not None
    assert [(intent.logical_id, intent.state) for intent in scene.run_file.intents] == [("B", IntentState.UNKNOWN)]


def test_a_wait_ends_when_waits_are_given_up() -> None:
    scene = RunScene(settings=RunSettings(grace_ms=8_000))
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        actor.stops.request(StopCause.SIGINT)
        began = scene.clock.boot()
        with pytest.raises(StoodDown):
            run.wait(60 * SECOND)
        assert scene.clock.boot() - began <= 6_100
        return STOPPED

    assert actor.run.run(ScriptedEngine(script, ["A"])).exit_code is ExitCode.INTERRUPTED


def test_an_engine_that_lets_stood_down_through_still_settles() -> None:
    scene = RunScene(settings=RunSettings(grace_ms=8_000))
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        create(run, "A")
        actor.stops.request(StopCause.SIGINT)
        run.wait(60 * SECOND)
        return DONE

    report = actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert report.exit_code is ExitCode.INTERRUPTED
    assert scene.record is not None
    assert set(scene.record.resources) == {"A"}
    assert scene.lock is None


def test_a_second_signal_calls_what_was_set_for_it() -> None:
    scene = RunScene()
    actor = scene.actor()
    released: list[bool] = []
    actor.stops.on_second(lambda: released.append(actor.run.best_effort_release(1_000)))

    def script(run: Run) -> WorkResult:
        actor.stops.signal(signal.SIGINT)
        until(run.stopping)
        assert not released
        actor.stops.signal(signal.SIGTERM)
        until(lambda: released)
        with pytest.raises(StoodDown):
            run.check_call()
        return STOPPED

    actor.run.run(ScriptedEngine(script, ["A"]))
    assert released == [True]
    assert scene.lock is None
    assert not [event for event in actor.reporter.events if "lock is lost" in event.message]
    assert not [event for event in actor.reporter.events if "lock was lost" in event.message]


def test_a_stop_before_the_stamp_changes_nothing() -> None:
    scene = RunScene()
    actor = scene.actor()
    engine = ScriptedEngine(creates=["A"], on_plan=lambda _: actor.stops.request(StopCause.SIGINT))
    report = actor.run.run(engine)
    assert (report.exit_code, report.changed) == (ExitCode.INTERRUPTED, False)
    assert (scene.record, scene.run_file, scene.lock) == (None, None, None)


def test_a_deadline_before_anything_happened_is_a_deadline() -> None:
    scene = RunScene(settings=RunSettings(deadline=Span(Millis(10 * SECOND))))
    actor = scene.actor()
    scene.clock.advance(10 * SECOND)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert (report.outcome, report.exit_code) == (Outcome.DEADLINE_EXCEEDED, ExitCode.DEADLINE)
    assert list(scene.store.list(KEYS.record)) == []


def test_the_deadline_counts_from_the_beginning_of_the_command() -> None:
    scene = RunScene()
    settings = RunSettings(deadline=Span(Millis(10 * SECOND)))
    began = scene.clock.boot()
    scene.clock.advance(4 * SECOND)
    assert Control(clock=scene.clock, settings=settings, stops=Stops(), started_at=began).deadline_at == began + 10_000
    assert Control(clock=scene.clock, settings=settings, stops=Stops()).deadline_at == began + 14_000


def test_a_plan_that_hangs_is_given_up_at_a_stop() -> None:
    scene = RunScene()
    actor = scene.actor()
    never = threading.Event()

    def hang(_: StateRecord | None) -> None:
        never.wait()

    engine = ScriptedEngine(creates=["A"], on_plan=hang)
    actor.start(engine)
    engine.plan_called.wait()
    actor.stops.request(StopCause.SIGTERM)
    report = actor.end()
    never.set()
    assert (report.exit_code, report.changed) == (ExitCode.TERMINATED, False)
    assert report.error == "stopped by SIGTERM; nothing was changed"
    assert (scene.record, scene.run_file, scene.lock) == (None, None, None)


def test_a_request_for_the_lock_that_hangs_has_the_grace_and_is_named_when_it_is_given_up() -> None:
    scene = RunScene(settings=RunSettings(grace_ms=8_000, unlock_command="stackhold force-unlock payments"))
    actor = scene.actor()
    asked, never = threading.Event(), threading.Event()

    def hang(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.lock):
            asked.set()
            never.wait()
        return Fault.NONE

    actor.store.plan(hang)
    actor.start(ScriptedEngine(creates=["A"]))
    asked.wait()
    actor.stops.request(StopCause.SIGINT)
    scene.clock.advance(6_000)
    report = actor.end()
    never.set()
    assert report.exit_code is ExitCode.INTERRUPTED
    assert any("stackhold force-unlock payments" in warning for warning in report.warnings)


def test_a_signal_after_the_work_is_done_does_not_undo_its_success() -> None:
    scene = RunScene()
    actor = scene.actor()

    def signal_while_settling(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("delete", KEYS.run_file):
            actor.stops.request(StopCause.SIGINT)
        return Fault.NONE

    actor.store.plan(signal_while_settling)
    assert actor.run.run(ScriptedEngine(creates=["A"])).exit_code is ExitCode.DONE


@pytest.mark.parametrize(
    ("cause", "exit_code"), [(StopCause.SIGINT, ExitCode.INTERRUPTED), (StopCause.CANCEL, ExitCode.TERMINATED)]
)
def test_a_stop_that_finds_nothing_left_to_do_says_that_everything_was_done(
    cause: StopCause, exit_code: ExitCode
) -> None:
    actor = RunScene().actor()

    def script(run: Run) -> WorkResult:
        actor.stops.request(cause)
        until(run.stopping)
        return WorkResult(Outcome.SUCCEEDED, ExitCode.DONE)

    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert (report.exit_code, report.is_complete) == (exit_code, True)
    assert report.error.endswith("; everything had been done")


def test_the_first_cause_stays() -> None:
    stops = Stops()
    heard: list[StopCause] = []
    stops.subscribe(heard.append)
    stops.request(StopCause.DEADLINE)
    stops.request(StopCause.SIGINT)
    stops.subscribe(heard.append)
    assert stops.cause is StopCause.DEADLINE
    assert heard == [StopCause.DEADLINE, StopCause.DEADLINE]


def test_the_mailbox_may_be_used_from_a_real_signal_handler() -> None:
    stops = Stops()
    stops.listen()
    before = signal.signal(signal.SIGINT, lambda signum, _: stops.signal(signum))
    try:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        until(lambda: stops.cause is StopCause.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
        stops.close()
