"""One of the processes that compete for a lock, see `contention`: `python -m tests.faults.compete --name p0 …`.

A line on standard input begins a round; the last line on standard output ends it. Each round is a whole guarded run
whose engine counts its process's holds in the record. A file that the kernel lets only one create tells who is inside.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.errors import LockHeld, StackholdError, StoreConflict
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.record import ResourceRecord, SetResource
from stackhold.model.run import Outcome, RunIdentity
from stackhold.ports.engine import WorkResult
from stackhold.ports.store import Stored
from stackhold.runs.guard import FixedWait, GuardedRun, RetryWait, RunSettings, Stops
from stackhold.runs.layout import Keys
from stackhold.testing.reporter import RecordingReporter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intent
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Run
    from stackhold.ports.store import Store, Version, Written

KEYS = Keys("stackhold", StackName("Contended"), Region("eu-west-1"))
STORES = ("directory", "s3")
CARELESS = "careless"
"""A directory in which no condition counts: what a contest is there to notice."""
BUCKET = "stackhold-contended"
_TYPE = TypeName("Test::Counter")
_QUEUEING = RetryWait(attempts=10_000, pause_ms=10)


@dataclass
class Counting:
    """An engine that counts its process's holds in the record; `inside` is what happens while it holds the lock."""

    name: str
    inside: Inside

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> CountingWork:
        """One more."""
        known = record.resources.get(LogicalId(self.name)) if record is not None else None
        return CountingWork(self, counted(known) + 1 if known is not None else 1)


@dataclass
class CountingWork:
    """The plan: to say that it is one more."""

    engine: Counting
    count: int
    is_empty: bool = False
    intents: Sequence[Intent] = ()
    steps: Sequence[JsonMap] = ()

    def perform(self, run: Run) -> WorkResult:
        """Be the holder."""
        name = self.engine.name
        with self.engine.inside.held():
            resource = ResourceRecord(PhysicalId(name), _TYPE, {"Count": self.count})
            run.save([SetResource(LogicalId(name), resource)], confirmed=True)
        return WorkResult(Outcome.SUCCEEDED, ExitCode.DONE)


@dataclass
class Inside:
    """What a holder does: leave a witness, say so, and stay as long as it is told to."""

    witness: Path
    stays: bool = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Around what only a holder may do."""
        try:
            os.close(os.open(self.witness, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            _say("overlap")
        _say("in")
        if self.stays:
            sys.stdin.readline()
        yield
        with contextlib.suppress(FileNotFoundError):
            self.witness.unlink()


def compete(kind: str, folder: Path, name: str) -> None:
    """One process: a line on standard input begins a round, its last line on standard output ends it."""
    clock = SystemClock()
    store = store_of(kind, folder)
    inside = Inside(folder / "holder")
    _say("ready")
    for line in sys.stdin:
        order = json.loads(line)
        time.sleep(order["after_ms"] / 1000)
        inside.stays = order["stays"]
        run = GuardedRun(
            store=store,
            prefix=KEYS.prefix,
            clock=clock,
            reporter=RecordingReporter(),
            settings=RunSettings(lock_wait=FixedWait(0) if order["stays"] else _QUEUEING),
            identity=_identity(name, order["round"]),
            stops=_NoSignals(),
        )
        try:
            report = run.run(Counting(name, inside))
            _say("done" if report.exit_code is ExitCode.DONE and not report.warnings else f"odd {report}")
        except LockHeld:
            _say("held")
        except StackholdError as error:
            _say(f"odd {type(error).__name__}: {error}")


class _Careless(DirectoryStore):
    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:  # that is the point
        while True:
            found = self.read(key)
            with contextlib.suppress(StoreConflict):
                return super().write(key, data, expect=found.version if isinstance(found, Stored) else None)


class _NoSignals(Stops):
    def listen(self) -> None:
        """Nobody stops these runs."""


def _identity(name: str, number: int) -> RunIdentity:
    run_id = RunId(f"20260101T{number:09d}Z-{name}")
    return RunIdentity(run_id, KEYS.stack, KEYS.region, "deploy", f"{name}@here:{os.getpid()}", "counting", "0")


def _say(word: str) -> None:
    print(" ".join(word.split()), flush=True)


def store_of(kind: str, folder: Path) -> Store:
    """The store of a contest."""
    if kind == CARELESS:
        return _Careless(folder / "state", clock=SystemClock())
    if kind == "directory":
        return DirectoryStore(folder / "state", clock=SystemClock())
    from stackhold.adapters.aws import AwsSession
    from stackhold.adapters.s3 import S3Store

    return S3Store(BUCKET, session=AwsSession(region=None, profile=None), clock=SystemClock())


def counted(resource: ResourceRecord) -> int:
    """How often a process was the holder, as the record says."""
    count = resource.properties["Count"]
    assert isinstance(count, int)
    return count


def main() -> None:
    """Compete until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.compete")
    parser.add_argument("--name", required=True)
    parser.add_argument("--store", choices=(*STORES, CARELESS), required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    compete(options.store, options.folder, options.name)


if __name__ == "__main__":
    main()
