"""Bytes written grow with the length of a run, not with the square of its changes."""

from __future__ import annotations

import pytest

from stackhold.decide.pacing import SAVE_FLOOR_MS, pause_after


@pytest.mark.parametrize("resources", [100, 1_000, 10_000])
def test_bytes_per_second_are_bounded_however_many_resources_there_are(resources: int) -> None:
    size_of_one, ms_per_change = 800, 10
    now = written = 0
    while now < resources * ms_per_change:
        size = max(1, now // ms_per_change) * size_of_one
        written += size
        now += pause_after(size, floor_ms=SAVE_FLOOR_MS)
    assert written <= 600 * resources * ms_per_change


def test_a_small_record_is_saved_at_most_every_300_ms() -> None:
    assert pause_after(10, floor_ms=SAVE_FLOOR_MS) == 300
