"""What a run tells about itself: shown live, kept in the store under `events/`, read back by `events`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.model.ids import LogicalId
    from stackhold.model.instant import Instant
    from stackhold.model.values import JsonMap


class EventKind(StrEnum):
    """What happened. The data that each kind carries is in `docs/reference/events.md`."""

    RUN_STARTED = "run-started"
    LOCK_WAITING = "lock-waiting"
    LOCK_ACQUIRED = "lock-acquired"
    LOCK_TAKEN_OVER = "lock-taken-over"
    RECOVERED = "recovered"
    PLANNED = "planned"
    OPERATION_STARTED = "operation-started"
    OPERATION_SETTLING = "operation-settling"
    OPERATION_WAITING = "operation-waiting"
    OPERATION_DONE = "operation-done"
    OPERATION_FAILED = "operation-failed"
    OPERATION_SKIPPED = "operation-skipped"
    STEP_STARTED = "step-started"
    STEP_DONE = "step-done"
    STOPPING = "stopping"
    GOING_BACK = "going-back"
    WARNING = "warning"
    RUN_FINISHED = "run-finished"


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. Never holds a secret."""

    kind: EventKind
    at: Instant
    logical_id: LogicalId | None = None
    message: str = ""
    data: JsonMap = field(default_factory=dict)
