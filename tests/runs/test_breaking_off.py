"""Runs that break off: what they leave behind, what they say of it, and what their exit code means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.errors import InputError, LockHeld, StoreRefused
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.model.journal import JournalOperation
from stackhold.model.run import Intent, IntentKind, Outcome
from stackhold.ports.engine import WorkResult
from stackhold.runs.outage import PATIENCE_MS
from stackhold.testing.engine import DONE, TYPE, ScriptedEngine, create
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run


def creating(*names: str) -> ScriptedEngine:
    def script(run: Run) -> WorkResult:
        create(run, *names)
        return DONE

    return ScriptedEngine(script, list(names))


def refusing(*keys: str) -> Callable[[StoreCall], Fault]:
    """A disk that is full: what is to be written there is refused, reads and deletes are not."""
    return lambda call: Fault.REFUSE if call.method == "write" and call.key in keys else Fault.NONE


def stored(scene: RunScene) -> list[str]:
    return [entry.key for entry in scene.store.list("") if not entry.key.startswith(KEYS.events)]


@pytest.mark.parametrize("key", [KEYS.run_file, KEYS.record])
def test_a_first_run_that_cannot_begin_leaves_neither_record_nor_intents(key: str) -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(refusing(key))
    with pytest.raises(StoreRefused):
        actor.run.run(creating("A"))
    assert stored(scene) == []


def test_a_run_that_cannot_begin_leaves_the_record_that_it_found() -> None:
    scene = RunScene()
    scene.play(creating("A"))
    actor = scene.actor()
    actor.store.plan(refusing(KEYS.run_file))
    with pytest.raises(StoreRefused):
        actor.run.run(creating("B"))
    assert scene.record is not None
    assert set(scene.record.resources) == {"A"}
    assert scene.lock is None


def test_a_disk_that_fills_up_under_a_run_is_a_run_done_in_part() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        actor.store.plan(refusing(KEYS.record))
        create(run, "A")
        return DONE

    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert (report.outcome, report.exit_code) == (Outcome.FAILED, ExitCode.PARTLY)
    assert report.unsaved == ("A a-1",)
    assert not report.is_recorded
    assert scene.run_file is not None


def test_a_journal_that_cannot_be_written_is_a_run_done_in_part() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(refusing(KEYS.journal))
    made = JournalOperation(LogicalId("A"), "CREATE", TYPE, PhysicalId("a-1"))

    def script(run: Run) -> WorkResult:
        create(run, "A")
        return WorkResult(Outcome.FAILED, ExitCode.FAILED, done=(made,), settled=False)

    assert actor.run.run(ScriptedEngine(script, ["A"])).exit_code is ExitCode.PARTLY


def test_a_run_that_changed_nothing_and_could_not_settle_has_failed() -> None:
    scene = RunScene()
    made = JournalOperation(LogicalId("A"), "CREATE", TYPE, PhysicalId("a-1"))
    scene.play(
        ScriptedEngine(lambda _: WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=(made,), settled=False), ["A"])
    )
    actor = scene.actor()

    def script(_: Run) -> WorkResult:
        actor.store.plan(lambda call: Fault.REFUSE if call.key == KEYS.journal else Fault.NONE)
        return DONE

    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert (report.outcome, report.exit_code) == (Outcome.FAILED, ExitCode.FAILED)


@pytest.mark.parametrize("away_ms", [4_000, PATIENCE_MS - 3_000])
def test_a_store_that_is_away_for_a_moment_while_a_run_settles_costs_nothing(away_ms: int) -> None:
    scene = RunScene()
    actor = scene.actor()
    made = JournalOperation(LogicalId("A"), "CREATE", TYPE, PhysicalId("a-1"))
    away: list[int] = []

    def outage(call: StoreCall) -> Fault:
        if call.key not in (KEYS.journal, KEYS.run_file, KEYS.lock) or call.method == "read":
            return Fault.NONE
        if not away:
            away.append(scene.clock.boot() + away_ms)
        return Fault.UNREACHABLE if scene.clock.boot() < away[0] else Fault.NONE

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        actor.store.plan(outage)
        return WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=(made,), settled=False)

    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert (report.exit_code, report.warnings) == (ExitCode.PARTLY, ())
    assert scene.journal is not None
    assert (scene.run_file, scene.lock) == (None, None)


def test_a_store_that_stays_away_costs_a_settling_run_its_patience_once() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        actor.store.plan(lambda call: Fault.UNREACHABLE if call.key != KEYS.record else Fault.NONE)
        return DONE

    began = scene.clock.boot()
    report = actor.run.run(ScriptedEngine(script, ["A"]))
    assert any("the lock was not released" in warning for warning in report.warnings)
    assert scene.clock.boot() - began < PATIENCE_MS + 5_000


def test_a_run_that_never_gets_its_lock_leaves_a_record_of_its_wait() -> None:
    scene = RunScene()
    held = scene.actor(owner="li@laptop:9")
    entered = []

    def script(run: Run) -> WorkResult:
        late = scene.actor()
        with pytest.raises(LockHeld):
            late.run.run(creating("B"))
        log = scene.log(late)
        assert log is not None
        assert (log.outcome, log.exit_code, log.lock_id) == (Outcome.FAILED, 1, None)
        assert log.waited_ms == 6_000
        assert "is locked" in log.error
        assert log.ended_at is not None
        entered.append(1)
        return DONE

    held.run.run(ScriptedEngine(script, ["A"]))
    assert entered


def test_a_run_whose_input_turns_out_wrong_under_its_lock_leaves_a_record() -> None:
    scene = RunScene()
    actor = scene.actor()

    def wrong(_: StateRecord | None) -> None:
        raise InputError("no such thing")

    with pytest.raises(InputError):
        actor.run.run(ScriptedEngine(on_plan=wrong))
    log = scene.log(actor)
    assert log is not None
    assert (log.outcome, log.error) == (Outcome.FAILED, "InputError: no such thing")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (IntentKind.CREATE, "these may exist without being recorded: Old (old-1)"),
        (IntentKind.UPDATE, "these may have been changed, or not: Old (old-1)"),
        (IntentKind.DELETE, "these may be gone, or not: Old (old-1)"),
    ],
)
def test_what_an_earlier_run_left_in_flight_is_named_as_what_it_was(kind: IntentKind, said: str) -> None:
    scene = RunScene()

    def breaks(_: Run) -> WorkResult:
        raise KeyboardInterrupt

    physical_id = None if kind is IntentKind.CREATE else PhysicalId("old-1")
    first = scene.actor()
    left = Intent(LogicalId("Old"), TYPE, kind, first.identity.run_id, name="old-1", physical_id=physical_id)
    with pytest.raises(KeyboardInterrupt):
        first.run.run(ScriptedEngine(breaks, ["Old"], intents_instead=[left]))
    report = scene.play(creating("A"))
    assert any(warning.endswith(said) for warning in report.warnings)


def test_a_resource_whose_later_change_could_not_be_saved_is_in_a_record_all_the_same() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        actor.store.plan(refusing(KEYS.record))
        create(run, "A", "B")
        return DONE

    report = actor.run.run(ScriptedEngine(script, ["A", "B"]))
    assert report.unsaved == ("B b-1",)
    assert not report.is_recorded
