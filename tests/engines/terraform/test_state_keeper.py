"""A version is the state once the record says so, and never otherwise; what a dead run wrote is found again."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.states import LINEAGE, encrypted, state

from stackhold.engines.terraform.state_facts import facts_of
from stackhold.engines.terraform.state_keeper import (
    STATE,
    StateKeeper,
    find_unrecorded,
    pointer_of,
    pointing_at,
)
from stackhold.errors import InputError, RecordUnreadable, StoodDown, StoreRefused
from stackhold.model import codec
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.model.instant import Instant
from stackhold.model.run import Outcome, StopCause
from stackhold.runs.state_versions import StoreStateVersions
from stackhold.testing.clock import FakeClock
from stackhold.testing.engine import DONE, ScriptedEngine
from stackhold.testing.memory_store import Fault, MemoryStore
from stackhold.testing.run_scene import KEYS, RunScene
from stackhold.testing.scripted_run import ScriptedRun

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run, WorkResult

OTHER = "99999999-0000-4000-8000-000000000009"


class Stage:
    """A run in memory with a state."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.versions = StoreStateVersions(self.store, KEYS, self.clock)
        self.run = ScriptedRun(self.clock)

    def keeper(self) -> StateKeeper:
        """As a new run would have it."""
        return StateKeeper(self.versions, self.run.record, self.run)


def test_there_is_no_state_before_the_first_write() -> None:
    stage = Stage()
    assert stage.keeper().current() is None
    assert stage.keeper().highest_serial() == 0


def test_each_state_has_its_own_number_and_the_record_points_at_the_last() -> None:
    stage = Stage()
    keeper = stage.keeper()
    for serial in (1, 2, 3):
        keeper.put(state(serial, "a"))
    assert [entry.sequence for entry in stage.versions.list()] == [1, 2, 3]
    assert [stage.versions.read(number) for number in (1, 2, 3)] == [state(number, "a") for number in (1, 2, 3)]
    resource = stage.run.record.resources[STATE]
    assert resource.physical_id == "3"
    assert resource.properties == {
        "lineage": LINEAGE,
        "serial": 3,
        "highestSerial": 3,
        "size": len(state(3, "a")),
        "sha256": hashlib.sha256(state(3, "a")).hexdigest(),
        "terraformVersion": "1.11.4",
        "resources": 1,
    }
    assert stage.keeper().current() == state(3, "a")


def test_the_record_is_confirmed_after_the_version_is_written() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    assert [confirmed for _, confirmed in stage.run.saves] == [True]


def test_the_same_state_once_more_makes_no_version() -> None:
    stage = Stage()
    for _ in range(3):
        stage.keeper().put(state(1))
    assert len(stage.versions.list()) == 1


def test_an_encrypted_state_is_kept_without_what_is_sealed() -> None:
    stage = Stage()
    stage.keeper().put(encrypted(4))
    assert stage.keeper().current() == encrypted(4)
    assert stage.run.record.resources[STATE].properties.keys() == {
        "lineage", "serial", "highestSerial", "size", "sha256",
    }  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"{", state(1, version=5)])
def test_what_is_no_state_is_refused_before_anything_is_written(data: bytes) -> None:
    stage = Stage()
    with pytest.raises(InputError):
        stage.keeper().put(data)
    assert stage.store.calls == []


def test_a_number_that_a_dead_run_has_taken_is_passed_over() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    for sequence in (2, 3):
        stage.versions.append(sequence, state(2, f"lost-{sequence}"))
    stage.keeper().put(state(2, "mine"))
    assert stage.run.record.resources[STATE].physical_id == "4"
    assert stage.versions.read(2) == state(2, "lost-2")


@pytest.mark.parametrize("cause", [StopCause.LOCK_LOST, StopCause.FOREIGN_WRITE])
def test_a_run_that_may_write_no_more_does_not_move_the_record(cause: StopCause) -> None:
    stage = Stage()
    keeper = stage.keeper()
    keeper.put(state(1))
    stage.run.stop(cause)
    with pytest.raises(StoodDown):
        keeper.put(state(2))
    assert keeper.current() == state(1)
    assert stage.run.record.resources[STATE].physical_id == "1"


@pytest.mark.parametrize("cause", [StopCause.SIGINT, StopCause.SIGTERM, StopCause.DEADLINE, StopCause.CANCEL])
def test_a_run_that_is_only_stopped_still_writes_what_was_done(cause: StopCause) -> None:
    stage = Stage()
    stage.run.stop(cause)
    stage.keeper().put(state(1))
    assert stage.keeper().current() == state(1)


