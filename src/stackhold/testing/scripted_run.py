"""A guarded run without lock or store, for tests of engines: keeps the record, the marks and the events in memory.

Tests stop it as a signal would, push it past its grace, or forbid every call, at the moment they choose.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.decide.record import apply_changes, empty_record
from stackhold.errors import StoodDown
from stackhold.model.ids import Region, RunId, StackName
from stackhold.model.run import RunIdentity, StopCause
from stackhold.ports.engine import Run, Stop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.events import Event
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import RecordChange, StateRecord
    from stackhold.model.run import IntentState
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock

RUN_ID = RunId("20260319T080000000Z-0badcafe")


def identity(
    *, stack: str = "shop", region: str = "eu-west-1", operation: str = "deploy", run_id: str = RUN_ID
) -> RunIdentity:
    """Who runs, for tests that do not care."""
    return RunIdentity(
        run_id=RunId(run_id),
        stack=StackName(stack),
        region=Region(region),
        operation=operation,
        owner="ada@laptop:4711",
        engine="cloudformation",
        tool_version="0",
    )


class ScriptedRun:
    """A `Run` in memory. Thread-safe."""

    def __init__(self, clock: Clock, *, who: RunIdentity | None = None, record: StateRecord | None = None) -> None:
        self._clock = clock
        self._who = who or identity()
        self._stop: Stop | None = None
        self._is_cut = False
        self._is_dead = False
        self._lock = threading.Lock()
        self.record = record or empty_record(self._who.stack, self._who.region)
        self.events: list[Event] = []
        self.marks: dict[LogicalId, IntentState] = {}
        self.notes: dict[LogicalId, JsonMap] = {}
        self.saves: list[tuple[Sequence[RecordChange], bool]] = []

    @property
    def identity(self) -> RunIdentity:
        """Who runs."""
        return self._who

    @property
    def clock(self) -> Clock:
        """The clock it was given."""
        return self._clock

    def stopping(self) -> Stop | None:
        """What the test has said."""
        return self._stop

    def check_call(self) -> None:
        """Raises `StoodDown` once calls are forbidden."""
        if self._is_cut:
            raise StoodDown("no call starts any more")

    def wait(self, ms: int) -> None:
        """Wait on the clock."""
        if self._is_cut:
            raise StoodDown("waits are given up")
        self._clock.sleep(ms)

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        """Apply the changes at once."""
        with self._lock:
            if self._is_dead:
                return
            self.record = apply_changes(self.record, changes)
            self.saves.append((changes, confirmed))

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """Remember how far an intent has come; of several for one logical id the last mark."""
        with self._lock:
            self.marks[logical_id] = state

    def note(self, logical_id: LogicalId, extra: JsonMap) -> None:
        """Remember the latest note; raises `StoodDown` once killed."""
        with self._lock:
            if self._is_dead:
                raise StoodDown("the run file is not ours any more")
            self.notes[logical_id] = dict(extra)

    def tell(self, event: Event) -> None:
        """Remember an event."""
        with self._lock:
            self.events.append(event)

    def stop(self, cause: StopCause = StopCause.SIGTERM, *, is_over: bool = False) -> None:
        """Stop as on a first signal; with `is_over` as past the grace."""
        self._stop = Stop(cause, is_over=is_over)

    def die(self) -> None:
        """As if the process were killed at this moment: nothing starts any more, and nothing more is saved."""
        with self._lock:
            self._is_dead = True
        self.cut()
        self.stop(StopCause.SIGTERM, is_over=True)

    def cut(self) -> None:
        """Let no call start, and give up waits."""
        self._is_cut = True


if TYPE_CHECKING:
    _: type[Run] = ScriptedRun
