"""Changes to a state record, and what makes one write of it differ from every other. All pure.

A save is a list of changes, applied to the last confirmed version or, after a foreign write, to what is there now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from stackhold.model.record import (
    FORMAT_VERSION,
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    SetResource,
    SetStack,
    StateRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, StackName
    from stackhold.model.instant import Instant
    from stackhold.model.record import RecordChange, ResourceRecord


_CONTESTED = "someone else recorded another resource in its place"


def apply_changes(record: StateRecord, changes: Iterable[RecordChange]) -> StateRecord:
    """The record with all changes made, in their order. Making them again changes nothing but an order of entries."""
    resources = dict(record.resources)
    pending = {(item.logical_id, item.resource.physical_id): item for item in record.pending_deletes}
    for change in changes:
        if isinstance(change, SetStack):
            record = _set_stack(record, change)
        else:
            _apply(change, resources, pending)
    return replace(record, resources=resources, pending_deletes=tuple(pending.values()))


def _apply(
    change: SetResource | DropResource | AddPendingDelete | DropPendingDelete,
    resources: dict[LogicalId, ResourceRecord],
    pending: dict[tuple[LogicalId, PhysicalId], PendingDelete],
) -> None:
    match change:
        case SetResource(logical_id, resource):
            resources[logical_id] = resource
        case DropResource(logical_id):
            resources.pop(logical_id, None)
        case AddPendingDelete(item):
            pending[item.logical_id, item.resource.physical_id] = item
        case DropPendingDelete(logical_id, physical_id):
            pending.pop((logical_id, physical_id), None)
        case _:
            assert_never(change)


def contested(
    theirs: StateRecord, *, base: StateRecord | None, changes: Iterable[RecordChange]
) -> frozenset[LogicalId]:
    """What somebody else has put another resource under, while we had `base` and made `changes`."""
    ours = {(name, resource.physical_id) for name, resource in (base.resources if base else {}).items()}
    ours |= {(each.logical_id, each.resource.physical_id) for each in changes if isinstance(each, SetResource)}
    return frozenset(name for name, resource in theirs.resources.items() if (name, resource.physical_id) not in ours)


def yielding(changes: Iterable[RecordChange], *, to: Mapping[LogicalId, PhysicalId | None]) -> list[RecordChange]:
    """Our changes where others have put their own resources under some logical ids (with ours, if we made one).

    Theirs stay recorded; what we made or have there waits for its deletion, so that neither is forgotten.
    """
    ours = dict(to)
    found: list[RecordChange] = []
    for change in changes:
        if isinstance(change, SetResource) and change.logical_id in ours:
            ours[change.logical_id] = change.resource.physical_id
            found.append(AddPendingDelete(PendingDelete(change.logical_id, change.resource, _CONTESTED)))
        elif isinstance(change, DropResource) and change.logical_id in ours:
            if (physical_id := ours[change.logical_id]) is not None:
                found.append(DropPendingDelete(change.logical_id, physical_id))
        else:
            found.append(change)
    return found


def _set_stack(record: StateRecord, change: SetStack) -> StateRecord:
    return replace(
        record,
        outputs=record.outputs if change.outputs is None else change.outputs,
        parameters=record.parameters if change.parameters is None else change.parameters,
        stack_id=record.stack_id if change.stack_id is None else change.stack_id,
        lineage=record.lineage if change.lineage is None else change.lineage,
        tags=record.tags if change.tags is None else (change.tags or None),
    )


def next_generation(replaced: StateRecord | None, *, locked_at: Instant) -> int:
    """The generation that a stamp writes: above the replaced one, and not below the store's time in seconds when
    the lock was answered, so that it also rises over a destroy or a writer that dropped it."""
    before = 0 if replaced is None else (replaced.generation or 0)
    return max(before + 1, locked_at // 1000)


def next_version(base: StateRecord, *, lock_id: LockId, generation: int, now: Instant) -> StateRecord:
    """The same content as a new write of this run: no two writes have equal bytes."""
    return replace(
        base,
        version=FORMAT_VERSION,
        lock_id=lock_id,
        generation=generation,
        serial=base.serial + 1,
        last_modified=now,
    )


def empty_record(stack: StackName, region: Region, *, lineage: str | None = None) -> StateRecord:
    """The record of a stack of which nothing exists yet."""
    return StateRecord(stack=stack, region=region, lineage=lineage)


def has_same_resources(one: StateRecord | None, other: StateRecord | None) -> bool:
    """Whether two records speak of the same resources in the same state; an absent record has none."""
    if one is None or other is None:
        return (one is None or not one.resources) and (other is None or not other.resources)
    return one.resources == other.resources and one.pending_deletes == other.pending_deletes


def unsaved_ids(changes: Iterable[RecordChange], *, recorded: StateRecord | None) -> tuple[str, ...]:
    """The physical ids that are in no record when these changes cannot be saved, as `LogicalId physical-id`.

    What `recorded`, the version confirmed last, holds is none of them, even if a later change of it is not saved.
    """
    last: dict[str, tuple[LogicalId, PhysicalId]] = {}
    for change in changes:
        match change:
            case SetResource(logical_id, resource):
                last[logical_id] = logical_id, resource.physical_id
            case DropResource(logical_id):
                last.pop(logical_id, None)
            case AddPendingDelete(item):
                last[f"{item.logical_id}/{item.resource.physical_id}"] = item.logical_id, item.resource.physical_id
            case DropPendingDelete(logical_id, physical_id):
                last.pop(f"{logical_id}/{physical_id}", None)
            case SetStack():
                pass
    known = _identities(recorded)
    return tuple(
        dict.fromkeys(f"{name} {identity}" for name, identity in last.values() if (name, identity) not in known)
    )


def as_changes(record: StateRecord) -> list[RecordChange]:
    """The changes that would make what a record holds again."""
    return [
        *(SetResource(name, resource) for name, resource in record.resources.items()),
        *(AddPendingDelete(item) for item in record.pending_deletes),
    ]


def _identities(record: StateRecord | None) -> frozenset[tuple[LogicalId, PhysicalId]]:
    if record is None:
        return frozenset()
    waiting = ((item.logical_id, item.resource.physical_id) for item in record.pending_deletes)
    return frozenset((*((name, each.physical_id) for name, each in record.resources.items()), *waiting))
