from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackhold.model.instant import Instant, clock_time, date_time, iso


@given(st.integers(-(10**20), 10**20))
def test_any_number_in_a_stored_object_can_be_shown(number: int) -> None:
    at = Instant(number)
    assert iso(at)
    assert clock_time(at)
    assert date_time(at)


def test_moments_are_shown_in_utc() -> None:
    at = Instant(1_796_061_740_008)
    assert iso(at) == "2026-11-30T18:02:20.008Z"
    assert clock_time(at) == "18:02:20Z"
    assert date_time(at) == "2026-11-30 18:02:20Z"
