"""What a CI runner does to a job that it cancels: `python -m tests.faults.ci_runner --count 50`.

SIGINT, SIGTERM 7.5 s later, SIGKILL 2.5 s after that, against a deploy with `--grace 8` whose calls take longer than
that. A seed chooses from which call on they are slow, when the first signal comes, and what becomes of those in
flight: carried out at once and answered too late, carried out when the process is gone, carried out when the next run
has settled, or never. Each time the lock is free, and the next run (after it the one after) brings the stack where the
template wants it. Rounds mostly wait, so that several are played at a time.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from tests.faults.disturb import shuffled
from tests.faults.operations import operation
from tests.faults.points import STACK
from tests.faults.rounds import OPERATIONS, TEMPLATE, Ground, Outcome, Round, Undisturbed, ground, options, play
from tests.faults.stage import COMMAND_SECONDS

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.faults.stage import Ended

    from stackhold.testing.aws_requests import Named
    from stackhold.testing.http_messages import Message
    from stackhold.testing.proxy import Call

Fate = Literal["answered late", "lands before the next run", "lands after the next run", "never lands"]
_FATES: Final[tuple[Fate, ...]] = get_args(Fate)
_TERM_SECONDS: Final = 7.5
_KILL_SECONDS: Final = 2.5
_MOST_SKIPPED: Final = 20
_LOOKS: Final = ("Get", "List", "Describe", "Head", "Batch")
_LAND_SECONDS: Final = 30.0


@dataclass
class Slow:
    """Calls of a run that take longer than it lives, from the n-th change on."""

    fate: Fate
    skip: int
    is_over: bool = False
    """The run has ended: what is asked from now on is not slow."""
    landing: threading.Event = field(default_factory=threading.Event)
    caught: list[Call] = field(default_factory=list)
    _met: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def rule(self) -> Rule:
        """For the proxy."""
        rule = Rule(when=self._is_slow)
        if self.fate == "answered late":
            rule.after = self._wait
        else:
            rule.before = self._wait
            rule.drop = "before" if self.fate == "never lands" else None
        return rule

    def end(self) -> None:
        """Let what is in flight go on, and wait until it has landed."""
        self.landing.set()
        give_up = time.monotonic() + _LAND_SECONDS
        while self.fate != "never lands" and time.monotonic() < give_up:
            if all(call.status or call.named.operation.startswith(_LOOKS) for call in self.caught):
                return
            time.sleep(0.01)

    def _is_slow(self, named: Named, _: Message) -> bool:
        """The state is reached at any time: what could a run save otherwise?"""
        if named.service == "s3" or self.is_over:
            return False
        with self._guard:
            self._met += not named.operation.startswith(_LOOKS)
            return self._met > self.skip

    def _wait(self, call: Call) -> None:
        self.caught.append(call)
        self.landing.wait(COMMAND_SECONDS)


@dataclass(frozen=True)
class Cancelling:
    """Rounds that a CI runner cancels."""

    ground: Ground
    undisturbed: Mapping[str, Undisturbed]

    def play(self, seed: int) -> Outcome:
        """One round."""
        chance = random.Random(seed)
        name, fate = chance.choice(OPERATIONS), chance.choice(_FATES)
        slow, after_seconds = Slow(fate, chance.randrange(_MOST_SKIPPED)), chance.uniform(0, 1.0)
        with self.ground.stage() as on:
            played = Round(on, operation(name, TEMPLATE, on.folder), on.held())
            played.operation.prepare(on)
            on.proxy.add(shuffled(seed))
            rule = on.proxy.add(slow.rule())
            ended, met = self._cancelled(played, rule, after_seconds)
            slow.is_over = True
            played.took(ended)
            if (lock := on.stored("lock.json")) is not None:
                played.problems.append(f"the lock is still there: {lock}")
                on.run("force-unlock", STACK, "--yes")
            if slow.fate != "lands after the next run":
                slow.end()
            played.run(*played.operation.command)
            if slow.fate == "lands after the next run":
                slow.end()
                played.run(*played.operation.command)
            played.look_settled(self.undisturbed[name].held, self.undisturbed[name].recorded)
            if played.problems:
                about = f"{name}, {fate}, slow from change {slow.skip} on, caught {[c.label for c in slow.caught]}"
                played.problems.append(f"the cancelled command ({about}): {ended.told()}")
                played.problems += [f"then: {after.told()}" for after in played.ran[1:]]
            return Outcome(seed, f"{met}, exit {ended.code}", tuple(played.problems))

    def _cancelled(self, played: Round, rule: Rule, after_seconds: float) -> tuple[Ended, str]:
        """Its end, and which signal it met last."""
        command = played.on.start(*played.operation.command, "--grace", "8")
        while not rule.reached.wait(0.01) and not command.ended.is_set():
            pass
        command.ended.wait(after_seconds)
        met = "over before the first signal" if command.ended.is_set() else "over within 7.5 s"
        command.signal(signal.SIGINT)
        if not command.ended.wait(_TERM_SECONDS):
            met = "SIGTERM came"
            command.signal(signal.SIGTERM)
        if not command.ended.wait(_KILL_SECONDS):
            met = "SIGKILL came"
            command.signal(signal.SIGKILL)
        return played.on.end(command), met


def cancelling(on: Ground) -> Cancelling:
    """Rehearse."""
    return Cancelling(on, {name: on.rehearse(name, delay_ms=0) for name in OPERATIONS})


def main() -> int:
    """Play."""
    asked = options("tests.faults.ci_runner", count=50, at_once=8).parse_args()
    began = time.monotonic()
    with ground() as on:
        rounds = cancelling(on)

        def replay(seed: int) -> str:
            return f"python -m tests.faults.ci_runner --count 1 --seed {seed}"

        seeds = range(asked.seed, asked.seed + asked.count)
        well, counts = play(rounds.play, seeds, at_once=asked.at_once, replay=replay)
    for how in sorted(counts):
        print(f"  {how}: {counts[how]}")
    print(f"INT, TERM, KILL of a CI runner: {well} of {asked.count}, {time.monotonic() - began:.0f} s", flush=True)
    return 0 if well == asked.count else 1


if __name__ == "__main__":
    sys.exit(main())
