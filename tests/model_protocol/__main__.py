"""Plays the model at full length: `python -m tests.model_protocol --steps 1000000 --seed 1`.

Trials of consecutive seeds until so many steps are taken. A violation prints its seed and the command that replays
it with its story; the exit status is 1 then.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.model_protocol import machine
from tests.model_protocol.mutations import MUTANTS, table, try_out
from tests.model_protocol.trial import Trial, Violated

from stackhold.testing.turns import Carriers


def main() -> int:
    """Play."""
    parser = argparse.ArgumentParser(prog="python -m tests.model_protocol")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first trial")
    parser.add_argument("--replay", type=int, help="play this one seed and tell its story")
    parser.add_argument("--mutants", action="store_true", help="leave out each rule in turn, on a copy")
    parser.add_argument("--only", default="", help="only mutants whose name has this in it")
    parser.add_argument("--machine", type=int, metavar="EXAMPLES", help="let hypothesis play so many worlds instead")
    options = parser.parse_args()
    if options.machine:
        return play_machine(options.machine)
    if options.mutants:
        return try_mutants(options.only, steps=options.steps, seed=options.seed)
    carriers = Carriers()
    if options.replay is not None:
        return replay(options.replay, carriers)
    began, steps, seed, reported = time.monotonic(), 0, options.seed, 0
    while steps < options.steps:
        trial = Trial(seed, carriers)
        try:
            steps += trial.run()
        except Violated as violated:
            print(f"VIOLATION after {steps + trial.world.steps} steps, seed {seed}: {violated}")
            print(f"replay: python -m tests.model_protocol --replay {seed}")
            return 1
        seed += 1
        if steps // 50_000 > reported:
            reported = steps // 50_000
            print(f"{steps} steps, {seed - options.seed} trials, {time.monotonic() - began:.0f} s", flush=True)
    spent = time.monotonic() - began
    print(f"{steps} steps in {seed - options.seed} trials (seeds {options.seed} to {seed - 1}), 0 violations, ", end="")
    print(f"{spent:.0f} s, {steps / spent:.0f} steps/s")
    return 0


def play_machine(examples: int) -> int:
    """Let hypothesis choose; it prints the story that it has shrunk when a promise is broken."""
    machine.play(examples, is_repeatable=False)
    print(f"hypothesis played {examples} worlds, 0 violations")
    return 0


def try_mutants(only: str, *, steps: int, seed: int) -> int:
    """Leave out each rule, and expect a violation for each."""
    verdicts = []
    for mutant in MUTANTS:
        if only in mutant.name:
            verdicts.append(try_out(mutant, steps=steps, seed=seed))
            print(table(verdicts[-1:]), flush=True)
    caught = sum(bool(verdict.violation) for verdict in verdicts)
    print(f"{caught} of {len(verdicts)} mutants caught")
    return int(caught < len(verdicts))


def replay(seed: int, carriers: Carriers) -> int:
    """Tell the story of one seed."""
    trial = Trial(seed, carriers, keeps_story=True)
    status = 0
    try:
        trial.run()
    except Violated:
        status = 1
    print("\n".join(trial.world.story))
    print("\n".join(f"VIOLATION: {text}" for text in trial.world.referee.violations) or "no violation")
    return status


if __name__ == "__main__":
    sys.exit(main())
