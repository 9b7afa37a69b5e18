"""Entries of a run file live on until they are resolved, and no longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.intents import carried_on, identity_of, outlived, still_open, unresolved
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant, Millis
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord
from stackhold.model.run import Intended, Intent, IntentKind, IntentState, RunFile

OWN, OLD = RunId("own"), RunId("old")
NOW = Instant(1_796_061_700_000)
intents = st.builds(
    Intent,
    logical_id=st.sampled_from("ABCD").map(LogicalId),
    type=st.just(TypeName("T::T::T")),
    kind=st.sampled_from(IntentKind),
    run_id=st.sampled_from([OWN, OLD]),
    state=st.sampled_from(IntentState),
    first_seen_at=st.none() | st.just(Instant(5)),
)


@given(st.lists(intents, max_size=8))
def test_everything_unresolved_of_earlier_runs_is_carried_on(entries: list[Intent]) -> None:
    leftover = RunFile(OLD, LockId("f"), 1, "deploy", "a@b:1", NOW, 1, tuple(entries))
    carried = carried_on(leftover, own_run=OWN, seen_at=NOW)
    kept = [entry for entry in entries if entry.run_id == OLD and entry.state is not IntentState.DONE]
    assert [(entry.logical_id, entry.kind, entry.state) for entry in carried] == [
        (entry.logical_id, entry.kind, entry.state) for entry in kept
    ]
    assert [entry.first_seen_at for entry in carried] == [entry.first_seen_at or NOW for entry in kept]
    assert carried_on(None, own_run=OWN, seen_at=NOW) == ()


@given(st.lists(intents, max_size=6), st.lists(intents, max_size=3), st.sets(st.sampled_from("ABCD").map(LogicalId)))
def test_only_what_is_done_leaves(own: list[Intent], carried: list[Intent], done: set[LogicalId]) -> None:
    open_ones = [entry for entry in own if entry.state is not IntentState.DONE]
    left = unresolved(open_ones, dict.fromkeys(((name, None) for name in done), IntentState.DONE), carried)
    still = [entry for entry in open_ones if entry.logical_id not in done]
    again = {identity_of(entry) for entry in still}
    assert [entry.logical_id for entry in left] == [
        *(entry.logical_id for entry in still),
        *(entry.logical_id for entry in carried if identity_of(entry) not in again),
    ]


TTL = Millis(1_800_000)
TYPE = TypeName("T::T::T")
A = LogicalId("A")


def create(*, first_seen_at: int | None = None, is_again: bool = False) -> Intent:
    seen_at = None if first_seen_at is None else Instant(first_seen_at)
    return Intent(
        A, TYPE, IntentKind.CREATE, OLD, name="a", first_seen_at=seen_at, intended=Intended(is_again=is_again)
    )


def open_after_a_look(
    intent: Intent, *, is_seen: bool = False, is_unknown: bool = False, is_after_expiry: bool = False
) -> tuple[Intent, ...]:
    return still_open(
        [intent],
        seen=[intent] if is_seen else [],
        unknown=[intent] if is_unknown else [],
        looked_at=NOW,
        ttl=TTL,
        is_after_expiry=is_after_expiry,
    )


def test_a_create_that_landed_is_resolved_at_the_first_look() -> None:
    assert open_after_a_look(create(), is_seen=True) == ()


def test_an_absent_create_found_with_a_free_lock_stays_from_the_first_look_until_one_ttl_is_over() -> None:
    [kept] = open_after_a_look(create())
    assert kept.first_seen_at == NOW
    assert open_after_a_look(create(first_seen_at=NOW - TTL + 1)) == (create(first_seen_at=NOW - TTL + 1),)
    assert open_after_a_look(create(first_seen_at=NOW - TTL)) == ()


def test_after_an_expiry_the_time_in_which_a_request_could_land_has_passed() -> None:
    assert open_after_a_look(create(), is_after_expiry=True) == ()


def test_a_create_that_two_runs_may_have_sent_stays_even_when_one_is_there() -> None:
    assert open_after_a_look(create(first_seen_at=NOW - 1), is_seen=True) == (create(first_seen_at=NOW - 1),)
    assert len(open_after_a_look(create(is_again=True), is_seen=True)) == 1


def test_what_cannot_be_looked_for_stays_whatever_the_time() -> None:
    very_old = create(first_seen_at=1)
    assert open_after_a_look(very_old, is_unknown=True, is_after_expiry=True) == (very_old,)


def test_a_delete_that_was_looked_at_is_resolved() -> None:
    delete = Intent(A, TYPE, IntentKind.DELETE, OLD, physical_id=PhysicalId("a-1"), first_seen_at=Instant(3))
    assert open_after_a_look(delete, is_seen=True) == ()


def test_an_entry_of_this_run_stands_for_what_it_sends_once_more() -> None:
    carried, own = create(first_seen_at=5), create()
    assert unresolved([own], {}, [carried]) == (own,)
    assert unresolved([own], {(A, None): IntentState.DONE}, [carried]) == (carried,)


def test_a_mark_for_one_resource_says_nothing_of_another_under_the_same_logical_id() -> None:
    new, old, older = (
        Intent(A, TYPE, kind, OWN, physical_id=PhysicalId(name) if name else None)
        for kind, name in ((IntentKind.CREATE, ""), (IntentKind.DELETE, "old"), (IntentKind.DELETE, "older"))
    )
    left = unresolved(
        [new, old, older],
        {
            (A, None): IntentState.DONE,
            (A, PhysicalId("old")): IntentState.UNKNOWN,
            (A, PhysicalId("older")): IntentState.DONE,
        },
        [],
    )
    assert [(intent.physical_id, intent.state) for intent in left] == [("old", IntentState.UNKNOWN)]


def test_what_was_meant_for_a_resource_that_is_recorded_no_longer_is_done() -> None:
    gone, there, waits = (
        Intent(A, TYPE, IntentKind.DELETE, OLD, physical_id=PhysicalId(name)) for name in ("gone", "there", "waits")
    )
    record = StateRecord(
        StackName("s"),
        Region("eu-west-1"),
        {A: ResourceRecord(PhysicalId("there"), TYPE, {})},
        pending_deletes=(PendingDelete(A, ResourceRecord(PhysicalId("waits"), TYPE, {})),),
    )
    assert outlived([create(), gone, there, waits], record) == (create(), there, waits)
    assert outlived([create(), gone, there, waits], None) == (create(),)
