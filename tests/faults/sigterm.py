"""SIGTERM at a random moment of a deploy: `python -m tests.faults.sigterm --count 200`.

Each round deploys the example `serverless` anew, or changes it with replacements, and asks the run to stop at a moment
that the seed decides, mostly from when it asks for its lock. Then the lock is free, the record holds exactly what the
emulator holds, and the rollback journal tells the difference between the records before and after. Every third round
takes the change back with `rollback`; each one ends with a deploy that brings the stack where the template wants it,
and one that finds nothing to do.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.faults.looks import misjournalled
from tests.faults.operations import operation
from tests.faults.points import STACK
from tests.faults.rounds import (
    OPERATIONS,
    TEMPLATE,
    Ground,
    Outcome,
    Round,
    Undisturbed,
    ground,
    locking,
    options,
    play,
)
from tests.faults.stage import COMMAND_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.faults.stage import Ended

DELAY_MS = 15
_EARLY = 0.1
"""How many are counted from their start."""
_STOPPED = 143
_ALL_DONE = "everything had been done"
"""Said by a run that was asked to stop when its work was done: there is nothing that a rollback would be for."""
_HOW = {0: "came too late", _STOPPED: "stopped", -signal.SIGTERM: "killed before there was a run"}


@dataclass(frozen=True)
class Stopping:
    """Rounds that are asked to stop. `spans` are how long the operations take undisturbed."""

    ground: Ground
    undisturbed: Mapping[str, Undisturbed]
    spans: Mapping[str, int]

    def play(self, seed: int) -> Outcome:
        """One round."""
        chance = random.Random(seed)
        name = chance.choice(OPERATIONS)
        is_locking = threading.Event()
        if chance.random() < _EARLY:
            is_locking.set()
        after_ms = chance.uniform(0, self.spans[name])
        with self.ground.stage() as on:
            played = Round(on, operation(name, TEMPLATE, on.folder), on.held())
            played.operation.prepare(on)
            before, stood = on.stored("state.json"), played.held()
            ended = self._stopped(played, is_locking, after_ms / 1000)
            how = f"{name} {_HOW.get(ended.code, f'exited {ended.code}')}"
            if ended.code not in _HOW:
                played.problems.append(f"exited {ended.code}")
            played.look_whole()
            self._look_at_what_was_done(played, before)
            if seed % 3 == 0 and on.stored("rollback-journal.json") is not None:
                played.run("rollback", STACK, "--yes")
                played.look_settled({kind: len(names) for kind, names in stood.items()}, _names(before))
            played.run(*played.operation.command)
            played.look_settled(self.undisturbed[name].held, self.undisturbed[name].recorded)
            played.look_empty()
            if played.problems:
                played.problems.append(f"the stopped command, after {after_ms:.0f} ms: {ended.told()}")
            return Outcome(seed, how, tuple(played.problems))

    def _stopped(self, played: Round, since: threading.Event, seconds: float) -> Ended:
        on = played.on
        on.proxy.delay_ms = DELAY_MS
        on.proxy.add(locking(since.set))
        command = on.start(*played.operation.command)
        since.wait(COMMAND_SECONDS)
        command.ended.wait(seconds)
        command.signal(signal.SIGTERM)
        ended = on.end(command)
        on.proxy.delay_ms = 0
        played.took(ended)
        return ended

    def _look_at_what_was_done(self, played: Round, before: Mapping[str, object] | None) -> None:
        on = played.on
        if on.stored("run.json") is not None:
            played.problems.append(f"the run file is still there: {on.stored('run.json')}")
        after, journal = on.stored("state.json"), on.stored("rollback-journal.json")
        if played.ran[0].code == 0 or _ALL_DONE in played.ran[0].err:
            if journal is not None:
                played.problems.append("a run that came to its end has left a rollback journal")
            return
        played.problems += misjournalled(journal, before, after)
        if journal is not None and journal["segments"][-1]["reason"] != "interrupted":
            played.problems.append(f"the journal's reason is {journal['segments'][-1]['reason']}")


def stopping(on: Ground, spans: Mapping[str, int] | None = None) -> Stopping:
    """Rehearse, which also measures the spans that are not given."""
    undisturbed = {name: on.rehearse(name, delay_ms=DELAY_MS) for name in OPERATIONS}
    return Stopping(
        on, undisturbed, {name: (spans or {}).get(name) or undisturbed[name].span_ms for name in OPERATIONS}
    )


def _names(record: Mapping[str, object] | None) -> frozenset[str]:
    resources = (record or {}).get("resources", {})
    assert isinstance(resources, dict)
    return frozenset(resources)


def main() -> int:
    """Play."""
    parser = options("tests.faults.sigterm", count=200, at_once=3)
    for name in OPERATIONS:
        parser.add_argument(
            f"--{name}-ms", type=int, help=f"how long the {name} takes from its lock; measured when not given"
        )
    asked = parser.parse_args()
    began = time.monotonic()
    with ground() as on:
        rounds = stopping(on, {name: getattr(asked, f"{name}_ms") for name in OPERATIONS})
        flags = " ".join(f"--{name}-ms {rounds.spans[name]}" for name in OPERATIONS)

        def replay(seed: int) -> str:
            return f"python -m tests.faults.sigterm --count 1 --seed {seed} {flags}"

        seeds = range(asked.seed, asked.seed + asked.count)
        well, counts = play(rounds.play, seeds, at_once=asked.at_once, replay=replay)
    for how in sorted(counts):
        print(f"  {how}: {counts[how]}")
    print(f"SIGTERM at a random moment: {well} of {asked.count}, {time.monotonic() - began:.0f} s", flush=True)
    return 0 if well == asked.count else 1


if __name__ == "__main__":
    sys.exit(main())
