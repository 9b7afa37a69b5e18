"""Who gets the lock, how long one waits for it, and that no lost answer leaves it behind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import LockHeld, StoreError
from stackhold.model import codec
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LockId
from stackhold.model.instant import HOUR, MINUTE, SECOND, BootInstant, Instant, Millis, Span
from stackhold.model.lock import Lock
from stackhold.model.record import StateRecord
from stackhold.model.run import Outcome, StopCause
from stackhold.runs.guard import FixedWait, RetryWait, RunSettings
from stackhold.testing.engine import DONE, ScriptedEngine
from stackhold.testing.memory_store import Fault, MemoryStore, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene, until

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult

TTL = Millis(30 * MINUTE)
UNLOCK = "stackhold force-unlock Shop --region eu-west-1 --state s3://acme"


def held_by_other(scene: RunScene, **changes: object) -> Lock:
    now = scene.clock.now()
    lock = Lock("li@laptop:9", now, Instant(now + TTL), "deploy", LockId("f" * 32), TTL, 1)
    lock = replace(lock, **changes)  # type: ignore[arg-type]
    scene.store.put(KEYS.lock, codec.encode_lock(lock))
    return lock


def foreign(scene: RunScene, **changes: object) -> Lock:
    return held_by_other(scene, id=None, ttl=None, **changes)


def with_wait(wait: FixedWait | RetryWait, deadline_ms: int = 3600 * SECOND) -> RunScene:
    return RunScene(settings=RunSettings(deadline=Span(Millis(deadline_ms)), lock_wait=wait, unlock_command=UNLOCK))


def test_a_free_lock_is_taken_with_one_request_and_written_as_people_expect() -> None:
    scene = RunScene()
    seen: list[Lock | None] = []

    def script(_: Run) -> WorkResult:
        seen.append(scene.lock)
        return DONE

    actor = scene.actor()
    began = scene.clock.now()
    actor.run.run(ScriptedEngine(script, ["A"]))
    [lock] = seen
    assert lock is not None
    assert (lock.owner, lock.operation, lock.timestamp, lock.expires_at, lock.ttl) == (
        "maria@ci-7:4711",
        "deploy",
        began,
        began + TTL,
        TTL,
    )
    assert [call.method for call in actor.store.calls if call.key == KEYS.lock] == ["write", "delete"]


def test_by_default_a_held_lock_is_tried_three_more_times_two_seconds_apart() -> None:
    scene = with_wait(RetryWait())
    held_by_other(scene)
    actor = scene.actor()
    began = scene.clock.boot()
    with pytest.raises(LockHeld) as caught:
        actor.run.run(ScriptedEngine(creates=["A"]))
    assert scene.clock.boot() - began == 6 * SECOND
    text = "\n".join([caught.value.message, *caught.value.details, caught.value.hint])
    assert "li@laptop:9" in text
    assert UNLOCK in text
    assert scene.record is None


def test_without_a_wait_a_held_lock_fails_at_once() -> None:
    scene = with_wait(FixedWait(0))
    held_by_other(scene)
    began = scene.clock.boot()
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))
    assert scene.clock.boot() == began


def test_a_wait_polls_and_wins_when_the_lock_is_released() -> None:
    scene = with_wait(FixedWait(60 * SECOND, "--lock-timeout"))
    held_by_other(scene)
    actor = scene.actor()
    looks = 0

    def release_at_the_fifth_look(call: StoreCall) -> Fault:
        nonlocal looks
        looks += (call.method, call.key) == ("read", KEYS.lock)
        if looks == 5:
            scene.store.remove(KEYS.lock)
        return Fault.NONE

    actor.store.plan(release_at_the_fifth_look)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.DONE
    assert report.waited_ms == 200 + 400 + 800 + 1600
    [waiting] = actor.reporter.of(EventKind.LOCK_WAITING)
    assert waiting.data["owner"] == "li@laptop:9"


def test_a_wait_gives_up_after_exactly_its_span_and_names_its_setting() -> None:
    scene = with_wait(FixedWait(10 * SECOND, "--lock-timeout"))
    held_by_other(scene)
    began = scene.clock.boot()
    with pytest.raises(LockHeld, match=r"waited 10 s, all of --lock-timeout"):
        scene.play(ScriptedEngine(creates=["A"]))
    assert scene.clock.boot() - began == 10 * SECOND


@pytest.mark.parametrize("operation", ["deploy", "destroy"])
def test_a_lock_silent_for_its_ttl_is_taken_over_with_a_warning(operation: str) -> None:
    scene = with_wait(FixedWait(0))
    held_by_other(scene)
    scene.clock.advance(TTL + 5 * SECOND)
    actor = scene.actor(operation=operation)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.DONE
    assert "li@laptop:9" in report.warnings[0]
    assert actor.reporter.of(EventKind.LOCK_TAKEN_OVER)
    assert [call.expect is not None for call in actor.store.calls if call.key == KEYS.lock and call.data] == [
        False,
        True,
    ]


def test_a_lock_within_its_ttl_and_slack_is_not_taken_over() -> None:
    scene = with_wait(FixedWait(0))
    held_by_other(scene)
    scene.clock.advance(TTL + 5 * SECOND - 1)
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))


@pytest.mark.parametrize("skew", [-HOUR, HOUR])
def test_a_skewed_host_neither_steals_a_live_lock_nor_waits_for_a_dead_one(skew: int) -> None:
    scene = with_wait(FixedWait(0))
    scene.store.skew_ms = -skew
    held_by_other(scene)
    scene.clock.advance(TTL)
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))
    scene.clock.advance(5 * SECOND)
    assert scene.play(ScriptedEngine(creates=["A"])).exit_code is ExitCode.DONE


@pytest.mark.parametrize("skew", [-HOUR, HOUR])
def test_the_expiry_is_corrected_by_the_time_of_the_store(skew: int) -> None:
    scene = RunScene()
    scene.store.skew_ms = skew
    corrected: list[Lock] = []

    def script(_: Run) -> WorkResult:
        until(lambda: scene.lock is not None and scene.lock.serial > 1)
        assert scene.lock is not None
        corrected.append(scene.lock)
        return DONE

    began = scene.clock.now()
    scene.play(ScriptedEngine(script, ["A"]))
    [lock] = corrected
    assert lock.timestamp == began + skew
    assert lock.expires_at == began + skew + TTL


def test_a_live_lock_of_another_tool_is_held() -> None:
    scene = with_wait(FixedWait(0))
    foreign(scene)
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))


def test_an_expired_lock_of_another_tool_is_held_while_its_record_is_written() -> None:
    scene = with_wait(FixedWait(0))
    foreign(scene)
    scene.clock.advance(2 * HOUR)
    scene.store.put(KEYS.record, codec.encode_record(StateRecord(KEYS.stack, KEYS.region)))
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))
    scene.clock.advance(30 * MINUTE)
    report = scene.play(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.DONE


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b"",
        b'{"owner": "x"',
        b'{"owner": "a@b:1", "timestamp": 5}',
        b'{"owner": "a", "timestamp": 5, "expiresAt": "x"}',
    ],
)
def test_a_lock_that_cannot_be_read_or_has_no_expiry_is_held_for_ever(data: bytes) -> None:
    scene = with_wait(FixedWait(0))
    scene.store.put(KEYS.lock, data)
    scene.clock.advance(1000 * HOUR)
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))
    assert [entry.key for entry in scene.store.list("") if not entry.key.startswith(KEYS.events)] == [KEYS.lock]
    assert scene.data(KEYS.lock) == data


def test_in_a_directory_a_jump_of_the_wall_clock_steals_no_live_lock() -> None:
    scene = RunScene(is_local=True, settings=RunSettings(lock_wait=FixedWait(0)))
    held_by_other(scene, boot_id=scene.clock.boot_id(), boot_ms=BootInstant(scene.clock.boot()))
    scene.clock.set_wall(Instant(scene.clock.now() + 5 * HOUR))
    with pytest.raises(LockHeld):
        scene.play(ScriptedEngine(creates=["A"]))
    scene.clock.reboot("another boot")
    assert scene.play(ScriptedEngine(creates=["A"])).exit_code is ExitCode.DONE


@pytest.mark.parametrize("cause", [StopCause.SIGINT, StopCause.SIGTERM])
def test_a_signal_ends_the_wait_at_once_with_nothing_held(cause: StopCause) -> None:
    scene = with_wait(FixedWait(60 * SECOND))
    held_by_other(scene)
    actor = scene.actor()

    def stop_at_the_second_look(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("read", KEYS.lock) and actor.stops.cause is None:
            actor.stops.request(cause)
        return Fault.NONE

    actor.store.plan(stop_at_the_second_look)
    began = scene.clock.boot()
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.outcome is Outcome.INTERRUPTED
    assert report.exit_code is {StopCause.SIGINT: ExitCode.INTERRUPTED, StopCause.SIGTERM: ExitCode.TERMINATED}[cause]
    assert scene.clock.boot() - began <= 200
    assert scene.lock is not None
    assert scene.lock.owner == "li@laptop:9"


def test_the_deadline_ends_the_wait() -> None:
    scene = with_wait(RetryWait(attempts=3, pause_ms=2 * SECOND), deadline_ms=7 * SECOND)
    held_by_other(scene)
    actor = scene.actor()
    scene.clock.advance(3 * SECOND)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert (report.outcome, report.exit_code) == (Outcome.DEADLINE_EXCEEDED, ExitCode.DEADLINE)
    assert scene.record is None


def plan_first(store: MemoryStore, method: str, key: str, fault: Fault) -> None:
    left = [fault]

    def plan(call: StoreCall) -> Fault:
        return left.pop() if left and (call.method, call.key) == (method, key) else Fault.NONE

    store.plan(plan)


def test_an_acquisition_whose_answer_was_lost_is_ours() -> None:
    scene = RunScene()
    actor = scene.actor()
    plan_first(actor.store, "write", KEYS.lock, Fault.LOSE_ANSWER)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.DONE
    assert scene.lock is None
    lock_calls = [call.method for call in actor.store.calls if call.key == KEYS.lock]
    assert lock_calls == ["write", "read", "delete", "read"]


def test_an_acquisition_that_never_arrived_is_sent_again() -> None:
    scene = RunScene()
    actor = scene.actor()
    plan_first(actor.store, "write", KEYS.lock, Fault.LOSE_REQUEST)
    assert actor.run.run(ScriptedEngine(creates=["A"])).exit_code is ExitCode.DONE
    assert scene.lock is None


def test_a_lock_of_ours_that_lands_after_our_release_is_removed() -> None:
    scene = RunScene()
    actor = scene.actor()
    seen_lock = 0

    def plan(call: StoreCall) -> Fault:
        nonlocal seen_lock
        if call.key != KEYS.lock:
            return Fault.NONE
        seen_lock += 1
        if seen_lock == 1:
            return Fault.LAND_LATE
        if call.method == "read" and scene.lock is None and seen_lock > 3:
            scene.store.land()
        return Fault.NONE

    actor.store.plan(plan)
    assert actor.run.run(ScriptedEngine(creates=["A"])).exit_code is ExitCode.DONE
    assert scene.lock is None
    assert scene.store.land() == 0


def test_stopped_while_an_acquisition_was_unanswered_leaves_nothing_behind() -> None:
    scene = with_wait(FixedWait(60 * SECOND))
    actor = scene.actor()

    def plan(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.lock):
            actor.stops.request(StopCause.SIGTERM)
            return Fault.LOSE_ANSWER
        return Fault.NONE

    actor.store.plan(plan)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.TERMINATED
    assert scene.lock is None


def test_stopped_while_a_request_met_its_own_repetition_leaves_nothing_behind() -> None:
    scene = with_wait(FixedWait(60 * SECOND))
    actor = scene.actor()

    def plan(call: StoreCall) -> Fault:
        if (call.method, call.key) == ("write", KEYS.lock) and call.data is not None:
            actor.stops.request(StopCause.SIGTERM)
            scene.store.put(KEYS.lock, call.data)
        return Fault.NONE

    actor.store.plan(plan)
    assert actor.run.run(ScriptedEngine(creates=["A"])).exit_code is ExitCode.TERMINATED
    assert scene.lock is None


def test_stopped_with_a_lock_that_may_be_left_says_how_to_clear_it() -> None:
    scene = with_wait(FixedWait(60 * SECOND))
    actor = scene.actor()
    asked = 0

    def plan(call: StoreCall) -> Fault:
        nonlocal asked
        if (call.method, call.key) == ("write", KEYS.lock):
            actor.stops.request(StopCause.SIGTERM)
            return Fault.LOSE_ANSWER
        if (call.method, call.key) == ("read", KEYS.lock):
            asked += 1
            return Fault.REFUSE if asked == 2 else Fault.NONE
        return Fault.NONE

    actor.store.plan(plan)
    report = actor.run.run(ScriptedEngine(creates=["A"]))
    assert report.exit_code is ExitCode.TERMINATED
    assert scene.lock is not None
    assert any(UNLOCK in warning for warning in report.warnings)


@pytest.mark.parametrize("answer", [Fault.LOSE_ANSWER, Fault.CONFLICT])
def test_a_store_that_stays_silent_after_the_request_says_how_to_clear_the_lock(answer: Fault) -> None:
    scene = with_wait(FixedWait(0))
    actor = scene.actor()
    actor.store.plan(lambda call: {"write": answer, "read": Fault.UNREACHABLE}.get(call.method, Fault.NONE))
    with pytest.raises(StoreError) as caught:
        actor.run.run(ScriptedEngine(creates=["A"]))
    assert UNLOCK in caught.value.hint


def renew_after(scene: RunScene, ms: int) -> None:
    """Let time pass, then let the heartbeat notice."""
    serial = scene.lock.serial if scene.lock else 0
    scene.clock.advance(ms)
    until(lambda: scene.lock is not None and scene.lock.serial > serial)


def test_a_renewed_lock_outlives_its_first_expiry_by_far() -> None:
    scene = RunScene(settings=RunSettings(deadline=Span(Millis(20 * HOUR))))

    def script(run: Run) -> WorkResult:
        for _ in range(6):
            renew_after(scene, 20 * MINUTE)
            assert run.stopping() is None
        other = scene.actor(settings=RunSettings(lock_wait=FixedWait(0)))
        with pytest.raises(LockHeld):
            other.run.run(ScriptedEngine(creates=["A"]))
        return DONE

    assert scene.play(ScriptedEngine(script, ["A"])).exit_code is ExitCode.DONE


def test_the_generation_is_in_the_lock_after_the_next_renewal() -> None:
    scene = RunScene()

    def script(_: Run) -> WorkResult:
        scene.clock.advance(2 * MINUTE)
        until(lambda: scene.lock is not None and scene.lock.generation is not None)
        return DONE

    report = scene.play(ScriptedEngine(script, ["A"]))
    assert report.generation is not None
