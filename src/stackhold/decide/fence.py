"""How long a holder may trust its lock, counted on its own boot clock from before its last confirmed write.

The holder stops well before anyone may take the lock over: first it starts nothing new, then it gives up even what
is in flight. Both steps are one-way; a late confirmation does not reopen what was closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from stackhold.model.instant import MINUTE, SECOND

_LONGEST_BEFORE_STAND_DOWN = 5 * MINUTE
_LONGEST_BEFORE_CUT = 1 * MINUTE
_LONGEST_CALL = 240 * SECOND


@dataclass(frozen=True, slots=True)
class Margins:
    """Spans since the last confirmed write."""

    stand_down_ms: int
    """From here on nothing starts, not even a call of an operation in flight."""
    cut_ms: int
    """From here on even calls in flight are given up."""
    call_budget_ms: int
    """No single call, retries included, may outlast this: one that starts just before standing down ends before
    the cut."""


class Fence(IntEnum):
    """How far a holder may still go; it only ever rises."""

    OPEN = 0
    STOOD_DOWN = 1
    CUT = 2


def margins(ttl_ms: int) -> Margins:
    """The margins of a ttl: 5 minutes and 1 minute before its end, less for a short one."""
    return Margins(
        stand_down_ms=ttl_ms - min(_LONGEST_BEFORE_STAND_DOWN, ttl_ms // 6),
        cut_ms=ttl_ms - min(_LONGEST_BEFORE_CUT, ttl_ms // 30),
        call_budget_ms=min(_LONGEST_CALL, ttl_ms * 2 // 15),
    )


def fence(*, silent_ms: int, limits: Margins, before: Fence) -> Fence:
    """How far a holder may go when its last confirmed write was sent `silent_ms` ago."""
    if silent_ms >= limits.cut_ms:
        return Fence.CUT
    if silent_ms >= limits.stand_down_ms:
        return max(before, Fence.STOOD_DOWN)
    return before
