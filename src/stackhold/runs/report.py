"""What a guarded run has to say for itself when it is over: outcome, exit code, and what a renderer shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.model.exit_codes import ExitCode
    from stackhold.model.record import StateRecord
    from stackhold.model.run import Outcome, RunIdentity, StopCause
    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class RunReport:
    """How a run ended. Failures before anything was changed are raised instead."""

    identity: RunIdentity
    outcome: Outcome
    exit_code: ExitCode
    cause: StopCause | None = None
    """Why it stopped early; None when it did not."""
    waited_ms: int = 0
    """How long it waited for the lock."""
    warnings: tuple[str, ...] = ()
    summary: JsonMap = field(default_factory=dict)
    error: str = ""
    """One line: what failed first; empty when nothing did."""
    hint: str = ""
    """The safe next step, or what must be known about the lock."""
    record: StateRecord | None = None
    """The record as last confirmed; None when there is none."""
    changed: bool = False
    """Whether the run stamped the record, so that it may have called the cloud."""
    is_journalled: bool = False
    """Whether the rollback journal says what was done, so that it can be undone."""
    is_complete: bool = False
    """Whether all that was planned had been done, even if the run was asked to stop meanwhile."""
    is_empty: bool = False
    """Whether there was nothing to do."""
    generation: int | None = None
    holder: str = ""
    """Who holds the lock now, after it was lost."""
    unsaved: tuple[str, ...] = ()
    """Physical ids, as `LogicalId physical-id`, that are in no record: a save was refused, or the record is gone."""
    is_recorded: bool = True
    """Whether all that was done is in a confirmed save, as far as the run could know."""
