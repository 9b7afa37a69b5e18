"""Who ran after a run that lost its lock, when nobody holds the lock any more.

The generation tells which run came later; the newest logs name their owners. Only for people: nothing is decided by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_run_log
from stackhold.ports.store import Stored

if TYPE_CHECKING:
    from stackhold.model.ids import RunId
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_LOOKED_AT = 3


def successor_of(store: Store, keys: Keys, *, run_id: RunId, generation: int | None) -> str:
    """The owner of the latest run after this one; empty when there is none, or the store does not say."""
    try:
        own = keys.event(run_id)
        newest = sorted((entry.key for entry in store.list(keys.events) if entry.key != own), reverse=True)
        for key in newest[:_LOOKED_AT]:
            found = store.read(key)
            if not isinstance(found, Stored):
                continue
            try:
                log = decode_run_log(found.data, key=key)
            except (RecordUnreadable, RecordTooNew):
                continue
            if log.generation is not None and log.generation > (generation or 0):
                return log.identity.owner
    except StoreError:
        return ""
    return ""
