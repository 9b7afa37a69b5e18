"""How many calls to one service may be under way at once, learnt from its throttling.

Additive increase, multiplicative decrease: a throttled call halves the limit, at most once per interval, since
the calls sent together are refused together; answered calls let it grow back by about one per round. A call
that waits for its next try holds no place.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackhold.model.instant import BootInstant

_INTERVAL_MS = 500
_WAIT_SECONDS = 0.5


class Gate:
    """The places of one service. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._free = threading.Condition()
        self._most = float(most)
        self._limit = float(most)
        self._inside = 0
        self._shrunk_at: int | None = None

    @property
    def limit(self) -> int:
        """How many may be inside now."""
        return max(1, int(self._limit))

    @contextlib.contextmanager
    def place(self, check: Callable[[], None]) -> Iterator[None]:
        """Hold a place; `check` is called while waiting for one and may raise."""
        with self._free:
            while self._inside >= self.limit:
                self._free.wait(_WAIT_SECONDS)
                check()
            self._inside += 1
        try:
            yield
        finally:
            with self._free:
                self._inside -= 1
                self._free.notify()

    def throttled(self, now: BootInstant) -> None:
        """The service refused a call for coming too fast."""
        with self._free:
            if self._shrunk_at is None or now - self._shrunk_at >= _INTERVAL_MS:
                self._shrunk_at = now
                self._limit = max(1.0, self._limit / 2)

    def answered(self) -> None:
        """The service took a call."""
        with self._free:
            if self._limit < self._most:
                self._limit = min(self._most, self._limit + 1 / self._limit)
                self._free.notify()
