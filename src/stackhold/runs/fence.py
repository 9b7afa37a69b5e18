"""Whether this run may still act: the lock's last confirmed write, judged on the boot clock, and its loss.

One-way: once stood down or lost it stays so, whatever is confirmed later. Thread-safe.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.decide.fence import Fence, fence, margins

if TYPE_CHECKING:
    from stackhold.model.instant import BootInstant


class LockFence:
    """What the holder of a lock knows about its hold."""

    def __init__(self, *, ttl_ms: int, confirmed_at: BootInstant) -> None:
        self._limits = margins(ttl_ms)
        self._ttl_ms = ttl_ms
        self._confirmed_at = confirmed_at
        self._state = Fence.OPEN
        self._is_lost = False
        self._is_doubted = False
        self._holder = ""
        self.is_given_up = False
        """Whether its loss is our own doing, which needs no telling."""
        self._guard = threading.Lock()

    def confirm(self, sent_at: BootInstant) -> None:
        """A write of the lock that was sent at `sent_at` is confirmed."""
        with self._guard:
            self._confirmed_at = max(self._confirmed_at, sent_at)

    def lose(self, holder: str) -> None:
        """The lock is another's (`holder`), or gone (empty)."""
        with self._guard:
            self._is_lost = True
            self._holder = self._holder or holder

    def give_up(self) -> None:
        """We let go of the lock ourselves, before the run has ended."""
        self.is_given_up = True
        self.lose("")

    def doubt(self) -> None:
        """Nobody could tell whether the lock is still ours."""
        self._is_doubted = True

    @property
    def is_ours(self) -> bool:
        """Whether what only a holder may write may still be written."""
        return not self._is_lost and not self._is_doubted

    @property
    def is_lost(self) -> bool:
        """Whether the lock is known to be another's, or gone."""
        return self._is_lost

    @property
    def holder(self) -> str:
        """Who has it now; empty when nobody does, or nobody knows."""
        return self._holder

    def state(self, now: BootInstant) -> Fence:
        """How far the run may still go."""
        with self._guard:
            self._state = fence(silent_ms=now - self._confirmed_at, limits=self._limits, before=self._state)
            return self._state

    @property
    def ends_at(self) -> int:
        """When the lock's ttl ends on the boot clock, as far as confirmed."""
        return self._confirmed_at + self._ttl_ms
