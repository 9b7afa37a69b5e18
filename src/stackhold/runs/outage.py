"""Sits out a store that cannot be reached for a moment while a run settles: its last writes have no second chance.

Only what surely did nothing is tried again. All writes of a settling run share one patience, so that a store that stays
away costs it once; a lock that ends, or a grace, ends it sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stackhold.errors import StoreUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.clock import Clock
    from stackhold.runs.control import Control

T = TypeVar("T")

PATIENCE_MS = 20_000
_FIRST_MS = 200
_LONGEST_MS = 2_000


class Outage:
    """The patience of one run. Used by the run's own thread."""

    def __init__(self, clock: Clock, control: Control) -> None:
        self._clock = clock
        self._control = control
        self._since: int | None = None

    def sat_out(self, write: Callable[[], T]) -> T:
        """Do it, again and again while the store cannot be reached; raises `StoreError` when patience is used up."""
        pause = _FIRST_MS
        while True:
            try:
                return write()
            except StoreUnreachable:
                now = self._clock.boot()
                self._since = now if self._since is None else self._since
                if now + pause >= min(self._since + PATIENCE_MS, self._control.save_until):
                    raise
                self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_MS)
