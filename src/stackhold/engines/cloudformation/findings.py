"""What a recovery has found so far: the record as it must become, who is accounted for, and words for people."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.decide.record import apply_changes
from stackhold.engines.cloudformation.known import Known
from stackhold.model.record import (
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    SetResource,
    StateRecord,
)
from stackhold.ports.engine import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.cloudformation.resources.handler import Handler, Seen
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import RecordChange, ResourceRecord
    from stackhold.model.run import Intent

TWIN = "a second one, made by a request that was carried out late"


class Findings:
    """One recovery's findings. Thread-safe."""

    def __init__(
        self,
        record: StateRecord,
        *,
        handler_of: Callable[[ResourceRecord], Handler],
        read: Callable[[ResourceRecord], Seen | None],
    ) -> None:
        self._record = record
        self._changes: list[RecordChange] = []
        self._claimed: set[tuple[str, PhysicalId, str]] = set()
        self._seen: list[Intent] = []
        self._unknown: list[Intent] = []
        self._texts: dict[str, list[str]] = {"taken on": [], "gone": [], "advice": []}
        self._lock = threading.Lock()
        self._absent: list[Intent] = []
        self.known = Known(record.resources, handler_of=handler_of, read=read)
        """For references to other resources."""

    @property
    def absent(self) -> tuple[Intent, ...]:
        """Creates of which nothing is there."""
        with self._lock:
            return tuple(self._absent)

    @property
    def record(self) -> StateRecord:
        """The record as found out so far."""
        with self._lock:
            return self._record

    def resource(self, logical_id: LogicalId) -> ResourceRecord | None:
        """A resource as recorded by now."""
        return self.record.resources.get(logical_id)

    def take_on(self, logical_id: LogicalId, resource: ResourceRecord, *, instead_of: ResourceRecord | None) -> None:
        """It exists and no record had it. `instead_of` is the one that it replaces, to be deleted later."""
        changes: list[RecordChange] = [SetResource(logical_id, resource)]
        if instead_of is not None:
            reason = "replaced; deleted once everything else is done"
            changes.append(AddPendingDelete(PendingDelete(logical_id, instead_of, reason)))
        changes += [
            DropPendingDelete(logical_id, resource.physical_id)
            for pending in self.record.pending_deletes
            if (pending.logical_id, pending.resource.physical_id) == (logical_id, resource.physical_id)
        ]
        self._apply(*changes)
        self.known.put(logical_id, resource)
        self.say("taken on", f"{logical_id} ({resource.type}) as {resource.physical_id}")

    def correct(self, logical_id: LogicalId, resource: ResourceRecord) -> None:
        """It is recorded, and is not what the record said."""
        self._apply(SetResource(logical_id, resource))
        self.known.put(logical_id, resource)

    def drop(self, logical_id: LogicalId, resource: ResourceRecord) -> None:
        """It is recorded, and gone."""
        self._apply(DropResource(logical_id))
        self.known.drop(logical_id)
        self.say("gone", f"{logical_id} ({resource.type}) {resource.physical_id}")

    def drop_pending(self, pending: PendingDelete) -> None:
        """It waited for its deletion, and is gone."""
        self._apply(DropPendingDelete(pending.logical_id, pending.resource.physical_id))

    def add_twin(self, logical_id: LogicalId, resource: ResourceRecord) -> None:
        """It exists, and the record holds another."""
        self._apply(AddPendingDelete(PendingDelete(logical_id, resource, TWIN)))

    def claim(self, resource: tuple[str, PhysicalId], scope: Props) -> bool:
        """Whether a resource is nobody's yet; then it is the caller's."""
        key = (*resource, repr(sorted(scope.items())))
        with self._lock:
            is_free = key not in self._claimed
            self._claimed.add(key)
        return is_free

    def resolve(self, intent: Intent) -> None:
        """Its effect is there, or never was."""
        with self._lock:
            self._seen.append(intent)

    def miss(self, intent: Intent) -> None:
        """Nothing of it is there."""
        with self._lock:
            self._absent.append(intent)

    def give_up(self, intent: Intent, advice: str) -> None:
        """Nobody can tell."""
        with self._lock:
            self._unknown.append(intent)
            self._texts["advice"].append(advice)

    def say(self, what: str, text: str) -> None:
        """Something for people."""
        with self._lock:
            self._texts[what].append(text)

    def result(self) -> Recovery:
        """All of it."""
        with self._lock:
            return Recovery(
                changes=tuple(self._changes),
                seen=tuple(self._seen),
                unknown=tuple(self._unknown),
                taken_on=tuple(sorted(self._texts["taken on"])),
                gone=tuple(sorted(self._texts["gone"])),
                absent=tuple(sorted({_named(intent) for intent in self._absent})),
                advice=tuple(sorted(self._texts["advice"])),
            )

    def _apply(self, *changes: RecordChange) -> None:
        with self._lock:
            self._changes += changes
            self._record = apply_changes(self._record, changes)


def _named(intent: Intent) -> str:
    name = intent.physical_id or intent.name
    return f"{intent.logical_id} ({intent.kind.value}{f' {name}' if name else ''})"
