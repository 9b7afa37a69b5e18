"""Ten thousand faults of the store: `python -m tests.faults.store_faults --faults 10000 --seed 1`.

Long deploys and destroys by the guarded run that ships, one or two at a time, in the simulated time of the protocol
model. Every other seed keeps its objects in a real directory. The store loses requests and answers, refuses, is away,
answers for a repetition, and (but for a directory) lets writes land late; the model's referee sees every write that
lands. A run that ends without a documented outcome is a failure, as is a saved resource that disappears.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.model_protocol.client import CloudRequest
from tests.model_protocol.steps import Desired
from tests.model_protocol.store import Fate
from tests.model_protocol.trial import Trial, Violated

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.model.instant import MINUTE
from stackhold.model.run import Outcome
from stackhold.testing.turns import Carriers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_protocol.writers import Writer

    from stackhold.testing.turns import Player

ENDINGS = frozenset(
    {
        *(outcome.value for outcome in Outcome),
        "LockHeld",
        "StoreUnreachable",
        "StoreUnanswered",
        "StoreRefused",
    }
)
"""How a run may end here: an outcome of its report, or an error from before it changed anything."""
_WILD_STEPS = 2_500
_NAMES = 24
_TELL_EVERY = 1_000
_SPARED_READS = 0.7
"""A run that cannot read at its very beginning just ends: too many of those would leave the rest untried."""


@dataclass(slots=True)
class StoreTrial(Trial):
    """A trial in which the store is what goes wrong."""

    faults: Counter[str] = field(default_factory=Counter)
    seen: list[Writer] = field(default_factory=list)
    """Every run that began."""

    def __post_init__(self) -> None:
        Trial.__post_init__(self)
        self.is_siege = False
        self.fault_rate = self.dice.choice((0.03, 0.08, 0.15))
        self.slow_rate = self.slow_calls = 0.01

    @property
    def endings(self) -> Counter[str]:
        """The runs that have ended, by how."""
        return Counter(writer.ending.partition(":")[0] for writer in self.seen if not writer.is_alive)

    def _chosen_odds(self) -> list[tuple[Callable[[], None], float]]:
        return [(self._pass_time, 0.02), (self._begin_run, 0.004), (self._land, 0.02)]

    def _begin_run(self) -> None:
        self.begin()

    def begin(self) -> None:
        """One more run, unless two are at work."""
        world = self.world
        if len(world.runs) < 2:
            host = self.dice.choice(world.hosts)
            world.begin_run(host, self._desired(), wait_ms=self.dice.choice((0, 5 * MINUTE)))
            self._note()

    def _note(self) -> None:
        self.seen += [writer for writer in self.world.runs if writer not in self.seen]

    def _fate(self, player: Player) -> Fate:
        request = player.request
        if isinstance(request, CloudRequest):
            return Fate.DONE
        if request is not None and request.method == "read" and self.dice.random() < _SPARED_READS:
            return Fate.DONE
        fate = Trial._fate(self, player)
        if fate is not Fate.DONE:
            self.faults[f"{request.method} {fate.value}"] += 1
        return fate

    def _desired(self) -> Desired:
        dice = self.dice
        names = dice.sample([f"R{index}" for index in range(_NAMES)], dice.randrange(4, _NAMES + 1))
        if dice.random() < 0.1:
            names = []
        return Desired({name: dice.randrange(3) for name in sorted(names)}, self.world.setting.pace_ms)

    def _finish(self) -> None:
        self._note()
        Trial._finish(self)

    def _look(self) -> None:
        Trial._look(self)
        self.look()

    def look(self) -> None:
        """Every run that has ended did so in a documented way; raises `Violated`."""
        for writer in self.seen:
            kind = writer.ending.partition(":")[0]
            if not writer.is_alive and kind not in ENDINGS:
                raise Violated(f"{writer.name} ended with no documented outcome: {writer.ending}")


@dataclass
class Sum:
    """What all trials came to."""

    trials: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def tell(self, seconds: float) -> None:
        """Print it."""
        by_kind = ", ".join(f"{count} {kind}" for kind, count in self.faults.most_common())
        by_end = ", ".join(f"{count} {ending}" for ending, count in self.endings.most_common())
        for failure in self.failures:
            print(failure)
        print(f"faults {self.faults.total()}: {by_kind}")
        print(f"runs {self.endings.total()}: {by_end}")
        print(f"trials {self.trials}, steps {self.steps}, failures {len(self.failures)}, {seconds:.0f} s", flush=True)


def play(seed: int, carriers: Carriers, total: Sum, *, story: list[str] | None = None) -> None:
    """One seed, added to the sum."""
    with tempfile.TemporaryDirectory(prefix="stackhold-faults-") as folder:
        inner = DirectoryStore(Path(folder), clock=SystemClock()) if seed % 2 == 0 else None
        trial = StoreTrial(
            seed, carriers, wild_steps=_WILD_STEPS, inner=inner, has_late=inner is None, keeps_story=story is not None
        )
        try:
            trial.run()
        except Violated as violated:
            replay = f"replay: python -m tests.faults.store_faults --replay {seed}"
            total.failures.append(f"VIOLATION, seed {seed}: {violated}\n{replay}")
        finally:
            if story is not None:
                story += trial.world.story
    total.trials += 1
    total.steps += trial.world.steps
    total.faults += trial.faults
    total.endings += trial.endings


def main() -> int:
    """Play seeds until so many faults were injected."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.store_faults")
    parser.add_argument("--faults", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--replay", type=int, metavar="SEED", help="play this one seed and tell its story")
    options = parser.parse_args()
    carriers, total, began = Carriers(), Sum(), time.monotonic()
    if options.replay is not None:
        story: list[str] = []
        play(options.replay, carriers, total, story=story)
        print("\n".join(story))
    seed = options.seed
    while options.replay is None and total.faults.total() < options.faults:
        before = total.faults.total() // _TELL_EVERY
        play(seed, carriers, total)
        seed += 1
        if total.faults.total() // _TELL_EVERY > before:
            print(f"{total.faults.total()} faults, {total.trials} trials, {len(total.failures)} failures", flush=True)
    total.tell(time.monotonic() - began)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
