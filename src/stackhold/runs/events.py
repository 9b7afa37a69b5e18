"""Keeps what a run tells about itself: shown at once, and written under `events/`, live and at the end.

A log that cannot be written never stops a run; at the end it becomes a warning.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.decide import pacing
from stackhold.errors import StoreError
from stackhold.model.codec import encode_run_log
from stackhold.model.events import Event, EventKind
from stackhold.model.run_log import RunLog
from stackhold.model.user_info import without_user_info
from stackhold.ports.store import Stored, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.ids import LogicalId
    from stackhold.model.run import RunIdentity
    from stackhold.ports.clock import Clock
    from stackhold.ports.reporter import Reporter
    from stackhold.ports.store import Store, Version
    from stackhold.ports.threads import Threads
    from stackhold.runs.layout import Keys
    from stackhold.runs.settings import RunSettings


class RunLogKeeper:
    """The log of one run. Thread-safe."""

    def __init__(
        self,
        *,
        store: Store,
        keys: Keys,
        clock: Clock,
        threads: Threads,
        reporter: Reporter,
        identity: RunIdentity,
        settings: RunSettings,
    ) -> None:
        self._store = store
        self._key = keys.event(identity.run_id)
        self._clock = clock
        self._reporter = reporter
        self._events: list[Event] = []
        self._warnings: list[str] = []
        self._log = RunLog(
            identity=identity,
            started_at=clock.now(),
            deadline_ms=settings.deadline.ms,
            lock_wait=str(settings.lock_wait),
        )
        self._version: Version | None = None
        self._is_stale = False
        self._due_at = clock.boot() + pacing.LOG_FLOOR_MS
        self._telling = threading.Lock()
        self._writing = threads.lock()

    def tell(self, event: Event) -> None:
        """Show an event and keep it, without the credentials in a URL of its message."""
        if (message := without_user_info(event.message)) != event.message:
            event = replace(event, message=message)
        with self._telling:
            self._events.append(event)
            self._is_stale = True
            self._reporter.tell(event)

    def say(
        self,
        kind: EventKind,
        message: str = "",
        data: dict[str, object] | None = None,
        *,
        logical_id: LogicalId | None = None,
    ) -> None:
        """Tell something that happened just now."""
        self.tell(Event(kind, self._clock.now(), logical_id, message, data or {}))

    def warn(self, message: str, *, by: EventKind = EventKind.WARNING, data: dict[str, object] | None = None) -> None:
        """Tell a warning, once; the report lists it too. An event of its own kind says in its data that it is one."""
        with self._telling:
            self._warnings.append(message)
        flag = {} if by is EventKind.WARNING else {"isWarning": True}
        self.say(by, message, {**(data or {}), **flag})

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings so far."""
        with self._telling:
            return tuple(self._warnings)

    def update(self, change: Callable[[RunLog], RunLog]) -> None:
        """Change the log's own fields."""
        with self._telling:
            self._log = change(self._log)
            self._is_stale = True

    def refresh_if_due(self) -> None:
        """Write the live log when something happened and it is time."""
        if self._is_stale and self._clock.boot() >= self._due_at:
            self.write()

    def write(self) -> str:
        """Write the log as it is now; why that failed, else empty."""
        with self._writing:
            with self._telling:
                self._is_stale = False
                log = replace(
                    self._log,
                    updated_at=self._clock.now(),
                    warnings=tuple(self._warnings),
                    events=tuple(self._events),
                )
            data = encode_run_log(log)
            self._due_at = self._clock.boot() + pacing.pause_after(len(data), floor_ms=pacing.LOG_FLOOR_MS)
            try:
                return self._send(data)
            except StoreError as error:
                return f"the run's log was not written: {error.message}"

    def _send(self, data: bytes) -> str:
        for _ in range(2):
            answer = resolve.write(self._store, self._key, data, expect=self._version, clock=self._clock)
            if isinstance(answer, Written):
                self._version = answer.version
                return ""
            self._version = answer.version if isinstance(answer, Stored) else None
        return f"the run's log was not written: {self._key} keeps changing"
