from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.cli.durations import flag_text, parse_duration


@pytest.mark.parametrize(
    ("text", "ms"),
    [("300", 300_000), ("90s", 90_000), ("5m", 300_000), ("2h", 7_200_000), ("1h30m", 5_400_000), ("250ms", 250)],
)
def test_a_duration_takes_seconds_or_a_unit(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "five", "-1", "1d", "5 minutes", "m5", "1h-5m", "٣"])
def test_what_is_no_duration_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


@given(st.integers(0, 10**9))
def test_the_text_of_a_span_reads_back_as_that_span(ms: int) -> None:
    assert parse_duration(flag_text(ms)) == ms
