"""What the model's engine does to get from a record to a template, and the entries of the run file for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.model.ids import LogicalId, PhysicalId, RunId, TypeName
from stackhold.model.record import ResourceRecord
from stackhold.model.run import Intended, Intent, IntentKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.record import StateRecord
    from stackhold.model.run import IntentState, RunIdentity
    from stackhold.ports.engine import Run

TYPE = TypeName("Model::Thing")
_ADOPTED = -1


@dataclass(frozen=True, slots=True)
class Earlier:
    """A create that an earlier run may have sent: it is sent again under the same name."""

    name: str
    run_id: RunId


def adopted(name: PhysicalId) -> ResourceRecord:
    """What is recorded of a thing that was found: its size is not known."""
    return ResourceRecord(name, TYPE, {"size": _ADOPTED})


class Action(Enum):
    """What is done to one resource."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    REPLACE = "REPLACE"
    DELETE = "DELETE"
    CLEAN_UP = "CLEAN_UP"
    """The old resource of an earlier replacement."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a plan."""

    logical_id: LogicalId
    action: Action
    size: int = 0
    old: ResourceRecord | None = None
    name: str = ""
    """What it creates."""
    earlier: Earlier | None = None
    """The same create, as an earlier run may have sent it."""

    def intents(self, run: RunIdentity) -> list[Intent]:
        """One per physical identity."""
        found = []
        if self.name:
            run_id = run.run_id if self.earlier is None else self.earlier.run_id
            again = None if self.earlier is None else Intended(is_again=True)
            found.append(Intent(self.logical_id, TYPE, IntentKind.CREATE, run_id, name=self.name, intended=again))
        if self.old is not None:
            kind = IntentKind.UPDATE if self.action is Action.UPDATE else IntentKind.DELETE
            found.append(Intent(self.logical_id, TYPE, kind, run.run_id, physical_id=self.old.physical_id))
        return found

    def mark(self, run: Run, state: IntentState) -> None:
        """Say how far all that it touches has come. Two steps may have one logical id, but no resource in common."""
        if self.name:
            run.mark(self.logical_id, state)
        if self.old is not None:
            run.mark(self.logical_id, state, physical_id=self.old.physical_id)


@dataclass(frozen=True, slots=True)
class Desired:
    """A template: resources with a size. Odd resources are replaced when it changes, even ones updated."""

    sizes: Mapping[str, int]
    pace_ms: int = 5_000
    """How long a resource takes to settle."""

    def steps(self, record: StateRecord | None, run_id: str, earlier: Mapping[LogicalId, Earlier]) -> list[Step]:
        """What must be done to get there from a record."""
        found: list[Step] = []
        recorded = {} if record is None else record.resources
        for name, size in self.sizes.items():
            logical_id = LogicalId(name)
            old, again = recorded.get(logical_id), earlier.get(logical_id)
            new_name = f"{name}-{run_id}" if again is None else again.name
            if old is None:
                found.append(Step(logical_id, Action.CREATE, size, None, new_name, again))
            elif old.properties.get("size") not in (size, _ADOPTED) and int(name[1:]) % 2:
                found.append(Step(logical_id, Action.REPLACE, size, old, new_name, again))
            elif old.properties.get("size") != size:
                found.append(Step(logical_id, Action.UPDATE, size, old))
        for logical_id, old in recorded.items():
            if logical_id not in self.sizes:
                found.append(Step(logical_id, Action.DELETE, 0, old))
        for pending in () if record is None else record.pending_deletes:
            found.append(Step(pending.logical_id, Action.CLEAN_UP, 0, pending.resource))
        return found