def test_an_outage_is_sat_out() -> None:
    stage = Stage()
    stage.store.plan([Fault.UNREACHABLE] * 20)
    stage.keeper().put(state(1))
    assert stage.keeper().current() == state(1)


def test_an_outage_is_sat_out_no_longer_than_the_run_may_wait() -> None:
    stage = Stage()
    stage.store.plan(lambda _: Fault.UNREACHABLE)
    stage.run.cut()
    with pytest.raises(StoodDown):
        stage.keeper().put(state(1))


def test_a_store_that_says_no_is_not_asked_again() -> None:
    stage = Stage()
    stage.store.plan([Fault.REFUSE])
    with pytest.raises(StoreRefused):
        stage.keeper().put(state(1))


def test_a_version_that_is_not_what_was_written_is_refused() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    stage.store.put(KEYS.state_version(1), state(1, "edited"))
    with pytest.raises(InputError, match="version 1 of the state is not what was written"):
        stage.keeper().current()


@pytest.mark.parametrize(
    "damage", [{"sha256": 1}, {"serial": "1"}, {"size": None}, {"lineage": None}, {"highestSerial": "x"}]
)
def test_a_record_that_does_not_say_which_version_is_meant_is_refused(damage: dict[str, object]) -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    resource = stage.run.record.resources[STATE]
    damaged = replace(resource, properties={**resource.properties, **damage})
    with pytest.raises(RecordUnreadable):
        pointer_of(stage.run.record.with_resource(STATE, damaged))


@pytest.mark.parametrize("number", ["", "one", "-1", "1.0", "²"])
def test_a_version_that_is_no_number_is_refused(number: str) -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    damaged = replace(stage.run.record.resources[STATE], physical_id=PhysicalId(number))
    with pytest.raises(RecordUnreadable):
        pointer_of(stage.run.record.with_resource(STATE, damaged))


def test_a_restored_state_has_a_serial_above_every_one_before() -> None:
    stage = Stage()
    keeper = stage.keeper()
    for serial in (1, 50, 7):
        keeper.put(state(serial, f"r{serial}"))
    assert stage.keeper().highest_serial() == 50
    assert stage.keeper().restore(1) == 4
    assert stage.run.record.resources[STATE].properties["serial"] == 51
    current = stage.keeper().current()
    assert current is not None
    assert b'"id-r1"' in current
    assert stage.keeper().highest_serial() == 51


def test_a_serial_that_no_record_ever_had_counts_too() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    stage.versions.append(2, state(80))
    stage.versions.append(3, b"no state")
    assert stage.keeper().highest_serial() == 80
    stage.keeper().restore(1)
    assert stage.run.record.resources[STATE].properties["serial"] == 81


def test_an_encrypted_state_is_restored_as_it_was() -> None:
    stage = Stage()
    stage.keeper().put(encrypted(1))
    stage.keeper().put(encrypted(2))
    stage.keeper().restore(1)
    assert stage.keeper().current() == encrypted(1)
    assert stage.keeper().highest_serial() == 2


def test_what_is_not_there_cannot_be_restored() -> None:
    with pytest.raises(InputError, match="no state version 9"):
        Stage().keeper().restore(9)


def test_a_version_that_a_run_wrote_before_it_died_is_found() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    stage.versions.append(2, state(2, "made"))
    change = find_unrecorded(stage.versions, stage.run.record, since=Instant(0))
    assert change == pointing_at(2, state(2, "made"), highest_serial=1)
    assert change is not None
    stage.run.save([change])
    assert stage.keeper().current() == state(2, "made")


def test_the_first_version_that_a_run_wrote_before_it_died_is_found() -> None:
    stage = Stage()
    stage.versions.append(1, state(1, "made"))
    change = find_unrecorded(stage.versions, None, since=Instant(0))
    assert change is not None
    assert change.resource.physical_id == "1"


@pytest.mark.parametrize(
    "left", [state(1, "stale"), state(2, "other", lineage=OTHER), b"no state", state(2, version=5)]
)
def test_what_does_not_go_on_from_the_recorded_state_is_left_alone(left: bytes) -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    stage.versions.append(2, left)
    assert find_unrecorded(stage.versions, stage.run.record, since=Instant(0)) is None


def test_versions_of_a_stack_that_was_destroyed_are_not_taken_on() -> None:
    stage = Stage()
    stage.versions.append(1, state(1, "old"))
    stage.clock.advance(60_000)
    assert find_unrecorded(stage.versions, None, since=stage.clock.now()) is None


