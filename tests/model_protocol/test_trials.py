"""The model in short: seeded trials, the same each time, and what they are worth."""

from __future__ import annotations

import pytest
from tests.model_protocol.mutations import MUTANTS, Mutant, mutated, try_out
from tests.model_protocol.trial import Trial

from stackhold.testing.turns import Carriers

SEEDS = 60


@pytest.mark.slow
def test_no_trial_breaks_a_promise() -> None:
    carriers = Carriers()
    steps = sum(Trial(seed, carriers).run() for seed in range(1, SEEDS + 1))
    carriers.close()
    assert steps > SEEDS * 500


def test_a_seed_gives_the_same_story_each_time() -> None:
    carriers = Carriers()
    stories = []
    for _ in range(2):
        trial = Trial(7, carriers, keeps_story=True)
        trial.run()
        stories.append(trial.world.story)
    carriers.close()
    assert stories[0] == stories[1]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_rule_that_can_be_left_out_is_still_in_the_source(mutant: Mutant) -> None:
    assert mutated(mutant)


@pytest.mark.parametrize("name", ["renews without comparing", "acts without a stamp", "judges age by its own clock"])
def test_a_rule_left_out_is_noticed(name: str) -> None:
    verdict = try_out(next(each for each in MUTANTS if each.name == name), steps=20_000, seed=1)
    assert verdict.violation
