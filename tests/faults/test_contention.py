"""A few rounds of eight processes that compete for one lock; `make faults` plays a thousand on each store.

Also: the contest notices a store that grants a lock twice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.faults.compete import CARELESS
from tests.faults.contention import Tally, bucket, contest, told

if TYPE_CHECKING:
    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.story
ROUNDS = 10


def test_eight_processes_have_one_holder_at_a_time_in_a_directory() -> None:
    tally = contest("directory", rounds=ROUNDS, processes=8, seed=1, environment={})
    assert tally.failures == []
    assert (tally.finished, tally.rounds, tally.overlaps) == (8, ROUNDS, 0)
    assert tally.holds.total() == ROUNDS - 1 + 8


@pytest.mark.emulator
def test_four_processes_have_one_holder_at_a_time_in_a_bucket(
    ministack: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with bucket(ministack) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        tally = contest("s3", rounds=ROUNDS, processes=4, seed=1, environment=environment)
    assert tally.failures == []
    assert tally.holds.total() == ROUNDS - 1 + 4


def test_a_store_that_grants_a_lock_twice_is_noticed() -> None:
    tally = contest(CARELESS, rounds=2, processes=3, seed=1, environment={})
    assert tally.failures
    assert tally.overlaps or "holders" in tally.failures[0]


def test_the_counts_are_told_in_one_line() -> None:
    tally = Tally(rounds=3, races=2, overlaps=1, finished=7, failures=["1 overlaps"])
    line = told("directory", tally, 8, 4.2)
    assert line.startswith("directory: processes 8, finished 7, rounds 3 (2 races), holders 0, overlaps 1, failures 1")
