"""Deletes a lock on a person's word: shows the holder, says how alive it looks, and deletes only what was shown.

The person decides; this module only makes sure that the decision is about the lock that is there. If the lock
changed in between, it is shown and asked about again.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.errors import StoreConflict, StoreError, StoreUnanswered
from stackhold.runs.holder_process import pid_here
from stackhold.runs.inspect import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.inspect import LockView
    from stackhold.runs.layout import Keys

_TRIES = 10


class Unlocked(Enum):
    """How it ended."""

    DELETED = "deleted"
    """The lock that was shown is gone."""
    ABSENT = "absent"
    """Nobody held a lock."""
    DECLINED = "declined"
    """The person said no; the lock is as it was."""


@dataclass(frozen=True, slots=True)
class Danger:
    """Why deleting this lock may let two runs act at once."""

    is_live: bool
    """Not silent for its whole ttl, by the store's time; or not readable, which counts as held."""
    pid_here: int | None
    """The holder's process id when it is running on this very host."""
    pid_gone: int | None = None
    """The holder's process id when it was one of this host and is running no longer."""


def force_unlock(
    store: Store, clock: Clock, keys: Keys, *, confirm: Callable[[LockView, Danger, bool], bool]
) -> Unlocked:
    """Delete the lock whether or not its owner is alive, once `confirm` said yes to exactly this version.

    `confirm` gets the lock, its danger, and whether it changed since it was last shown. A lost answer is resolved
    by reading: gone means deleted.
    """
    shown = read_lock(store, clock, keys)
    if shown is None:
        return Unlocked.ABSENT
    has_changed = False
    for _ in range(_TRIES):
        if not confirm(shown, danger_of(shown), has_changed):
            return Unlocked.DECLINED
        with contextlib.suppress(StoreConflict, StoreUnanswered):
            store.delete(keys.lock, expect=shown.version)
            return Unlocked.DELETED
        found = read_lock(store, clock, keys)
        if found is None:
            return Unlocked.DELETED
        has_changed = found.version != shown.version
        shown = found
    raise StoreError(
        f"{keys.lock} changes faster than it can be shown; nothing was deleted",
        key=keys.lock,
        hint="Its holder is alive. Ask it to stop with: stackhold cancel",
    )


def danger_of(view: LockView) -> Danger:
    """How alive a lock's holder looks from here."""
    pid = pid_here(view.lock.owner) if view.lock is not None else None
    return Danger(is_live=not view.is_stale, pid_here=pid, pid_gone=view.pid_gone)
