"""Puts a stack's exports into the index of its region, changing only the entries that this stack produces.

The index is never the truth and no lock covers it: compare-and-swap, a few tries with jitter, then a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stackhold.decide.exports import taken_exports, with_exports
from stackhold.errors import InputError, RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_exports, encode_exports
from stackhold.model.exports import ExportsIndex
from stackhold.ports.engine import ExportingWork
from stackhold.ports.store import Stored, Written
from stackhold.runs import resolve
from stackhold.runs.layout import Keys, exports_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.exports import Export
    from stackhold.model.instant import Instant
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import PlannedExports, Work
    from stackhold.ports.store import Absent, Store

_TRIES = 8
_JITTER_MS = 200
_UNREADABLE: Final = (StoreError, RecordUnreadable, RecordTooNew)


@dataclass(frozen=True, slots=True)
class Listed:
    """What a run means to export, beside the index as it was read for its plan."""

    planned: PlannedExports
    found: Stored | Absent | None
    """None when it could not be read."""


def look(store: Store, keys: Keys, work: Work) -> Listed | None:
    """Read the index for a plan with exports, or for one that changes nothing; None where nobody needs it.

    Raises `InputError` for an export name of another stack. An index that cannot be read stops no run: it is no truth,
    and the end of the run says so.
    """
    planned = work.exports if isinstance(work, ExportingWork) else None
    if planned is None or not (planned.by_name or work.is_empty):
        return None
    key = exports_key(keys.prefix, keys.region)
    try:
        found = store.read(key)
        index = _index(found, keys)
    except _UNREADABLE:
        return Listed(planned, None)
    taken = _held(store, keys, taken_exports(index, planned.by_name, stack=keys.stack, region=keys.region))
    if taken:
        name, entry = next(iter(taken.items()))
        raise InputError(
            f"an export name is unique in a region, and {_said(taken)} already",
            hint=f"Choose another name, or take {name} out of {entry.producer_stack} first: deploy that without it, or "
            f"destroy it. (See {key}; a stack that cdkd deployed has its plain outputs there too.)",
        )
    return Listed(planned, found)


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
    return _publish(store, keys, clock, exports=exports, outputs=outputs, now=now, found=None)[1]


def repair(
    store: Store, keys: Keys, clock: Clock, listed: Listed, *, outputs: Mapping[str, object], now: Instant
) -> str:
    """Make the index agree with a stack that has not changed; what there was to say of it, else empty.

    Entries are lost by a crash after the last save, or with the index itself. Reads nothing where they are right.
    """
    if not listed.planned.is_complete:
        return ""
    exports = listed.planned.by_name
    is_changed, warning = _publish(store, keys, clock, exports=exports, outputs=outputs, now=now, found=listed.found)
    if is_changed and not warning:
        return "the exports index did not list what this stack exports as it is; that was put right"
    return warning


def _publish(
    store: Store,
    keys: Keys,
    clock: Clock,
    *,
    exports: Mapping[str, object],
    outputs: Mapping[str, object],
    now: Instant,
    found: Stored | Absent | None,
) -> tuple[bool, str]:
    """Whether the index was changed, and a warning. `found` is the index as it was read already."""
    key = exports_key(keys.prefix, keys.region)
    try:
        for attempt in range(_TRIES):
            if found is None:
                found = store.read(key)
            index = _index(found, keys)
            foreign = taken_exports(index, exports, stack=keys.stack, region=keys.region)
            taken = _held(store, keys, foreign)
            wanted = with_exports(
                index,
                exports,
                outputs=outputs,
                stack=keys.stack,
                region=keys.region,
                now=now,
                free=foreign.keys() - taken.keys(),
            )
            warning = f"the exports index lists these for another stack, and not for this one: {_said(taken)}"
            if wanted is None:
                return False, warning if taken else ""
            expect = found.version if isinstance(found, Stored) else None
            if isinstance(resolve.write(store, key, encode_exports(wanted), expect=expect, clock=clock), Written):
                return True, warning if taken else ""
            found = None
            clock.sleep(int(clock.nonce()[:4], 16) % (_JITTER_MS << min(attempt, 4)))
    except _UNREADABLE as error:
        return False, f"the exports index was not updated: {error.message}"
    return False, f"the exports index was not updated: {key} kept changing"


def _index(found: Stored | Absent, keys: Keys) -> ExportsIndex:
    if isinstance(found, Stored):
        return decode_exports(found.data, key=exports_key(keys.prefix, keys.region))
    return ExportsIndex(keys.region)


def _held(store: Store, keys: Keys, foreign: Mapping[str, Export]) -> dict[str, Export]:
    """Those whose producer has a record: only then they are anybody's. One that cannot be asked for counts as there."""
    producers = {(entry.producer_stack, entry.producer_region) for entry in foreign.values()}
    there = {producer for producer in producers if _is_recorded(store, Keys(keys.prefix, *producer))}
    return {name: entry for name, entry in foreign.items() if (entry.producer_stack, entry.producer_region) in there}


def _is_recorded(store: Store, keys: Keys) -> bool:
    try:
        return isinstance(store.read(keys.record), Stored)
    except StoreError:
        return True


def _said(taken: Mapping[str, Export]) -> str:
    return ", ".join(
        f"{name} is exported by {entry.producer_stack} ({entry.producer_region})" for name, entry in taken.items()
    )
