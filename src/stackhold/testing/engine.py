"""An engine that does what a test tells it: the double for guarded runs.

Each plan is made from a script; the script sees the run exactly as a real engine would and may save, mark, wait and
look whether it must stop. It keeps what it was asked.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.model.record import ResourceRecord, SetResource
from stackhold.model.run import Intent, IntentKind, IntentState, Outcome
from stackhold.ports.engine import Recovery, WorkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Engine, ExportingWork, Looking, PlannedExports, RecoveringEngine, Run, Work

    Script = Callable[[Run], WorkResult]

TYPE = TypeName("Test::Thing")
DONE = WorkResult(Outcome.SUCCEEDED, ExitCode.DONE)


def thing(physical_id: str, **properties: object) -> ResourceRecord:
    """A recorded resource of no real type."""
    return ResourceRecord(PhysicalId(physical_id), TYPE, properties)


def create(run: Run, *names: str, confirmed: bool = False) -> None:
    """Do what a create ends with: save the resource, mark its intent."""
    for name in names:
        run.save([SetResource(LogicalId(name), thing(f"{name.lower()}-1"))], confirmed=confirmed)
        run.mark(LogicalId(name), IntentState.DONE)


@dataclass(frozen=True, slots=True)
class ScriptedWork:
    """Work that is a function."""

    script: Script
    intents: Sequence[Intent]
    steps: Sequence[JsonMap]
    is_empty: bool = False
    exports: PlannedExports | None = None

    def perform(self, run: Run) -> WorkResult:
        """Do what the test said."""
        return self.script(run)


@dataclass(slots=True)
class ScriptedEngine:
    """Plans to create `creates` and then runs `script`; without `creates` there is nothing to do."""

    script: Script = lambda _: DONE
    creates: Sequence[str] = ()
    on_plan: Callable[[StateRecord | None], None] = lambda _: None
    """Called with the record at each plan; may raise."""
    planned: list[StateRecord | None] = field(default_factory=list)
    """The records that plans were made from, in order."""
    intents_instead: Sequence[Intent] | None = None
    """The plan's intents, where a test does not want the usual ones."""
    exports: PlannedExports | None = None
    """What the stack is to export."""
    plan_called: threading.Event = field(default_factory=threading.Event)

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> Work:
        """Plan from this record."""
        self.planned.append(record)
        self.plan_called.set()
        self.on_plan(record)
        intents = [
            Intent(LogicalId(name), TYPE, IntentKind.CREATE, identity.run_id, name=f"{name.lower()}-1")
            for name in self.creates
        ]
        steps = [{"logicalId": name, "type": TYPE, "operation": "create"} for name in self.creates]
        intents = list(self.intents_instead) if self.intents_instead is not None else intents
        return ScriptedWork(self.script, intents, steps, is_empty=not self.creates, exports=self.exports)


@dataclass(frozen=True, slots=True)
class Looked:
    """What an engine was given to look for."""

    left: tuple[Intent, ...]
    record: StateRecord | None
    may_still_land: bool


@dataclass(slots=True)
class RecoveringScript(ScriptedEngine):
    """The same, for a run that looks first for what another left: `on_look` says what it finds."""

    on_look: Callable[[Looked, Looking], Recovery] = lambda looked, _: Recovery(seen=looked.left)
    looked: list[Looked] = field(default_factory=list)
    """What was asked, in order."""

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """Look as the test says."""
        asked = Looked(tuple(left), record, may_still_land)
        self.looked.append(asked)
        return self.on_look(asked, run)


if TYPE_CHECKING:
    ___: type[RecoveringEngine] = RecoveringScript
    _: type[Engine] = ScriptedEngine
    __: type[Work] = ScriptedWork
    ____: type[ExportingWork] = ScriptedWork
