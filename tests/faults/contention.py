"""Eight processes, one lock: `python -m tests.faults.contention --rounds 1000 --processes 8 --store directory`.

A round lets all processes go at once. In a race nobody waits, and whoever gets the lock keeps it until everybody else
was turned away: exactly one holder. In a queue, every tenth round, all wait, and all have their turn. Two inside at
once are an overlap; the sums in the record at the end show that no save was lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tests.faults.compete import BUCKET, KEYS, STORES, counted, store_of

from stackhold.model.codec import decode_record
from stackhold.ports.store import Stored
from stackhold.testing import emulators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.ports.store import Store

_QUEUE_EVERY = 10
_SECONDS = 120.0


@dataclass
class Competitor:
    """One of the processes."""

    name: str
    process: subprocess.Popen[bytes]
    _left: bytes = b""

    def tell(self, order: object) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    @property
    def out(self) -> IO[bytes]:
        """Where it speaks."""
        assert self.process.stdout is not None
        return self.process.stdout

    def words(self) -> list[str]:
        """The whole lines that can be read now; raises `EOFError` when it is gone."""
        data = os.read(self.out.fileno(), 65_536)
        if not data:
            raise EOFError(f"{self.name} is gone")
        *lines, self._left = (self._left + data).split(b"\n")
        return [line.decode() for line in lines]


@dataclass
class Tally:
    """What came of it."""

    rounds: int = 0
    races: int = 0
    holds: Counter[str] = field(default_factory=Counter)
    overlaps: int = 0
    finished: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass
class Contest:
    """All rounds on one store."""

    competitors: list[Competitor]
    seed: int
    tally: Tally = field(default_factory=Tally)

    def play(self, number: int) -> None:
        """One round."""
        dice = random.Random(f"{self.seed} {number}")
        is_race = number % _QUEUE_EVERY != 0
        self.tally.rounds += 1
        self.tally.races += is_race
        for each in dice.sample(self.competitors, len(self.competitors)):
            each.tell({"round": number, "stays": is_race, "after_ms": dice.choice((0, 0, 0, dice.random() * 5))})
        ends, inside = self._watch(number, is_race=is_race)
        expected = {"done": 1, "held": len(self.competitors) - 1} if is_race else {"done": len(self.competitors)}
        if ends != {key: count for key, count in expected.items() if count} or inside != expected["done"]:
            self.tally.failures.append(f"round {number}: {inside} holders; {dict(ends)}")

    def _watch(self, number: int, *, is_race: bool) -> tuple[Counter[str], int]:
        """Listen until everybody has ended; in a race the holder is let go once all others were turned away."""
        ends: Counter[str] = Counter()
        holders: list[Competitor] = []
        inside = 0
        give_up = time.monotonic() + _SECONDS
        by_file = {each.out.fileno(): each for each in self.competitors}
        while ends.total() < len(self.competitors):
            ready, _, _ = select.select(list(by_file), [], [], max(0.0, give_up - time.monotonic()))
            if not ready:
                raise TimeoutError(f"round {number} does not end: {dict(ends)}, {inside} holders")
            for file in ready:
                for word in by_file[file].words():
                    if word == "overlap":
                        self.tally.overlaps += 1
                    elif word == "in":
                        inside += 1
                        self.tally.holds[by_file[file].name] += 1
                        holders += [by_file[file]] if is_race else []
                    else:
                        ends[word] += 1
            if holders and ends.total() + len(holders) >= len(self.competitors):
                for holder in holders:
                    holder.tell("leave")
                holders = []
        return ends, inside

    def end(self, store: Store) -> None:
        """Let all processes finish, and compare what they did with what the record says."""
        for each in self.competitors:
            assert each.process.stdin is not None
            each.process.stdin.close()
        self.tally.finished = sum(each.process.wait(_SECONDS) == 0 for each in self.competitors)
        found = store.read(KEYS.record)
        record = decode_record(found.data, key=KEYS.record) if isinstance(found, Stored) else None
        recorded = {str(name): counted(one) for name, one in record.resources.items()} if record is not None else {}
        if recorded != dict(self.tally.holds):
            self.tally.failures.append(f"the record counts {recorded}, seen were {dict(self.tally.holds)}")
        for key in (KEYS.lock, KEYS.run_file):
            if isinstance(store.read(key), Stored):
                self.tally.failures.append(f"{key} was left")
        if self.tally.finished < len(self.competitors):
            self.tally.failures.append(f"only {self.tally.finished} processes finished")


def contest(kind: str, *, rounds: int, processes: int, seed: int, environment: Mapping[str, str]) -> Tally:
    """Play all rounds on a new store. `environment` is for those that reach a bucket."""
    with tempfile.TemporaryDirectory(prefix="stackhold-contention-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        competitors = [_started(kind, folder, f"p{index}", environment) for index in range(processes)]
        for each in competitors:
            stack.callback(_stopped, each)
        played = Contest(competitors, seed)
        for each in competitors:
            _wait_ready(each)
        try:
            for number in range(1, rounds + 1):
                played.play(number)
            played.end(_seen_from_here(kind, folder, environment))
        except (TimeoutError, EOFError, BrokenPipeError) as error:
            played.tally.failures.append(str(error))
        played.tally.failures += [f"{played.tally.overlaps} overlaps"] if played.tally.overlaps else []
        return played.tally


def _started(kind: str, folder: Path, name: str, environment: Mapping[str, str]) -> Competitor:
    command = [sys.executable, "-m", "tests.faults.compete", "--name", name, "--store", kind, "--folder"]
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "STACKHOLD_"))}
    process = subprocess.Popen(
        [*command, str(folder)],
        cwd=Path(__file__).resolve().parents[2],
        env={**kept, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    return Competitor(name, process)


def _wait_ready(competitor: Competitor) -> None:
    while "ready" not in competitor.words():
        pass


def _stopped(competitor: Competitor) -> None:
    process = competitor.process
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _seen_from_here(kind: str, folder: Path, environment: Mapping[str, str]) -> Store:
    """The same store, for whoever watches."""
    os.environ.update(environment)
    return store_of(kind, folder)


@contextlib.contextmanager
def bucket(emulator: emulators.Emulator | None = None) -> Iterator[dict[str, str]]:
    """An empty bucket; the environment that reaches it."""
    import boto3

    with contextlib.ExitStack() as stack:
        running = emulator or stack.enter_context(emulators.running("ministack"))
        client: Any = boto3.client(
            "s3",
            endpoint_url=running.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        client.create_bucket(Bucket=BUCKET)
        yield running.environment()


def main() -> int:
    """Play."""
    options = _options()
    failed = 0
    for kind in options.store or STORES:
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            environment = stack.enter_context(bucket()) if kind == "s3" else {}
            tally = contest(
                kind,
                rounds=options.rounds,
                processes=options.processes,
                seed=options.seed,
                environment=environment,
            )
        print(told(kind, tally, options.processes, time.monotonic() - began), flush=True)
        for failure in tally.failures:
            print(f"  {failure}")
        if tally.failures:
            failed += 1
            again = f"--store {kind} --rounds {options.rounds} --processes {options.processes} --seed {options.seed}"
            print(f"  again: python -m tests.faults.contention {again}", flush=True)
    return 1 if failed else 0


def told(kind: str, tally: Tally, processes: int, seconds: float) -> str:
    """One line of counts."""
    return (
        f"{kind}: processes {processes}, finished {tally.finished}, rounds {tally.rounds} ({tally.races} races), "
        f"holders {tally.holds.total()}, overlaps {tally.overlaps}, failures {len(tally.failures)}, {seconds:.0f} s"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.contention")
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--store", action="append", choices=STORES, help="by default both")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which processes are let go")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
