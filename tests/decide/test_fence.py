"""A holder stops well before anyone may take its lock over, and never opens again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.fence import Fence, fence, margins
from stackhold.model.instant import CLOCK_SLACK, MINUTE, SECOND

ttls = st.integers(1000, 24 * 60 * MINUTE)


def test_the_margins_of_half_an_hour_are_five_minutes_and_one() -> None:
    limits = margins(30 * MINUTE)
    assert (limits.stand_down_ms, limits.cut_ms, limits.call_budget_ms) == (25 * MINUTE, 29 * MINUTE, 240 * SECOND)


@given(ttls)
def test_a_call_that_starts_before_standing_down_ends_before_the_lock_can_be_taken(ttl: int) -> None:
    limits = margins(ttl)
    assert 0 < limits.stand_down_ms <= limits.cut_ms <= ttl
    assert limits.stand_down_ms + limits.call_budget_ms <= limits.cut_ms + 1 < ttl + CLOCK_SLACK


@given(ttls, st.lists(st.integers(0, 25 * 60 * MINUTE), max_size=20))
def test_standing_down_is_one_way(ttl: int, silences: list[int]) -> None:
    limits = margins(ttl)
    state = Fence.OPEN
    for silent_ms in silences:
        after = fence(silent_ms=silent_ms, limits=limits, before=state)
        assert after >= state
        assert (after is Fence.OPEN) == (state is Fence.OPEN and silent_ms < limits.stand_down_ms)
        state = after
