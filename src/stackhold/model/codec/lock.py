"""`lock.json`: four fields shared with cdkd, then ours.

Whoever reads a lock only to learn whether it is held treats `RecordUnreadable` as held: what cannot be understood
is never taken over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.model.codec.document import parse, text_of
from stackhold.model.ids import LockId
from stackhold.model.instant import BootInstant, Instant, Millis
from stackhold.model.lock import Lock

if TYPE_CHECKING:
    from stackhold.model.values import JsonMap


def decode_lock(data: bytes, *, key: str) -> Lock:
    """Read a lock, ours or cdkd's. An `expiresAt` that is no number becomes None: held for ever."""
    fields = parse(data, key=key)
    lock_id = fields.maybe_text("id")
    ttl = fields.maybe_number("ttl")
    if ttl is not None and ttl <= 0:
        raise fields.wrong("ttl", "a positive number", ttl)
    boot_ms = fields.maybe_number("bootMs")
    expires_at = fields.number_or_none("expiresAt")
    return Lock(
        owner=fields.text("owner"),
        timestamp=Instant(fields.number("timestamp")),
        expires_at=None if expires_at is None else Instant(expires_at),
        operation=fields.maybe_text("operation") or "",
        id=None if lock_id is None else LockId(lock_id),
        ttl=None if ttl is None else Millis(ttl),
        serial=fields.maybe_number("serial") or 0,
        generation=fields.maybe_number("generation"),
        boot_id=fields.maybe_text("bootId"),
        boot_ms=None if boot_ms is None else BootInstant(boot_ms),
        extra=fields.rest(),
    )


def encode_lock(lock: Lock) -> bytes:
    """Write a lock."""
    document: dict[str, object] = {"owner": lock.owner, "timestamp": lock.timestamp}
    if lock.expires_at is not None:
        document["expiresAt"] = lock.expires_at
    document["operation"] = lock.operation
    document.update(_ours(lock))
    document.update(lock.extra)
    return text_of(document)


def _ours(lock: Lock) -> JsonMap:
    """The fields that only we write; none of them for a foreign lock."""
    if lock.id is None:
        return {}
    ours: dict[str, object] = {"id": lock.id}
    if lock.ttl is not None:
        ours["ttl"] = lock.ttl
    ours["serial"] = lock.serial
    for name, value in (("generation", lock.generation), ("bootId", lock.boot_id), ("bootMs", lock.boot_ms)):
        if value is not None:
            ours[name] = value
    return ours
