"""Puts a stack's exports into the index of its region, changing only the entries that this stack produces.

The index is never the truth and no lock covers it: compare-and-swap, a few tries with jitter, then a warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.decide.exports import with_exports
from stackhold.errors import RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_exports, encode_exports
from stackhold.model.exports import ExportsIndex
from stackhold.ports.store import Stored, Written
from stackhold.runs import resolve
from stackhold.runs.layout import exports_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.instant import Instant
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_TRIES = 8
_JITTER_MS = 200


def publish(
    store: Store,
    keys: Keys,
    clock: Clock,
    *,
    exports: Mapping[str, object],
    outputs: Mapping[str, object],
    now: Instant,
) -> str:
    """Make the index agree with `exports`; a warning when that was not possible, else empty.

    `outputs` are the stack's: entries of ours under their names are kept up to date, never added.
    """
    key = exports_key(keys.prefix, keys.region)
    try:
        for attempt in range(_TRIES):
            found = store.read(key)
            index = ExportsIndex(keys.region)
            if isinstance(found, Stored):
                index = decode_exports(found.data, key=key)
            wanted = with_exports(index, exports, outputs=outputs, stack=keys.stack, region=keys.region, now=now)
            if wanted is None:
                return ""
            expect = found.version if isinstance(found, Stored) else None
            if isinstance(resolve.write(store, key, encode_exports(wanted), expect=expect, clock=clock), Written):
                return ""
            clock.sleep(int(clock.nonce()[:4], 16) % (_JITTER_MS << min(attempt, 4)))
    except (StoreError, RecordUnreadable, RecordTooNew) as error:
        return f"the exports index was not updated: {error.message}"
    return f"the exports index was not updated: {key} kept changing"
