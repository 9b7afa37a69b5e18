"""The thread that looks after a run's small duties: announces a stop, looks for a stop request, keeps the log live.

None of it is needed for safety; the lock has a thread of its own.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.errors import RecordUnreadable, StoreError
from stackhold.model.codec import decode_stop_request
from stackhold.model.events import EventKind
from stackhold.model.run import StopCause
from stackhold.ports.store import Stored
from stackhold.runs import resolve
from stackhold.runs.heartbeat import TICK_S

if TYPE_CHECKING:
    from stackhold.ports.store import Version
    from stackhold.ports.threads import Started
    from stackhold.runs.parts import RunParts

_WORDS = {
    StopCause.SIGINT: "interrupted",
    StopCause.SIGTERM: "asked to stop",
    StopCause.CANCEL: "cancelled",
    StopCause.DEADLINE: "the deadline passed",
    StopCause.LOCK_LOST: "the lock is lost",
    StopCause.STOOD_DOWN: "the lock was not confirmed in time",
    StopCause.FOREIGN_WRITE: "someone else changed the record",
}


class Watch:
    """Looks after a run while it holds its lock."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._look_at = parts.control.started_at + parts.settings.stop_poll_ms
        self._has_looked = False
        self._announced: StopCause | None = None
        self._announcing = threading.Lock()
        self._end = parts.threads.event()
        self._thread: Started | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = self._parts.threads.start(self._loop, name="stackhold-watch")

    def stop(self) -> None:
        """Look no more; returns when a look in flight has ended or after a short while."""
        self._end.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout=5)

    def tick(self) -> None:
        """Do what is due now."""
        self.announce()
        if self._parts.clock.boot() >= self._look_at:
            self._look_at = self._parts.clock.boot() + self._parts.settings.stop_poll_ms
            self._look()
        self._parts.log.refresh_if_due()

    def announce(self) -> None:
        """Say why the run stops, once per cause."""
        stop = self._parts.control.stopping()
        with self._announcing:
            if stop is None or stop.cause is self._announced:
                return
            self._announced = stop.cause
        fence = self._parts.control.fence
        if fence is not None and fence.is_given_up:
            return
        holder = fence.holder if fence is not None else ""
        words = _WORDS[stop.cause]
        if stop.cause is StopCause.LOCK_LOST:
            words += f" to {holder}" if holder else "; nobody holds it now"
        self._parts.log.say(
            EventKind.STOPPING,
            f"{words}: nothing new is started",
            {"cause": stop.cause.value, **({"holder": holder} if holder else {})},
        )

    def clear_request(self) -> None:
        """Remove a stop request for this lock, if this run has looked for one."""
        if not self._has_looked:
            return
        version = self._request()
        if version is not None:
            resolve.delete(self._parts.store, self._parts.keys.stop_request, expect=version, clock=self._parts.clock)

    def _look(self) -> None:
        self._has_looked = True
        try:
            if self._request() is not None:
                self._parts.control.stop(StopCause.CANCEL)
        except StoreError:
            pass

    def _request(self) -> Version | None:
        """The version of a request that names our lock."""
        found = self._parts.store.read(self._parts.keys.stop_request)
        if not isinstance(found, Stored):
            return None
        try:
            request = decode_stop_request(found.data, key=self._parts.keys.stop_request)
        except RecordUnreadable:
            return None
        return found.version if request.lock_id == self._parts.lock.id else None

    def _loop(self) -> None:
        while not self._end.wait(TICK_S):
            self.tick()
