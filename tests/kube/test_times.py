"""The API server's times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.kube.times import micro_time, parse_time, second_time
from stackhold.model.instant import Instant

instants = st.integers(1, 4 * 10**12).map(Instant)


@given(at=instants)
def test_a_time_is_read_as_it_was_written(at: Instant) -> None:
    assert parse_time(micro_time(at)) == at
    assert parse_time(second_time(at)) == at // 1000 * 1000


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-30T23:41:31Z", 1_796_082_091_000),
        ("2026-11-30T23:41:31.250000Z", 1_796_082_091_250),
        ("2026-12-01T00:41:31.25+01:00", 1_796_082_091_250),
        ("2026-11-30T23:41:31", 1_796_082_091_000),
    ],
)
def test_every_form_the_api_uses_is_read(text: str, at: int) -> None:
    assert parse_time(text) == at


@pytest.mark.parametrize("text", [None, "", "soon", 5, "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_none(text: object) -> None:
    assert parse_time(text) is None
