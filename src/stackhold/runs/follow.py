"""Follows a run from outside, by reading its log and its lock again and again until it is over.

A run that says that it ended has ended. One that was killed says nothing: it is over when its lock is gone,
another's or stale, and its log still has no end after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.errors import RecordTooNew, RecordUnreadable
from stackhold.runs.inspect import read_lock, read_run, run_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.events import Event
    from stackhold.model.ids import LockId, RunId
    from stackhold.model.run_log import RunLog
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_POLL_MS = 500
_LOG_PATIENCE_POLLS = 20
"""How long a lock may be there before its run's log is."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a run: its log and the events that are new since the look before."""

    log: RunLog
    news: tuple[Event, ...]
    is_killed: bool = False
    """The run is over and never said so."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self.is_killed or self.log.ended_at is not None


_LATEST = 100
"""How many of the latest runs may be the one that is meant: those that found its lock held came after it."""


def live_run(store: Store, clock: Clock, keys: Keys) -> RunId | None:
    """The run that holds the lock now, None when none does; waits a little for its log to appear."""
    over: set[RunId] = set()
    for _ in range(_LOG_PATIENCE_POLLS):
        lock_id = _holder(store, clock, keys)
        if lock_id is None:
            return None
        for run_id in reversed(run_ids(store, keys)[-_LATEST:]):
            log = _readable(store, keys, run_id) if run_id not in over else None
            if log is not None and log.lock_id == lock_id and log.ended_at is None:
                return run_id
            if log is not None and log.ended_at is not None:
                over.add(run_id)
        clock.sleep(_POLL_MS)
    return None


def follow(store: Store, clock: Clock, keys: Keys, run_id: RunId) -> Iterator[Seen]:
    """Look at a run until it is over; the last `Seen` is the one that is over. Nothing for a run without a log."""
    shown = 0
    was_orphaned = False
    while True:
        lock_id = _holder(store, clock, keys)
        log = read_run(store, keys, run_id)
        if log is None:
            return
        is_orphaned = log.ended_at is None and log.lock_id is not None and log.lock_id != lock_id
        seen = Seen(log=log, news=log.events[shown:], is_killed=is_orphaned and was_orphaned)
        yield seen
        if seen.is_over:
            return
        shown, was_orphaned = max(shown, len(log.events)), is_orphaned
        clock.sleep(_POLL_MS)


def _readable(store: Store, keys: Keys, run_id: RunId) -> RunLog | None:
    """A run's log; None also for one that cannot be read, which is not the one that is meant."""
    try:
        return read_run(store, keys, run_id)
    except (RecordUnreadable, RecordTooNew):
        return None


def _holder(store: Store, clock: Clock, keys: Keys) -> LockId | None:
    """The id of the lock that is live now; None when nobody holds one that has an id."""
    view = read_lock(store, clock, keys)
    return None if view is None or view.is_stale or view.lock is None else view.lock.id
