"""What the runner has to say when it is done with a module: steps, plan, drift, what failed, what nobody recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackhold.model.run import Outcome

if TYPE_CHECKING:
    from stackhold.engines.terraform.diagnostics import Changes, Diagnostic
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.engines.terraform.planfile import DriftSummary, PlannedChange, PlanSummary
    from stackhold.engines.terraform.state_document import Unrecorded


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step that was taken."""

    name: str
    exit: int
    """The exit code; negative for the signal that ended it."""
    ms: int


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended an operation early."""

    kind: str
    """`step`, `interrupted`, `blocked`, `plan-changed` or `image-layout`."""
    step: str
    message: str
    """One line for people."""
    tail: str = ""
    """A summary of the diagnostics, 512 bytes at most."""
    hint: str = ""
    lock: LockInfo | None = None
    """Who holds the state lock, when that is what failed."""


@dataclass(frozen=True, slots=True)
class RunnerReport:
    """How an operation on a module went. Grows while it goes on."""

    product: str = ""
    version: str = ""
    steps: tuple[StepRecord, ...] = ()
    plan: PlanSummary | None = None
    drift: DriftSummary | None = None
    drifted: tuple[PlannedChange, ...] = ()
    """What the refresh of a drift operation found to be another than the state said."""
    changes: Changes | None = None
    failure: Failure | None = None
    stderr: str = ""
    """What a failed step without diagnostics said on standard error, for the terminal alone."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Errors and warnings of all steps."""
    unrecorded: tuple[Unrecorded, ...] = ()
    """What was made, or may have been, and the state does not know."""
    keeps_state: bool = False
    """Whether the store is the module's backend, so that only runs of ours reach the state."""
    outputs: tuple[tuple[str, str | None], ...] = ()
    """The outputs after an apply, as JSON; None for a sensitive one. For the terminal, never for a record."""
    touched: int = 0
    """How many resources were changed."""
    notes: tuple[str, ...] = ()
    """What people should know: locks cleared, states taken up, processes swept."""
    was_killed: bool = False
    """Whether a step had to be killed, so that what it had in flight is not known."""

    def with_step(self, step: StepRecord) -> RunnerReport:
        """The same after one more step."""
        return replace(self, steps=(*self.steps, step))

    def with_note(self, note: str) -> RunnerReport:
        """The same with something more to know."""
        return replace(self, notes=(*self.notes, note))

    @property
    def outcome(self) -> Outcome:
        """The operation's own outcome; what stopped the run is put over it by the run."""
        if self.failure is None:
            return Outcome.SUCCEEDED
        return _OUTCOMES.get(self.failure.kind, Outcome.FAILED)


_OUTCOMES = {
    "interrupted": Outcome.INTERRUPTED,
    "blocked": Outcome.BLOCKED,
    "plan-changed": Outcome.PLAN_CHANGED,
}
