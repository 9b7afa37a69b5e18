"""Changes to the record, and what makes each write of it unlike every other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.record import (
    apply_changes,
    as_changes,
    contested,
    has_same_resources,
    next_generation,
    next_version,
    unsaved_ids,
    yielding,
)
from stackhold.model.codec import encode_record
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.record import (
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    RecordChange,
    ResourceRecord,
    SetResource,
    SetStack,
    StateRecord,
)

EMPTY = StateRecord(StackName("Shop"), Region("eu-west-1"))
names = st.sampled_from("ABC").map(LogicalId)
resources = st.builds(
    ResourceRecord,
    physical_id=st.sampled_from(["p-1", "p-2"]).map(PhysicalId),
    type=st.just(TypeName("T::T::T")),
    properties=st.just({}),
)
changes: st.SearchStrategy[RecordChange] = st.one_of(
    st.builds(SetResource, names, resources),
    st.builds(DropResource, names),
    st.builds(AddPendingDelete, st.builds(PendingDelete, names, resources)),
    st.builds(DropPendingDelete, names, st.sampled_from(["p-1", "p-2"]).map(PhysicalId)),
    st.builds(SetStack, outputs=st.none() | st.just({"o": 1}), lineage=st.none() | st.just("l")),
)


@given(st.lists(changes, max_size=12))
def test_making_changes_again_changes_nothing_more(batch: list[RecordChange]) -> None:
    once = apply_changes(EMPTY, batch)
    again = apply_changes(once, batch)
    assert (again.resources, again.outputs, again.lineage) == (once.resources, once.outputs, once.lineage)
    assert {(item.logical_id, item.resource.physical_id) for item in again.pending_deletes} == {
        (item.logical_id, item.resource.physical_id) for item in once.pending_deletes
    }


@given(st.lists(changes, max_size=12), st.integers(0, 12))
def test_two_batches_are_one(batch: list[RecordChange], cut: int) -> None:
    assert apply_changes(apply_changes(EMPTY, batch[:cut]), batch[cut:]) == apply_changes(EMPTY, batch)


@given(st.dictionaries(names, resources), st.lists(changes, max_size=12))
def test_what_others_recorded_in_our_place_survives_all_our_changes(
    theirs: dict[LogicalId, ResourceRecord], batch: list[RecordChange]
) -> None:
    found = replace(EMPTY, resources=theirs)
    disputed = contested(found, base=EMPTY, changes=batch)
    made = apply_changes(found, yielding(batch, to=dict.fromkeys(disputed)))
    assert {name: made.resources[name] for name in disputed} == {name: theirs[name] for name in disputed}


@given(st.lists(changes, max_size=12))
def test_nothing_is_disputed_in_what_we_saved_ourselves(batch: list[RecordChange]) -> None:
    assert not contested(apply_changes(EMPTY, batch), base=EMPTY, changes=batch)
    assert yielding(batch, to={}) == batch


@given(st.lists(changes, max_size=12))
def test_every_set_resource_that_was_not_dropped_is_named_when_it_cannot_be_saved(batch: list[RecordChange]) -> None:
    record = apply_changes(EMPTY, batch)
    unsaved = unsaved_ids(batch, recorded=None)
    for logical_id, resource in record.resources.items():
        assert f"{logical_id} {resource.physical_id}" in unsaved


@given(st.lists(changes, max_size=12), st.lists(changes, max_size=12))
def test_nothing_that_a_record_holds_is_said_to_be_in_none(saved: list[RecordChange], late: list[RecordChange]) -> None:
    record = apply_changes(EMPTY, saved)
    held = {f"{name} {resource.physical_id}" for name, resource in record.resources.items()}
    held |= {f"{item.logical_id} {item.resource.physical_id}" for item in record.pending_deletes}
    assert not held & set(unsaved_ids(late, recorded=record))


@given(st.lists(changes, max_size=12))
def test_a_records_changes_make_its_resources_again(saved: list[RecordChange]) -> None:
    record = apply_changes(EMPTY, saved)
    assert has_same_resources(apply_changes(EMPTY, as_changes(record)), record)


@given(st.none() | st.integers(0, 2**40), st.integers(1, 2**42))
def test_a_generation_rises_over_the_replaced_one_and_over_the_time(before: int | None, locked_at: int) -> None:
    replaced = None if before is None else StateRecord(EMPTY.stack, EMPTY.region, generation=before)
    generation = next_generation(replaced, locked_at=Instant(locked_at))
    assert generation > (before or 0) or generation == 1
    assert generation >= locked_at // 1000


def test_no_two_writes_have_equal_bytes() -> None:
    one = next_version(EMPTY, lock_id=LockId("a"), generation=1, now=Instant(5))
    again = next_version(one, lock_id=LockId("a"), generation=1, now=Instant(5))
    other_run = next_version(EMPTY, lock_id=LockId("b"), generation=1, now=Instant(5))
    assert len({encode_record(record) for record in (EMPTY, one, again, other_run)}) == 4


@given(st.lists(changes, max_size=6))
def test_an_absent_record_has_no_resources(batch: list[RecordChange]) -> None:
    record = apply_changes(EMPTY, batch)
    assert has_same_resources(record, record)
    assert has_same_resources(None, record) == (not record.resources)
