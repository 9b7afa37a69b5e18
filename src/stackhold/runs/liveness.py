"""How long a lock that was read has been silent, and whether the next run may take it over.

Joins what a store's answer says to the rules in `decide.lock`; the only clock it needs is this machine's boot clock,
for locks in a directory of this very machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.decide import lock as rules

if TYPE_CHECKING:
    from stackhold.model.lock import Lock
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Stored


def silent_ms(found: Stored, lock: Lock | None, clock: Clock) -> int:
    """How long the lock has not been written. `lock` is None when it cannot be read."""
    return rules.silence(lock, modified=found.modified, store_now=found.now, boot=clock.boot(), boot_id=clock.boot_id())


def is_stale(found: Stored, lock: Lock | None, clock: Clock, *, record_silent_ms: int | None = None) -> bool:
    """Whether the next run may take the lock over. `record_silent_ms` matters for locks of other tools alone."""
    return rules.is_stale(held(found, lock, clock, record_silent_ms=record_silent_ms))


def held(found: Stored, lock: Lock | None, clock: Clock, *, record_silent_ms: int | None = None) -> rules.Held:
    """The lock as the rules want to see it."""
    return rules.Held(
        lock=lock,
        silent_ms=silent_ms(found, lock, clock),
        store_now=found.now,
        record_silent_ms=record_silent_ms,
    )