def test_of_several_the_highest_serial_is_taken_on() -> None:
    stage = Stage()
    stage.keeper().put(state(1))
    for sequence, serial in ((2, 2), (3, 4), (4, 3)):
        stage.versions.append(sequence, state(serial))
    change = find_unrecorded(stage.versions, stage.run.record, since=Instant(0))
    assert change is not None
    assert change.resource.physical_id == "3"


class Guarded:
    """The same in a guarded run: with a lock that can be lost and a record that others may write."""

    def __init__(self) -> None:
        self.scene = RunScene()
        self.versions = StoreStateVersions(self.scene.store, KEYS, self.scene.clock)

    def keeper(self, run: Run) -> StateKeeper:
        return StateKeeper(self.versions, self.scene.record, run)

    def write(self, data: bytes) -> None:
        def script(run: Run) -> WorkResult:
            self.keeper(run).put(data)
            assert self.scene.record is not None
            assert pointer_of(self.scene.record) is not None
            return DONE

        assert self.scene.play(ScriptedEngine(script, ("run",))).outcome is Outcome.SUCCEEDED


def test_a_guarded_run_hands_the_state_to_the_next() -> None:
    guarded = Guarded()
    for serial in (1, 2):
        guarded.write(state(serial))
    pointer = pointer_of(guarded.scene.record)
    assert pointer is not None
    assert (pointer.sequence, pointer.serial) == (2, 2)


def test_a_run_whose_lock_was_cleared_and_taken_moves_nothing() -> None:
    """Its version stays under its own number, and is not what the next run works with."""
    guarded = Guarded()
    guarded.write(state(1, "a"))
    refused: list[StoodDown] = []

    def late(run: Run) -> WorkResult:
        keeper = guarded.keeper(run)
        guarded.scene.store.remove(KEYS.lock)
        guarded.write(state(2, "b"))
        with pytest.raises(StoodDown) as caught:
            keeper.put(state(2, "late"))
        refused.append(caught.value)
        assert keeper.current() == state(1, "a")
        return DONE

    report = guarded.scene.play(ScriptedEngine(late, ("run",)))
    assert refused
    assert report.outcome is Outcome.LOCK_LOST
    pointer = pointer_of(guarded.scene.record)
    assert pointer is not None
    assert guarded.versions.read(pointer.sequence) == state(2, "b")


def test_a_record_that_was_changed_by_hand_under_the_lock_stops_the_writer() -> None:
    guarded = Guarded()
    guarded.write(state(1, "a"))
    guarded.versions.append(2, state(9, "by-hand"))

    def script(run: Run) -> WorkResult:
        keeper = guarded.keeper(run)
        record: StateRecord | None = guarded.scene.record
        assert record is not None
        change = pointing_at(2, state(9, "by-hand"), highest_serial=1)
        edited = replace(record.with_resource(LogicalId("state"), change.resource), serial=record.serial + 5)
        guarded.scene.store.put(KEYS.record, codec.encode_record(edited))
        with pytest.raises(StoodDown):
            keeper.put(state(2, "mine"))
        return DONE

    report = guarded.scene.play(ScriptedEngine(script, ("run",)))
    assert report.cause is StopCause.FOREIGN_WRITE
    pointer = pointer_of(guarded.scene.record)
    assert pointer is not None
    assert pointer.sequence == 2


FAULTS = (Fault.NONE, Fault.LOSE_ANSWER, Fault.LOSE_REQUEST, Fault.LAND_LATE, Fault.CONFLICT, Fault.THROTTLE)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from(FAULTS), max_size=4)), min_size=1, max_size=8))
def test_whatever_the_store_does_the_state_is_the_last_that_was_confirmed(
    writes: list[tuple[bool, list[Fault]]],
) -> None:
    """Runs follow each other; some die after their version is written and before the record says so."""
    stage = Stage()
    confirmed: bytes | None = None
    for serial, (dies, faults) in enumerate(writes, start=1):
        data = state(serial, f"r{serial}")
        keeper = stage.keeper()
        stage.store.plan(faults)
        if dies:
            stage.run.stop(StopCause.LOCK_LOST)
            with pytest.raises(StoodDown):
                keeper.put(data)
            stage.run = ScriptedRun(stage.clock, record=stage.run.record)
        else:
            keeper.put(data)
            confirmed = data
        stage.store.plan([])
        stage.store.land()
        assert stage.keeper().current() == confirmed
        assert stage.keeper().highest_serial() >= facts_of(confirmed or state(0)).serial
