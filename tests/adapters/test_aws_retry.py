"""Whether a failed try is made again: the line between what surely did nothing and what may have happened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.adapters.aws_failures import Failure, Kind
from stackhold.adapters.aws_retry import Again, End, Tries, next_try
from stackhold.ports.aws import Resend

BUDGET = 240_000
FAILURES = {kind: Failure(kind, "Code", "reason") for kind in Kind}


def histories() -> st.SearchStrategy[Tries]:
    some = st.integers(0, 40)
    return st.builds(Tries, throttled=some, lost=some, unsent=some)


@given(tries=histories(), left=st.integers(-1000, BUDGET), jitter=st.floats(0, 1))
def test_a_lost_try_of_what_must_not_be_sent_twice_is_always_the_last(tries: Tries, left: int, jitter: float) -> None:
    lost = FAILURES[Kind.LOST]
    assert next_try(tries.with_failure(lost), lost, resend=Resend.NEVER, left_ms=left, jitter=jitter) is End.UNKNOWN


@given(
    tries=histories(),
    kind=st.sampled_from(Kind),
    resend=st.sampled_from(Resend),
    left=st.integers(-1000, BUDGET),
    jitter=st.floats(0, 1),
)
def test_a_wait_is_positive_bounded_and_inside_the_budget(
    tries: Tries, kind: Kind, resend: Resend, left: int, jitter: float
) -> None:
    failure = FAILURES[kind]
    verdict = next_try(tries.with_failure(failure), failure, resend=resend, left_ms=left, jitter=jitter)
    if isinstance(verdict, Again):
        assert 0 < verdict.wait_ms < left
        assert verdict.wait_ms <= 20_000


@given(tries=histories(), kind=st.sampled_from(Kind), resend=st.sampled_from(Resend), left=st.integers(-1000, BUDGET))
def test_only_a_lost_try_can_end_unknown(tries: Tries, kind: Kind, resend: Resend, left: int) -> None:
    failure = FAILURES[kind]
    verdict = next_try(tries.with_failure(failure), failure, resend=resend, left_ms=left, jitter=0.5)
    assert verdict is not End.UNKNOWN or kind is Kind.LOST
    assert verdict is not End.REFUSED or kind is not Kind.LOST


@pytest.mark.parametrize("resend", Resend)
def test_throttling_is_waited_out_for_the_whole_budget_whatever_may_be_resent(resend: Resend) -> None:
    tries, left, waits = Tries(), BUDGET, 0
    throttled = FAILURES[Kind.THROTTLED]
    while True:
        tries = tries.with_failure(throttled)
        verdict = next_try(tries, throttled, resend=resend, left_ms=left, jitter=1.0)
        if not isinstance(verdict, Again):
            break
        left -= verdict.wait_ms
        waits += 1
    assert verdict is End.REFUSED
    assert left < 20_000
    assert waits > 10


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("resend", Resend)
@pytest.mark.parametrize("connect_ms", [0, 3_000, 10_000])
def test_a_service_that_cannot_be_reached_is_called_for_twenty_seconds(
    jitter: float, resend: Resend, connect_ms: int
) -> None:
    tries, now, last = Tries(), 1_000_000, 0
    unsent = FAILURES[Kind.UNSENT]
    while True:
        now += connect_ms
        tries, last = tries.with_failure(unsent, at=now), now
        verdict = next_try(tries, unsent, resend=resend, left_ms=BUDGET, jitter=jitter, at=now)
        if not isinstance(verdict, Again):
            break
        now += verdict.wait_ms
    assert verdict is End.REFUSED
    away = last - 1_000_000
    assert 20_000 <= away <= max(26_000 + 2 * connect_ms, 5 * connect_ms + 3_200)


@pytest.mark.parametrize(("kind", "most"), [(Kind.UNSENT, 4), (Kind.LOST, 9)])
def test_a_dead_endpoint_is_given_up_after_a_number_of_tries(kind: Kind, most: int) -> None:
    tries, count = Tries(), 0
    while isinstance(
        next_try(
            tries := tries.with_failure(FAILURES[kind]),
            FAILURES[kind],
            resend=Resend.SAFE,
            left_ms=BUDGET,
            jitter=0.0,
            patience_ms=0,
        ),
        Again,
    ):
        count += 1
    assert count == most
