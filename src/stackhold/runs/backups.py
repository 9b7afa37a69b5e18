"""Keeps the last ten records: a copy of what a stamp replaces, and the removal of older copies.

A backup is a convenience for people. Its failure is a warning and never stops a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import StoreError
from stackhold.ports.store import Stored

if TYPE_CHECKING:
    from stackhold.model.instant import Instant
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

KEPT = 10


def keep(store: Store, keys: Keys, *, data: bytes, at: Instant, serial: int) -> str:
    """Write a copy of a record; a warning when that failed, else empty."""
    try:
        store.write(keys.backup(at, serial), data, expect=None)
    except StoreError as error:
        return f"the former record was not backed up: {error.message}"
    return ""


def prune(store: Store, keys: Keys) -> str:
    """Delete all but the newest ten; a warning when that failed, else empty."""
    try:
        names = [entry.key for entry in store.list(keys.backups)]
        for key in sorted(names)[:-KEPT]:
            found = store.read(key)
            if isinstance(found, Stored):
                store.delete(key, expect=found.version)
    except StoreError as error:
        return f"old backups were not removed: {error.message}"
    return ""
