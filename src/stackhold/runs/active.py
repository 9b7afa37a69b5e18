"""The guarded run as the engine sees it: one object that hands each request to whoever owns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.events import Event
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import RecordChange
    from stackhold.model.run import IntentState, RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Looking, Run, Stop
    from stackhold.runs.control import Control
    from stackhold.runs.events import RunLogKeeper
    from stackhold.runs.run_file import RunFileKeeper
    from stackhold.runs.saver import Saver


@dataclass(frozen=True, slots=True)
class LookingRun:
    """A run that holds its lock and looks before it plans. Thread-safe."""

    identity: RunIdentity
    clock: Clock
    control: Control

    def stopping(self) -> Stop | None:
        """Why nothing new may start, or None."""
        return self.control.stopping()

    def check_call(self) -> None:
        """Raise `StoodDown` when not even a call of an operation in flight may start."""
        self.control.check_call()

    def wait(self, ms: int) -> None:
        """Wait between polls."""
        self.control.wait(ms)


@dataclass(frozen=True, slots=True)
class ActiveRun(LookingRun):
    """A run that holds its lock and has stamped the record. Thread-safe."""

    saver: Saver
    run_file: RunFileKeeper
    log: RunLogKeeper

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        """Put changes into the record."""
        self.saver.save(changes, confirmed=confirmed)

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """How far this run's intent for a resource has come."""
        self.run_file.mark(logical_id, state, physical_id=physical_id)

    def note(self, logical_id: LogicalId, extra: JsonMap) -> None:
        """Keep something beside this run's intents for a resource, for who comes after a crash."""
        self.run_file.note(logical_id, extra)

    def tell(self, event: Event) -> None:
        """Show and keep an event."""
        self.log.tell(event)


if TYPE_CHECKING:
    _: type[Run] = ActiveRun
    __: type[Looking] = LookingRun
