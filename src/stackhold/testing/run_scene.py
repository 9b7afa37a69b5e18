"""A stage for guarded runs: one store in memory, one clock that tests move, and as many runs as a test wants.

A run can be started in a thread of its own and looked at while it works; each has its own client of the store, so
that faults and pauses can be planned for one alone.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.model import codec
from stackhold.model.ids import Region, RunId, StackName
from stackhold.model.run import RunIdentity
from stackhold.ports.store import Stored
from stackhold.runs.guard import GuardedRun, RunReport, RunSettings, Stops
from stackhold.runs.layout import Keys
from stackhold.testing.clock import FakeClock
from stackhold.testing.memory_store import MemoryStore
from stackhold.testing.reporter import RecordingReporter

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.journal import Journal
    from stackhold.model.lock import Lock
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunFile
    from stackhold.model.run_log import RunLog
    from stackhold.ports.engine import Engine, Work

KEYS = Keys("stackhold", StackName("Shop"), Region("eu-west-1"))
_PATIENCE_S = 10.0
_POLL_S = 0.005


def until(happened: Callable[[], object]) -> None:
    """Wait, for a bounded time, until something has happened in another thread."""
    never = threading.Event()
    for _ in range(int(_PATIENCE_S / _POLL_S)):
        if happened():
            return
        never.wait(_POLL_S)
    raise TimeoutError("it did not happen in time")


@dataclass(slots=True)
class Actor:
    """One run on the stage."""

    run: GuardedRun
    stops: Stops
    store: MemoryStore
    reporter: RecordingReporter
    identity: RunIdentity
    report: RunReport | None = None
    error: BaseException | None = None
    _thread: threading.Thread | None = None

    def start(self, engine: Engine) -> Actor:
        """Begin in a thread of its own."""
        self._thread = threading.Thread(target=self._play, args=(engine,), daemon=True)
        self._thread.start()
        return self

    def join(self) -> None:
        """Wait for the end, however it ends."""
        assert self._thread is not None
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            raise TimeoutError("the run does not end")

    def end(self) -> RunReport:
        """Wait for the end; raises what the run raised."""
        self.join()
        if self.error is not None:
            raise self.error
        assert self.report is not None
        return self.report

    def _play(self, engine: Engine) -> None:
        try:
            self.report = self.run.run(engine)
        except BaseException as error:
            self.error = error


@dataclass(slots=True)
class RunScene:
    """The stage."""

    clock: FakeClock = field(default_factory=FakeClock)
    store: MemoryStore = field(init=False)
    is_local: bool = False
    settings: RunSettings = field(default_factory=RunSettings)
    _count: int = 0

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock, is_local=self.is_local)

    def actor(
        self,
        *,
        operation: str = "deploy",
        owner: str = "maria@ci-7:4711",
        settings: RunSettings | None = None,
        clock: FakeClock | None = None,
    ) -> Actor:
        """A run that has not begun."""
        self._count += 1
        store = self.store.sharing(clock or self.clock)
        stops = Stops()
        reporter = RecordingReporter()
        identity = RunIdentity(
            RunId(f"run-{self._count:04d}"), KEYS.stack, KEYS.region, operation, owner, "scripted", "0.0.0"
        )
        run = GuardedRun(
            store=store,
            prefix=KEYS.prefix,
            clock=clock or self.clock,
            reporter=reporter,
            settings=settings or self.settings,
            identity=identity,
            stops=stops,
        )
        return Actor(run, stops, store, reporter, identity)

    def play(
        self, engine: Engine, *, operation: str = "deploy", approve: Callable[[Work], bool] | None = None
    ) -> RunReport:
        """A whole run, here and now."""
        run = self.actor(operation=operation).run
        return run.run(engine) if approve is None else run.run(engine, approve=approve)

    def data(self, key: str) -> bytes | None:
        """What is stored, None when nothing is."""
        found = self.store.read(key)
        return found.data if isinstance(found, Stored) else None

    @property
    def record(self) -> StateRecord | None:
        """The record as stored."""
        data = self.data(KEYS.record)
        return None if data is None else codec.decode_record(data, key=KEYS.record)

    @property
    def lock(self) -> Lock | None:
        """The lock as stored."""
        data = self.data(KEYS.lock)
        return None if data is None else codec.decode_lock(data, key=KEYS.lock)

    @property
    def run_file(self) -> RunFile | None:
        """The run file as stored."""
        data = self.data(KEYS.run_file)
        return None if data is None else codec.decode_run_file(data, key=KEYS.run_file)

    @property
    def journal(self) -> Journal | None:
        """The journal as stored."""
        data = self.data(KEYS.journal)
        return None if data is None else codec.decode_journal(data, key=KEYS.journal)

    def log(self, actor_or_report: Actor | RunReport) -> RunLog | None:
        """A run's log as stored."""
        key = KEYS.event(actor_or_report.identity.run_id)
        data = self.data(key)
        return None if data is None else codec.decode_run_log(data, key=key)
