"""Rounds: the same story over and over, each with a seed and an account of its own, several at a time.

All share one emulator and the process that starts commands. A round that goes wrong prints the command that plays it
again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.looks import beyond, difference, recorded_ids, unrecorded
from tests.faults.operations import Operation, Unprepared, operation
from tests.faults.points import STACK, label
from tests.faults.stage import BUCKET, Stage
from tests.faults.zygote import Zygote

from stackhold.testing import emulators
from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.faults.stage import Ended

    from stackhold.testing.emulators import Emulator

TEMPLATE = "serverless"
OPERATIONS = ("deploy", "update")
_FIRST_ACCOUNT = 100_000_000_000


@dataclass(frozen=True)
class Undisturbed:
    """What an operation takes and leaves when nobody disturbs it."""

    span_ms: int
    """From its first request for the lock."""
    held: Mapping[str, int]
    recorded: frozenset[str]


@dataclass
class Ground:
    """What all rounds share: an emulator, the process that starts commands, a folder."""

    emulator: Emulator
    zygote: Zygote
    folder: Path
    _accounts: int = 0

    @contextlib.contextmanager
    def stage(self) -> Iterator[Stage]:
        """An account in which nothing is but a bucket for the state, with a proxy before it."""
        self._accounts += 1
        number = self._accounts
        folder = self.folder / str(number)
        folder.mkdir()
        with SlowProxy(self.emulator.url, label=label) as proxy:
            account, bucket = str(_FIRST_ACCOUNT + number), f"{BUCKET}-{number}"
            made = Stage(self.emulator, proxy, self.zygote, folder, account, bucket)
            made.found()
            yield made

    def rehearse(self, name: str, *, delay_ms: int) -> Undisturbed:
        """Run an operation undisturbed, with each of its requests delayed."""
        with self.stage() as on:
            played = Round(on, operation(name, TEMPLATE, on.folder), on.held())
            played.operation.prepare(on)
            on.proxy.delay_ms = delay_ms
            began: list[float] = []
            on.proxy.add(locking(lambda: began.append(time.monotonic())))
            ended = on.run(*played.operation.command)
            if ended.code:
                raise Unprepared(ended.told())
            span_ms = int((time.monotonic() - began[0]) * 1000)
            record = on.stored("state.json") or {}
            held = {kind: len(names) for kind, names in played.held().items()}
            return Undisturbed(span_ms, held, frozenset(record["resources"]))


def locking(then: Callable[[], None]) -> Rule:
    """Calls back when the first request for a lock comes."""
    return Rule(service="s3", operation="PutObject", path="*/lock.json", times=1, before=lambda _: then())


@contextlib.contextmanager
def ground(emulator: Emulator | None = None) -> Iterator[Ground]:
    """Set it up, with an emulator of its own unless one is given."""
    with contextlib.ExitStack() as stack:
        running = emulator or stack.enter_context(emulators.running("ministack"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stackhold-rounds-")))
        zygote = Zygote(folder)
        stack.callback(zygote.close)
        yield Ground(running, zygote, folder)


@dataclass
class Round:
    """One round: its stage, its operation, what is wrong so far."""

    on: Stage
    operation: Operation
    nothing: Mapping[str, list[str]]
    problems: list[str] = field(default_factory=list)
    ran: list[Ended] = field(default_factory=list)

    def held(self) -> dict[str, list[str]]:
        """What exists of the stack."""
        return beyond(self.on.held(), self.nothing)

    def run(self, *args: str) -> Ended:
        """Run a command that must go well."""
        ended = self.on.run(*args)
        self.took(ended)
        if ended.code:
            self.problems.append(ended.told())
        return ended

    def took(self, ended: Ended) -> None:
        """Look at a command that has ended."""
        self.ran.append(ended)
        if "Traceback" in ended.err:
            self.problems.append(ended.told())

    def look_whole(self) -> None:
        """The lock is free, and the record holds exactly what exists, as it is."""
        if (lock := self.on.stored("lock.json")) is not None:
            self.problems.append(f"the lock is still there: {lock}")
        record = self.on.stored("state.json")
        self.problems += unrecorded(self.held(), recorded_ids(record))
        if record is not None and record["resources"]:
            self.run("drift", STACK)

    def look_settled(self, want: Mapping[str, int], recorded: frozenset[str]) -> None:
        """The stack is as an undisturbed run leaves it."""
        self.look_whole()
        record = self.on.stored("state.json") or {}
        self.problems += [f"there is {what}" for what in difference(self.held(), want)]
        if wrong := recorded ^ set(record.get("resources", {})):
            self.problems.append(f"recorded is {sorted(wrong)} otherwise than it should be")
        if record.get("pendingDeletes"):
            self.problems.append(f"to be deleted yet: {record['pendingDeletes']}")
        if self.on.stored("rollback-journal.json") is not None:
            self.problems.append("the rollback journal is still there")

    def look_empty(self) -> None:
        """The next run finds nothing to do."""
        if not json.loads(self.run(*self.operation.command, "--json").out or "{}").get("isEmpty"):
            self.problems.append("a further run finds something to do")


@dataclass(frozen=True)
class Outcome:
    """How one round went: in a word, for the counts, and what was wrong."""

    seed: int
    how: str
    problems: tuple[str, ...]


def play(
    rounds: Callable[[int], Outcome], seeds: range, *, at_once: int, replay: Callable[[int], str]
) -> tuple[int, dict[str, int]]:
    """Play a round for each seed; how many went well, and how many went which way. Tells of each that did not."""
    well, counts = 0, dict[str, int]()
    with ThreadPoolExecutor(at_once) as pool:
        for outcome in pool.map(lambda seed: _played(rounds, seed), seeds):
            counts[outcome.how] = counts.get(outcome.how, 0) + 1
            if not outcome.problems:
                well += 1
                continue
            shown = "\n  ".join("\n".join(outcome.problems).splitlines())
            print(
                f"FAILURE of seed {outcome.seed} ({outcome.how}):\n  {shown}\n  replay: {replay(outcome.seed)}",
                flush=True,
            )
    return well, counts


def options(prog: str, *, count: int, at_once: int) -> argparse.ArgumentParser:
    """The flags that all kinds of rounds have."""
    parser = argparse.ArgumentParser(prog=f"python -m {prog}")
    parser.add_argument("--count", type=int, default=count, help="how many rounds")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; the others follow")
    parser.add_argument("--at-once", type=int, default=at_once, metavar="N", help="play N rounds at a time")
    return parser


def _played(rounds: Callable[[int], Outcome], seed: int) -> Outcome:
    try:
        return rounds(seed)
    except (TimeoutError, Unprepared) as error:
        return Outcome(seed, "stuck", (str(error),))
