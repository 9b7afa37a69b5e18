"""What a run that wants a stack's lock should do next, and when a lock is stale.

Nothing here reads a clock or a store. Silence is how long the lock has not been written, both ends taken from one
answer of the store (or from one machine's boot clock); hosts need not agree on the time. A lock that cannot be
understood, or whose expiry is no number, is held for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.model.instant import CLOCK_SLACK, MINUTE

if TYPE_CHECKING:
    from stackhold.model.instant import BootInstant, Instant
    from stackhold.model.lock import Lock

FOREIGN_SILENCE = 30 * MINUTE
"""A lock of a tool that does not renew is only stale when lock and record were left alone for so long."""


class Verdict(Enum):
    """What to do next."""

    ACQUIRE = "acquire"
    """The lock is free: create it."""
    TAKE_OVER = "take over"
    """It is stale: replace that very version."""
    WAIT = "wait"
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Held:
    """A lock as one read found it."""

    lock: Lock | None
    """None when it cannot be read."""
    silent_ms: int
    """How long it has not been written."""
    store_now: Instant
    """The store's time at that read."""
    record_silent_ms: int | None = None
    """How long the record has not been written; None when there is none. Only asked for foreign locks."""


def silence(lock: Lock | None, *, modified: Instant, store_now: Instant, boot: BootInstant, boot_id: str) -> int:
    """How long a lock has not been written.

    Within one boot of one machine, the boot clock that the holder wrote down counts (on directory stores only): a
    jump of the wall clock then steals no live lock. Everywhere else it is the store's two times.
    """
    if lock is not None and lock.boot_ms is not None and boot_id and lock.boot_id == boot_id:
        return max(0, boot - lock.boot_ms)
    return max(0, store_now - modified)


def is_stale(held: Held) -> bool:
    """Whether the holder has been silent for so long that the lock may be taken over."""
    lock = held.lock
    if lock is None:
        return False
    if lock.id is not None and lock.ttl is not None:
        return held.silent_ms >= lock.ttl + CLOCK_SLACK
    if lock.expires_at is None or lock.expires_at >= held.store_now:
        return False
    record_rests = held.record_silent_ms is None or held.record_silent_ms >= FOREIGN_SILENCE
    return record_rests and held.silent_ms >= FOREIGN_SILENCE


def next_step(held: Held | None, *, may_wait: bool, now: BootInstant, deadline_at: BootInstant) -> Verdict:
    """Choose what a run that wants the lock does next, given what it last read; None: nobody holds it.

    The deadline comes first: a run out of time must not start, even on a free lock. A lock wait that is used up only
    ends the waiting: a free or stale lock is still taken.
    """
    if now >= deadline_at:
        return Verdict.GIVE_UP
    if held is None:
        return Verdict.ACQUIRE
    if is_stale(held):
        return Verdict.TAKE_OVER
    return Verdict.WAIT if may_wait else Verdict.GIVE_UP


def next_pause(*, looks: int, first_ms: int, longest_ms: int, left_ms: int) -> int:
    """How long to wait before the next look at a held lock: doubling, never past the end of the lock wait."""
    return min(first_ms << min(looks, 20), longest_ms, left_ms)
