"""The check of the two clocks says what contradicts what, and where each value comes from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.clocks import check_clocks
from stackhold.errors import PolicyInvalid
from stackhold.model.instant import Millis, Span


@given(deadline=st.integers(-5_000, 90_000_000), lock_wait=st.integers(-5_000, 4_000_000))
def test_exactly_the_settings_in_range_with_the_wait_below_the_deadline_pass(deadline: int, lock_wait: int) -> None:
    is_right = 1_000 <= deadline <= 86_400_000 and 0 <= lock_wait <= 3_600_000 and lock_wait < deadline
    try:
        check_clocks(deadline=Span(Millis(deadline)), lock_wait=Span(Millis(lock_wait)))
    except PolicyInvalid:
        assert not is_right
    else:
        assert is_right


def test_the_message_names_both_values_and_where_they_come_from() -> None:
    with pytest.raises(PolicyInvalid) as caught:
        check_clocks(deadline=Span(Millis(60_000), "--deadline"), lock_wait=Span(Millis(300_000)))
    assert caught.value.message == (
        "the lock wait (300 s, the built-in default) must be less than the deadline (60 s, from --deadline)"
    )
