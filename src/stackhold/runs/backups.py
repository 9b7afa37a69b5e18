"""Keeps the last ten records: a copy of what a stamp replaces, and the removal of older copies.

A backup is a convenience for people. Its failure is a warning and never stops a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import StoreError
from stackhold.model.codec import decode_record
from stackhold.ports.store import Stored
from stackhold.runs import resolve

if TYPE_CHECKING:
    from stackhold.model.instant import Instant
    from stackhold.model.record import StateRecord
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

KEPT = 10


def keep(store: Store, keys: Keys, clock: Clock, *, data: bytes, at: Instant, serial: int) -> str:
    """Write a copy of a record; a warning when that failed, else empty."""
    try:
        resolve.write(store, keys.backup(at, serial), data, expect=None, clock=clock)
    except StoreError as error:
        return f"the former record was not backed up: {error.message}"
    return ""


def find(store: Store, keys: Keys, *, serial: int) -> StateRecord | None:
    """The newest copy of the record with that serial; None when it was not kept. Raises `StoreError`."""
    ending = f"-{serial:08d}.json"
    for key in sorted((entry.key for entry in store.list(keys.backups)), reverse=True):
        if key.endswith(ending):
            found = store.read(key)
            return decode_record(found.data, key=key) if isinstance(found, Stored) else None
    return None


def prune(store: Store, keys: Keys, clock: Clock) -> str:
    """Delete all but the newest ten; a warning when that failed, else empty."""
    try:
        names = [entry.key for entry in store.list(keys.backups)]
        for key in sorted(names)[:-KEPT]:
            found = store.read(key)
            if isinstance(found, Stored):
                resolve.delete(store, key, expect=found.version, clock=clock)
    except StoreError as error:
        return f"old backups were not removed: {error.message}"
    return ""
