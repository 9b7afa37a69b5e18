"""Writes the journal of a run that could not: it was killed, and whoever recovers it says what it had done.

Worked out from the copy of the record that its stamp replaced. A run that is over has said so itself: in the journal,
or in its run file, which then names no such record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.decide.killed import segment_of_killed
from stackhold.errors import RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_run_log
from stackhold.model.run import Outcome
from stackhold.ports.store import Stored
from stackhold.runs import backups

if TYPE_CHECKING:
    from stackhold.model.journal import JournalSegment
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunFile
    from stackhold.runs.parts import RunParts

_UNDOING = "rollback"
"""A rollback adds nothing to the journal, and takes out of it only when it settles: the next one goes on from it."""


def journal_killed(parts: RunParts, left: RunFile, now: StateRecord) -> None:
    """Add the segment that the run would have written; what prevents that is a warning.

    `now` is the record with all that was found of it.
    """
    if left.replaces is None or left.operation == _UNDOING:
        return
    try:
        segment = _segment(parts, left, now)
        if segment is not None:
            parts.journal.append(segment)
    except (StoreError, RecordUnreadable, RecordTooNew) as error:
        parts.log.warn(f"what the earlier run had done cannot be rolled back: {error.message}")


def _segment(parts: RunParts, left: RunFile, now: StateRecord) -> JournalSegment | None:
    if _has_succeeded(parts, left):
        return None
    before = None
    if left.replaces is not None and left.replaces >= 0:
        before = backups.find(parts.store, parts.keys, serial=left.replaces)
        if before is None or before.lineage not in (None, now.lineage):
            parts.log.warn(
                "what the earlier run had done cannot be rolled back: no copy of the record before it is left"
            )
            return None
    return segment_of_killed(left, before, now, tool_version=parts.identity.tool_version)


def _has_succeeded(parts: RunParts, left: RunFile) -> bool:
    """Whether it was killed only after it had settled."""
    key = parts.keys.event(left.run_id)
    found = parts.store.read(key)
    return isinstance(found, Stored) and decode_run_log(found.data, key=key).outcome is Outcome.SUCCEEDED
