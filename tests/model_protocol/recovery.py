"""How the model's engine looks for what an earlier run had in flight: by name, each entry once, changing nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model_protocol.cloud import Verb
from tests.model_protocol.steps import Earlier, adopted

from stackhold.errors import OutcomeUnknown
from stackhold.model.ids import PhysicalId
from stackhold.model.record import AddPendingDelete, DropPendingDelete, DropResource, PendingDelete, SetResource
from stackhold.model.run import IntentKind
from stackhold.ports.engine import Recovery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.model_protocol.client import CloudClient

    from stackhold.model.ids import LogicalId
    from stackhold.model.record import RecordChange, StateRecord
    from stackhold.model.run import Intent
    from stackhold.ports.engine import Looking


@dataclass(slots=True)
class Search:
    """One look at everything that was left."""

    client: CloudClient
    record: StateRecord | None
    run: Looking
    changes: list[RecordChange] = field(default_factory=list)
    seen: list[Intent] = field(default_factory=list)
    unknown: list[Intent] = field(default_factory=list)
    earlier: dict[LogicalId, Earlier] = field(default_factory=dict)
    """Creates of which nothing is there: made again under the same name."""

    def look_for(self, left: Sequence[Intent]) -> Recovery:
        """Look for all."""
        for intent in left:
            try:
                self._look(intent)
            except OutcomeUnknown:
                self.unknown.append(intent)
        return Recovery(changes=tuple(self.changes), seen=tuple(self.seen), unknown=tuple(self.unknown))

    def _look(self, intent: Intent) -> None:
        name = intent.name if intent.kind is IntentKind.CREATE else intent.physical_id
        assert name is not None
        is_there = self.client.call(Verb.LOOK, name, check=self.run.check_call)
        match intent.kind:
            case IntentKind.CREATE if is_there:
                self.seen.append(intent)
                self._adopt(intent.logical_id, PhysicalId(name))
            case IntentKind.CREATE:
                self.earlier[intent.logical_id] = Earlier(name, intent.run_id)
            case IntentKind.DELETE if not is_there:
                self.seen.append(intent)
                self._forget(intent.logical_id, PhysicalId(name))
            case IntentKind.UPDATE:
                self.seen.append(intent)
            case _:
                pass

    def _adopt(self, logical_id: LogicalId, name: PhysicalId) -> None:
        if name in self._known:
            return
        taken = {change.logical_id for change in self.changes if isinstance(change, SetResource)}
        if logical_id in taken or (self.record is not None and logical_id in self.record.resources):
            self.changes.append(AddPendingDelete(PendingDelete(logical_id, adopted(name))))
        else:
            self.changes.append(SetResource(logical_id, adopted(name)))

    def _forget(self, logical_id: LogicalId, name: PhysicalId) -> None:
        if name not in self._known:
            return
        assert self.record is not None
        recorded = self.record.resources.get(logical_id)
        if recorded is not None and recorded.physical_id == name:
            self.changes.append(DropResource(logical_id))
        else:
            self.changes.append(DropPendingDelete(logical_id, name))

    @property
    def _known(self) -> set[PhysicalId]:
        record = self.record
        if record is None:
            return set()
        pending = {pending.resource.physical_id for pending in record.pending_deletes}
        return pending | {resource.physical_id for resource in record.resources.values()}
