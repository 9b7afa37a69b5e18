"""Stored JSON to values and back, one module per object.

The text is what cdkd writes: two spaces, no newline at the end, UTF-8 as it is, keys in a fixed order. Fields that
we do not know are kept at their level. A document that is not what it should be raises `RecordUnreadable`, naming
the object and the position; nothing here guesses.
"""

from __future__ import annotations

from stackhold.model.codec.exports import decode_exports, encode_exports
from stackhold.model.codec.journal import decode_journal, encode_journal
from stackhold.model.codec.lock import decode_lock, encode_lock
from stackhold.model.codec.record import decode_record, encode_record, resource_document, resource_from_document
from stackhold.model.codec.run_file import decode_run_file, encode_run_file
from stackhold.model.codec.run_log import decode_run_log, encode_run_log, event_document
from stackhold.model.codec.stop_request import decode_stop_request, encode_stop_request

__all__ = [
    "decode_exports",
    "decode_journal",
    "decode_lock",
    "decode_record",
    "decode_run_file",
    "decode_run_log",
    "decode_stop_request",
    "encode_exports",
    "encode_journal",
    "encode_lock",
    "encode_record",
    "encode_run_file",
    "encode_run_log",
    "encode_stop_request",
    "event_document",
    "resource_document",
    "resource_from_document",
]
