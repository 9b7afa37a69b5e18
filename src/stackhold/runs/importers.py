"""Which stacks import what another exports: asked of the records themselves before that other is destroyed.

A record names its imports as cdkd writes them. One listing, and only for a stack that has outputs; a record that cannot
be read holds nothing up, since it may be what the destroy is to clear away, but it is said.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stackhold.errors import InputError, RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_record
from stackhold.ports.store import Stored
from stackhold.runs.layout import RECORD, stacks, stacks_prefix

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_READERS: Final = 8


@dataclass(frozen=True, slots=True)
class _Look:
    """What one record says."""

    stack: str
    imports: tuple[str, ...] = ()
    """The names of the exports that it takes from the stack in question."""
    is_readable: bool = True


def refuse_in_use(store: Store, keys: Keys, record: StateRecord | None) -> str:
    """Raise `InputError` when other stacks import from this one; a warning when not all of them could be asked."""
    if record is None or not record.outputs:
        return ""
    listed = stacks(keys.prefix, store.list(stacks_prefix(keys.prefix)))
    others = sorted(
        (each for each, names in listed.items() if RECORD in names and each != keys), key=lambda each: each.root
    )
    with ThreadPoolExecutor(_READERS) as readers:
        looks = list(readers.map(lambda other: _look(store, other, keys), others))
    users = [look for look in looks if look.imports]
    if users:
        raise InputError(
            f"{keys.stack} ({keys.region}) exports what others import: "
            + "; ".join(f"{user.stack} imports {', '.join(user.imports)}" for user in users),
            hint="Destroy those first, or deploy them without the import; then destroy this one.",
        )
    unread = ", ".join(look.stack for look in looks if not look.is_readable)
    return (
        f"not known whether these import what {keys.stack} exports, for their records cannot be read: {unread}"
        if unread
        else ""
    )


def _look(store: Store, other: Keys, keys: Keys) -> _Look:
    name = f"{other.stack} ({other.region})"
    try:
        found = store.read(other.record)
        record = decode_record(found.data, key=other.record) if isinstance(found, Stored) else None
    except (StoreError, RecordUnreadable, RecordTooNew):
        return _Look(name, is_readable=False)
    imports = record.extra.get("imports") if record is not None else None
    entries = imports if isinstance(imports, list | tuple) else ()
    taken = (
        str(entry.get("exportName"))
        for entry in entries
        if isinstance(entry, dict)
        and entry.get("sourceStack") == keys.stack
        and entry.get("sourceRegion", keys.region) == keys.region
    )
    return _Look(name, tuple(dict.fromkeys(taken)))
