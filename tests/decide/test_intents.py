"""Entries of a run file live on until they are resolved, and no longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.intents import carried_on, unresolved
from stackhold.model.ids import LockId, LogicalId, RunId, TypeName
from stackhold.model.instant import Instant
from stackhold.model.run import Intent, IntentKind, IntentState, RunFile

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
    left = unresolved(open_ones, dict.fromkeys(done, IntentState.DONE), carried)
    assert [entry.logical_id for entry in left] == [
        *(entry.logical_id for entry in open_ones if entry.logical_id not in done),
        *(entry.logical_id for entry in carried),
    ]
