"""A few hundred faults of the store; `make faults` plays ten thousand. Also: the bench notices what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults.store_faults import StoreTrial, Sum, play
from tests.model_protocol.trial import Violated

from stackhold.testing.turns import Carriers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def carriers() -> Iterator[Carriers]:
    carriers = Carriers()
    yield carriers
    carriers.close()


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_whatever_the_store_does_nothing_saved_is_lost_and_every_run_ends_in_words(
    seed: int, carriers: Carriers
) -> None:
    total = Sum()
    play(seed, carriers, total)
    assert total.failures == []
    assert total.faults.total() > 10
    assert total.endings["succeeded"]


def test_an_ending_that_nobody_documented_is_noticed(carriers: Carriers) -> None:
    trial = StoreTrial(1, carriers, wild_steps=200)
    trial.begin()
    trial.seen[0].is_alive, trial.seen[0].ending = False, "KeyError: 'Account'"
    with pytest.raises(Violated, match="no documented outcome: KeyError"):
        trial.look()
    trial.world.close()
