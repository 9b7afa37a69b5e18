from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.terraform.results import HASH, WHOLE, listed, plan_of, tail

from stackhold.engines.terraform.diagnostics import Changes
from stackhold.engines.terraform.planfile import DriftSummary, PlannedChange, PlanSummary
from stackhold.engines.terraform.result import (
    RESULT_LIMIT,
    Failure,
    FailureKind,
    Image,
    ResultDocument,
    RuntimeUsed,
    StepDone,
    decode,
    encode,
)

text = st.text(st.characters(), max_size=700)
numbers = st.integers() | st.integers(0, 100)
rows = st.lists(st.builds(PlannedChange, text, st.sampled_from(["create", "delete", "update"])), max_size=60).map(tuple)
changes = st.builds(Changes, numbers, numbers, numbers, numbers)
plans = st.builds(PlanSummary, text, *[numbers] * 8, rows)
drifts = st.builds(DriftSummary, st.booleans(), *[numbers] * 4, rows)
documents = st.builds(
    ResultDocument,
    op=text,
    image=st.none() | st.builds(Image, text, text),
    runtime=st.none() | st.builds(RuntimeUsed, text, text),
    steps=st.lists(st.builds(StepDone, text, numbers, numbers), max_size=100).map(tuple),
    drift=st.none() | drifts,
    error=st.none() | st.builds(Failure, st.sampled_from(FailureKind), text, text),
    changes=st.none() | changes,
    plan=st.none() | plans,
)


def long_list(count: int, length: int = 40) -> tuple[PlannedChange, ...]:
    return tuple(PlannedChange(f"{n:03d}".ljust(length, "x"), "create") for n in range(count))


def long_steps(count: int) -> tuple[StepDone, ...]:
    return tuple(StepDone(f"step {n}", 0, n) for n in range(count))


@given(documents)
def test_a_document_always_fits_and_always_parses(document: ResultDocument) -> None:
    data = encode(document)

    assert len(data) <= RESULT_LIMIT
    found = decode(data)
    assert decode(encode(found)) == found


@given(documents)
def test_what_is_less_important_is_dropped_first(document: ResultDocument) -> None:
    """Whatever is still there, all that is more important is there whole."""
    whole, found = replace(document, changes=None), decode(encode(document))
    dropped = [
        document.changes is not None and found.changes is None,
        tail(whole) != "" and tail(found) == "",
        listed(found) < listed(whole),
        len(found.steps) < min(len(whole.steps), 64),
        (found.image is None, found.runtime is None) != (document.image is None, document.runtime is None),
    ]
    present = [
        document.changes is None,
        tail(whole) == "",
        listed(whole) == 0,
        not whole.steps,
        document.image is None and document.runtime is None,
    ]
    for place, is_dropped in enumerate(dropped):
        if is_dropped:
            assert all(dropped[i] or present[i] for i in range(place))
            assert place < 3 or listed(found) == 0
            assert place < 4 or not found.steps


@given(documents)
def test_digest_and_counts_are_never_dropped(document: ResultDocument) -> None:
    found = decode(encode(document))

    assert (found.plan is None, found.drift is None) == (document.plan is None, document.drift is None)
    assert (found.error is None) == (document.error is None)
    assert found.error is None or document.error is None or found.error.kind is document.error.kind
    assert found.drift is None or document.drift is None or found.drift.detected == document.drift.detected


def test_counts_of_changes_go_before_anything_else() -> None:
    document = replace(WHOLE, plan=replace(plan_of(), resources=long_list(50)), steps=long_steps(30))

    found = decode(encode(document))

    assert found.changes is None
    assert plan_of(found).hash == HASH
    assert len(found.steps) == 30


def test_the_tail_goes_before_the_lists_and_these_from_their_ends() -> None:
    document = replace(WHOLE, plan=replace(plan_of(), resources=long_list(50, 60)))

    found = decode(encode(document))

    assert tail(found) == ""
    kept = plan_of(found).resources
    assert 0 < len(kept) < 50
    assert kept == long_list(50, 60)[: len(kept)]
    assert found.steps == WHOLE.steps


def test_the_newest_steps_stay() -> None:
    names = tuple(StepDone(f"{n:03d}" + "y" * 29, 0, n) for n in range(64))

    found = decode(encode(replace(WHOLE, steps=names)))

    assert 0 < len(found.steps) < 64
    assert found.steps == names[-len(found.steps) :]
    assert listed(found) == 0
    assert plan_of(found).delete == 4


def test_a_plan_lists_at_most_fifty_and_drift_at_most_twenty() -> None:
    short = tuple(PlannedChange(str(n), "x") for n in range(100))
    document = ResultDocument("drift", drift=DriftSummary(True, resources=short), plan=PlanSummary("", resources=short))

    found = decode(encode(document))

    assert found.drift is not None
    assert (len(plan_of(found).resources), len(found.drift.resources)) == (50, 20)


def test_the_tail_is_at_most_512_bytes() -> None:
    document = ResultDocument("apply", error=Failure(FailureKind.STEP, "apply", "é" * 1000))

    assert 500 < len(tail(decode(encode(document))).encode()) <= 512


@pytest.mark.parametrize("char", ['"', "\\", "\n", "\x00", "é", "\U0001f512", "\ud800", "a"])
def test_the_worst_of_everything_fits_and_keeps_digest_and_counts(char: str) -> None:
    endless, rows = char * 5000, (PlannedChange(char * 5000, char * 5000),) * 1000
    huge = 10**4000
    document = ResultDocument(
        op=endless,
        image=Image(endless, endless),
        runtime=RuntimeUsed(endless, endless),
        steps=(StepDone(endless, -huge, huge),) * 1000,
        drift=DriftSummary(True, huge, huge, huge, huge, rows),
        error=Failure(FailureKind.PLAN_CHANGED, endless, endless),
        changes=Changes(huge, huge, huge, huge),
        plan=PlanSummary(HASH, huge, huge, huge, huge, huge, huge, huge, huge, rows),
    )

    data = encode(document)

    assert len(data) <= RESULT_LIMIT
    assert plan_of(decode(data)).hash == HASH
    assert plan_of(decode(data)).delete > 10**9
