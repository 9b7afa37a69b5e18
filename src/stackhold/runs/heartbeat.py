"""The thread that renews the lock for as long as the run lives, and tells the fence what it learnt.

An outage of the store is not a loss: it keeps trying, and the fence alone decides how long the run may trust its
lock meanwhile. A loss is final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.runs.lock import Renewed

if TYPE_CHECKING:
    from stackhold.ports.clock import Clock
    from stackhold.ports.threads import Started, Threads
    from stackhold.runs.fence import LockFence
    from stackhold.runs.lock import RunLock

TICK_S = 0.1
_FIRST_RETRY_MS = 500
_LONGEST_RETRY_MS = 15_000


class Heartbeat:
    """Renews a lock at its rhythm."""

    def __init__(
        self, *, lock: RunLock, fence: LockFence, clock: Clock, threads: Threads, every_ms: int, starts_at: int
    ) -> None:
        """`starts_at` is when the lock was last confirmed, on the boot clock."""
        self._lock = lock
        self._fence = fence
        self._clock = clock
        self._every_ms = every_ms
        self._due_at = self._clock.boot() if lock.is_skewed else starts_at + every_ms
        self._failures = 0
        self._end = threads.event()
        self._threads = threads
        self._thread: Started | None = None

    def start(self) -> None:
        """Begin to renew."""
        self._thread = self._threads.start(self._loop, name="stackhold-heartbeat")

    def stop(self) -> None:
        """Renew no more. A renewal in flight may still end; releasing waits for it."""
        self._end.set()

    def beat_if_due(self) -> None:
        """Renew once if it is time."""
        if self._fence.is_lost or self._clock.boot() < self._due_at:
            return
        renewed, sent_at, holder = self._lock.renew()
        match renewed:
            case Renewed.CONFIRMED:
                self._fence.confirm(sent_at)
                self._failures = 0
                self._due_at = sent_at + self._every_ms
            case Renewed.LOST:
                self._fence.lose(holder)
            case Renewed.UNCLEAR:
                pause = min(_FIRST_RETRY_MS << min(self._failures, 10), _LONGEST_RETRY_MS, self._every_ms)
                self._failures += 1
                self._due_at = self._clock.boot() + pause

    def _loop(self) -> None:
        while not self._end.wait(TICK_S) and not self._fence.is_lost:
            self.beat_if_due()
