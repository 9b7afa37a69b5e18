"""What a run that was killed had done, worked out from the record before it and the record now. All pure.

A killed run writes no journal. Whoever recovers it can: what differs in the resources that it meant to touch is what
it did, whether its save or the recovery has put it into the record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.model.codec import resource_document
from stackhold.model.journal import (
    PREVIOUS_OUTPUTS,
    PREVIOUS_PARAMETERS,
    PREVIOUS_TAGS,
    JournalOperation,
    JournalSegment,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import ResourceRecord, StateRecord
    from stackhold.model.run import RunFile
    from stackhold.model.values import JsonMap


def segment_of_killed(
    left: RunFile, before: StateRecord | None, now: StateRecord | None, *, tool_version: str
) -> JournalSegment | None:
    """The segment that the run would have written; None when it had done nothing.

    `before` is the record that its stamp replaced, None when there was none; `now` the record with all that was found.
    """
    operations = tuple(_operations(left, before, now))
    if not operations:
        return None
    return JournalSegment(
        run_id=left.run_id,
        timestamp=left.started_at,
        reason="interrupted",
        is_initial_deploy=before is None or not before.resources,
        operations=operations,
        tool_version=tool_version,
        extra=former_stack(before, now),
    )


def former_stack(before: StateRecord | None, now: StateRecord | None) -> JsonMap:
    """What belongs to the stack as a whole and was another before, so that a rollback can bring it back."""
    if before is None or now is None:
        return {}
    former: dict[str, object] = {}
    if before.outputs != now.outputs:
        former[PREVIOUS_OUTPUTS] = before.outputs
    if before.parameters is not None and before.parameters != now.parameters:
        former[PREVIOUS_PARAMETERS] = before.parameters
    if (before.tags or {}) != (now.tags or {}):
        former[PREVIOUS_TAGS] = before.tags or {}
    return former


def _operations(left: RunFile, before: StateRecord | None, now: StateRecord | None) -> Iterator[JournalOperation]:
    """What was deleted first, then the rest in the order of the record, which is the order of the work."""
    touched = {intent.logical_id for intent in left.intents} | {str(step.get("logicalId")) for step in left.plan}
    former = before.resources if before is not None else {}
    present = now.resources if now is not None else {}
    for name, old in former.items():
        if name in touched and name not in present:
            yield _operation(name, "DELETE", old, old)
    for name, new in present.items():
        old_one = former.get(name)
        if name not in touched:
            continue
        if old_one is None:
            yield _operation(name, "CREATE", new, None)
        elif old_one.physical_id != new.physical_id:
            yield _operation(name, "REPLACE", new, old_one)
        elif old_one.properties != new.properties or new.is_adopted:
            yield _operation(name, "UPDATE", new, old_one)


def _operation(name: LogicalId, change: str, known: ResourceRecord, old: ResourceRecord | None) -> JournalOperation:
    physical_id: PhysicalId = known.physical_id
    return JournalOperation(
        logical_id=name,
        change_type=change,
        type=known.type,
        physical_id=physical_id,
        properties=None if change == "DELETE" else known.properties,
        provisioned_by=known.provisioned_by,
        previous=resource_document(old) if old is not None else None,
    )
