"""Reads a stack's record as that stack's: what stands in the place of another's is no record of ours.

A record that was copied or edited into the wrong place would otherwise let `diff` and `drift` speak of another stack,
and a destroy take it away. Every reader of a stack's record comes through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import RecordUnreadable
from stackhold.model.codec import decode_record

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.runs.layout import Keys


def decode_own(data: bytes, keys: Keys) -> StateRecord:
    """The record under these keys. Raises `RecordUnreadable`, also when it names another stack or region, and
    `RecordTooNew`."""
    record = decode_record(data, key=keys.record)
    if (record.stack, record.region) != (keys.stack, keys.region):
        raise RecordUnreadable(
            f"{keys.record} is the record of {record.stack} in {record.region}, not of this stack",
            key=keys.record,
            hint="Nothing was overwritten. Put the right record in its place.",
        )
    return record
