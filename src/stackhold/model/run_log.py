"""The record that every run leaves under `events/`: who, what, both clocks' settings, outcome, and all its events.

While the run lives, `ended_at` is None and the log grows; `events --follow` reads it again and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.model.events import Event
    from stackhold.model.ids import LockId
    from stackhold.model.instant import Instant
    from stackhold.model.run import Outcome, RunIdentity
    from stackhold.model.values import JsonMap

RUN_LOG_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunLog:
    """One run as it told itself. Never holds a secret."""

    identity: RunIdentity
    started_at: Instant
    deadline_ms: int
    lock_wait: str
    """How long it would have waited for the lock, for people: `3 more tries, 2 s apart`, `5 m 0 s`."""
    waited_ms: int = 0
    """How long it did wait."""
    lock_id: LockId | None = None
    generation: int | None = None
    updated_at: Instant | None = None
    ended_at: Instant | None = None
    """None while it lives, or when it was killed."""
    outcome: Outcome | None = None
    exit_code: int | None = None
    cause: str | None = None
    """Why it stopped early: a `StopCause`; None when it did not."""
    error: str = ""
    warnings: tuple[str, ...] = ()
    summary: JsonMap = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    extra: JsonMap = field(default_factory=dict)
