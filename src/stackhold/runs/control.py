"""Whether a run may go on: its deadline, the mailbox, the grace, and the fence, looked at together.

The engine asks before every operation (`stopping`) and directly before every call (`check_call`). Answers come from
the boot clock at the moment of asking; no thread needs to have run in time. Everything here is one-way.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.decide.fence import Fence
from stackhold.decide.stopping import is_over
from stackhold.errors import StoodDown
from stackhold.model.instant import BootInstant
from stackhold.model.run import StopCause
from stackhold.ports.engine import Stop

if TYPE_CHECKING:
    from stackhold.ports.clock import Clock
    from stackhold.runs.fence import LockFence
    from stackhold.runs.settings import RunSettings
    from stackhold.runs.stops import Stops

_SLICE_MS = 100


class Control:
    """Says whether the run may go on. Thread-safe."""

    def __init__(
        self, *, clock: Clock, settings: RunSettings, stops: Stops, started_at: BootInstant | None = None
    ) -> None:
        """The deadline counts from `started_at`, by default from here."""
        self._clock = clock
        self._settings = settings
        self._stops = stops
        self.started_at = clock.boot() if started_at is None else started_at
        self._stopped_at: BootInstant | None = None
        self._guard = threading.Lock()
        self.fence: LockFence | None = None
        """Set once the lock is ours."""
        stops.subscribe(self._note)

    @property
    def deadline_at(self) -> BootInstant:
        """When the whole run must be over."""
        return BootInstant(self.started_at + self._settings.deadline.ms)

    @property
    def cause(self) -> StopCause | None:
        """Why nothing new may start; the loss of the lock is put over everything else."""
        self._look()
        fence = self.fence
        if fence is not None and fence.is_lost:
            return StopCause.LOCK_LOST
        if fence is not None and fence.state(self._clock.boot()) is not Fence.OPEN:
            return StopCause.STOOD_DOWN
        return self._stops.cause

    @property
    def is_lock_lost(self) -> bool:
        """Whether it is known that the lock is another's, or gone: what only a holder may write is not ours then."""
        return self.fence is not None and self.fence.is_lost

    @property
    def is_over(self) -> bool:
        """Whether even what is in flight is given up."""
        now = self._clock.boot()
        if self.fence is not None and self.fence.state(now) is Fence.CUT:
            return True
        return is_over(stopped_at=self._stopped_at, now=now, grace_ms=self._settings.grace_ms)

    def stopping(self) -> Stop | None:
        """Why nothing new may start, or None."""
        cause = self.cause
        return None if cause is None else Stop(cause, is_over=self.is_over)

    def check_call(self) -> None:
        """Raise `StoodDown` when not even a call of an operation in flight may start."""
        cause = self.cause
        if cause is None:
            return
        if cause is StopCause.LOCK_LOST:
            raise StoodDown("the lock is not ours any more: no call may start")
        if cause is StopCause.STOOD_DOWN:
            raise StoodDown("the lock was not confirmed in time: no call may start")
        if self.is_over:
            raise StoodDown("the grace period is used up: no call may start")

    def wait(self, ms: int) -> None:
        """Wait, raising `StoodDown` as soon as waits are given up."""
        until = self._clock.boot() + ms
        self.check_call()
        while (left := until - self._clock.boot()) > 0:
            self._clock.sleep(min(left, _SLICE_MS))
            self.check_call()

    @property
    def save_until(self) -> BootInstant:
        """How long saving may be tried in an outage: to the end of the ttl, or of the grace once a stop began."""
        ends = [self.fence.ends_at] if self.fence is not None else [self.deadline_at]
        if self._stopped_at is not None:
            ends.append(BootInstant(self._stopped_at + self._settings.grace_ms))
        return BootInstant(min(ends))

    def stop(self, cause: StopCause) -> None:
        """The run itself found a reason to start nothing new."""
        self._stops.request(cause)

    def _look(self) -> None:
        if self._stops.cause is None and self._clock.boot() >= self.deadline_at:
            self._stops.request(StopCause.DEADLINE)

    def _note(self, _: StopCause) -> None:
        with self._guard:
            if self._stopped_at is None:
                self._stopped_at = self._clock.boot()
