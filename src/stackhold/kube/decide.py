"""What runs next on one object: a snapshot and `now` in, one decision out.

The rules are tried in their order and the first that applies decides. Nothing here reads a clock or the API server,
and nothing runs while a Job does. What a decision to run still has to pass (credentials, the merged policy, slots,
leases) is for others; none of it changes what was decided. A wait names when to look again; None is when something
changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.backoff import apply_is_unconverged, backoff_until, may_remediate, newest_first
from stackhold.kube.names import Kind
from stackhold.kube.schedule import appointments
from stackhold.kube.snapshot import (
    ApplyPolicy,
    DeletionPolicy,
    Outcome,
    PlanFacts,
    PlanPhase,
    PlanReason,
    StateStatus,
    is_gated,
    is_mutable,
)
from stackhold.model.instant import MINUTE, SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.kube.snapshot import JobFact, Snapshot

ACTIVE_JOB_MS: Final = MINUTE
LAG_MS: Final = 5 * SECOND
STATE_MS: Final = MINUTE
GATE_MS: Final = 30 * SECOND
APPROVAL_MS: Final = 10 * MINUTE


class Reason(StrEnum):
    """Why something runs or waits. The values are those of a metric."""

    JOB_ACTIVE = "JobActive"
    PAUSED = "Paused"
    DESTROYED = "Destroyed"
    DEPENDENTS_EXIST = "DependentsExist"
    DELETION_POLICY_UNRESOLVED = "DeletionPolicyUnresolved"
    RETAINED = "Retained"
    RESTORE_REQUESTED = "RestoreRequested"
    DELETION_HELD = "DeletionHeld"
    DELETING_WITHOUT_STATE = "DeletingWithoutState"
    DELETING = "Deleting"
    STATE_HELD = "StateHeld"
    NO_STATE = "NoState"
    STATE_WITHOUT_INPUTS_HASH = "StateWithoutInputsHash"
    INPUTS_CHANGED = "InputsChanged"
    LAST_APPLY_FAILED = "LastApplyFailed"
    DRIFT_REMEDIATION = "DriftRemediation"
    REFRESH_AFTER_APPLY = "RefreshAfterApply"
    MEMBERSHIP_CONVERGING = "MembershipConverging"
    HEALTH_PENDING = "HealthPending"
    MEMBERSHIP_REFRESH_DUE = "MembershipRefreshDue"
    HEALTH_CHECK_DUE = "HealthCheckDue"
    DRIFT_DUE = "DriftDue"
    UP_TO_DATE = "UpToDate"


class Waiting(StrEnum):
    """What a wait is for."""

    JOB = "job"
    CACHE = "cache"
    """The list of Jobs is behind."""
    UNPAUSE = "unpause"
    STATE = "state"
    DEPENDENTS = "dependents"
    POLICY = "policy"
    INPUTS = "inputs"
    """The inputs cannot be built yet."""
    APPROVAL = "approval"
    BACKOFF = "backoff"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Run:
    """Start this operation."""

    op: Operation
    reason: Reason
    expect_plan: str = ""
    """The plan that was approved: the apply may do this and nothing else."""

    @property
    def is_remediation(self) -> bool:
        """Whether it is an apply against drift."""
        return self.op is Operation.APPLY and self.reason is Reason.DRIFT_REMEDIATION

    @property
    def label(self) -> str:
        """The value of the metric."""
        return self.reason.value


@dataclass(frozen=True, slots=True)
class Wait:
    """Start nothing, and look again at the latest then."""

    reason: Reason
    until: Instant | None
    waiting: Waiting

    @property
    def label(self) -> str:
        """The value of the metric."""
        return f"{self.reason.value}Backoff" if self.waiting is Waiting.BACKOFF else self.reason.value


@dataclass(frozen=True, slots=True)
class Finalize:
    """Clean up and drop the finalizer."""

    reason: Reason

    @property
    def keeps(self) -> bool:
        """Whether state, backups and inputs stay for a later object."""
        return self.reason is Reason.RETAINED

    @property
    def label(self) -> str:
        """The value of the metric."""
        return self.reason.value


Decision: TypeAlias = Run | Wait | Finalize


def decide(snapshot: Snapshot, now: Instant) -> Decision:
    """What to do with the object now.

    An apply that makes the state what the object says comes before any look at the infrastructure, and a wait of such
    an apply puts the looks off as well: they would show the difference that waits. An apply that only tries again, or
    that undoes drift, does not hold them up.
    """
    for rule in _RULES:
        decision = rule(snapshot, now)
        if decision is not None:
            return decision
    again = _try_again(snapshot, now)
    if isinstance(again, Run):
        return again
    planned = _scheduled(snapshot, now)
    if again is None or isinstance(planned, Run):
        return planned
    return replace(again, until=_soonest(again.until, planned.until))


def _active(snapshot: Snapshot, now: Instant) -> Decision | None:
    if any(job.outcome is Outcome.ACTIVE for job in snapshot.jobs):
        return Wait(Reason.JOB_ACTIVE, Instant(now + ACTIVE_JOB_MS), Waiting.JOB)
    if snapshot.has_unseen_job:
        return Wait(Reason.JOB_ACTIVE, Instant(now + LAG_MS), Waiting.CACHE)
    return None


def _paused(snapshot: Snapshot, _: Instant) -> Decision | None:
    return Wait(Reason.PAUSED, None, Waiting.UNPAUSE) if snapshot.is_paused else None


def _destroyed(snapshot: Snapshot, _: Instant) -> Decision | None:
    """Everything is gone already. It comes before a restore, which would bring back a record of what is not there."""
    if not snapshot.is_deleting:
        return None
    done = [job for job in snapshot.jobs if job.outcome is Outcome.SUCCEEDED and is_gated(job.op)]
    newest = max(done, key=lambda job: job.age_key, default=None)
    return Finalize(Reason.DESTROYED) if newest is not None and newest.op is Operation.DESTROY else None


def _released(snapshot: Snapshot, now: Instant) -> Decision | None:
    """What ends or holds up a deletion whatever its state: those that need it, and the policy to keep everything."""
    if not snapshot.is_deleting:
        return None
    if snapshot.dependents:
        return Wait(Reason.DEPENDENTS_EXIST, Instant(now + GATE_MS), Waiting.DEPENDENTS)
    if snapshot.state.status is StateStatus.RETAINED:
        return Finalize(Reason.DELETING_WITHOUT_STATE)
    if snapshot.deletion_policy is DeletionPolicy.RETAIN:
        return Finalize(Reason.RETAINED)
    if snapshot.deletion_policy is DeletionPolicy.UNRESOLVED:
        return Wait(Reason.DELETION_POLICY_UNRESOLVED, Instant(now + GATE_MS), Waiting.POLICY)
    return None


def _restore(snapshot: Snapshot, _: Instant) -> Decision | None:
    request, status = snapshot.restore, snapshot.state.status
    if request is None or not request.backup or request.serial == snapshot.last_restored_serial:
        return None
    if status is StateStatus.RETAINED or (snapshot.is_deleting and not status.is_held):
        return None
    return Run(Operation.RESTORE, Reason.RESTORE_REQUESTED)


def _deleting(snapshot: Snapshot, now: Instant) -> Decision | None:
    if not snapshot.is_deleting:
        return None
    if snapshot.state.status.is_held:
        return Wait(Reason.DELETION_HELD, Instant(now + STATE_MS), Waiting.STATE)
    if snapshot.state.status is StateStatus.NONE:
        return Finalize(Reason.DELETING_WITHOUT_STATE)
    return _unless_backing_off(snapshot, Run(Operation.DESTROY, Reason.DELETING), now)


def _held(snapshot: Snapshot, now: Instant) -> Decision | None:
    if snapshot.state.status.is_held:
        return Wait(Reason.STATE_HELD, Instant(now + STATE_MS), Waiting.STATE)
    return None


def _apply_due(snapshot: Snapshot, now: Instant) -> Decision | None:
    """The applies without which the state is not what the object says."""
    state, current = snapshot.state, snapshot.inputs_hash
    if state.status is StateStatus.NONE:
        return _apply(snapshot, Reason.NO_STATE, now)
    if not state.inputs_hash:
        return _apply(snapshot, Reason.STATE_WITHOUT_INPUTS_HASH, now)
    if is_mutable(snapshot.kind) and current is not None and current != state.inputs_hash:
        return _apply(snapshot, Reason.INPUTS_CHANGED, now)
    return None


_RULES: Final[tuple[Callable[[Snapshot, Instant], Decision | None], ...]] = (
    _active,
    _paused,
    _destroyed,
    _released,
    _restore,
    _deleting,
    _held,
    _apply_due,
)


def _try_again(snapshot: Snapshot, now: Instant) -> Run | Wait | None:
    """The applies of inputs that the state has already."""
    if not is_mutable(snapshot.kind):
        return None
    if snapshot.unconfirmed_apply or apply_is_unconverged(snapshot.jobs):
        return _apply(snapshot, Reason.LAST_APPLY_FAILED, now)
    if snapshot.remediates_drift and _has_drift(snapshot) and may_remediate(snapshot):
        return _apply(snapshot, Reason.DRIFT_REMEDIATION, now)
    return None


def _has_drift(snapshot: Snapshot) -> bool:
    """Whether drift was found that no apply has undone since."""
    applied, checked = snapshot.last_apply, snapshot.last_drift_check
    return snapshot.readings.has_drift and (applied is None or checked is None or applied <= checked)


def _apply(snapshot: Snapshot, reason: Reason, now: Instant) -> Run | Wait:
    """An apply, or what comes before it: inputs, a plan, an approval, the end of a backoff."""
    if snapshot.inputs_hash is None:
        return Wait(reason, Instant(now + GATE_MS), Waiting.INPUTS)
    is_manual = snapshot.kind is Kind.CLUSTER and snapshot.apply_policy is ApplyPolicy.MANUAL
    is_planned = is_manual and reason is not Reason.NO_STATE
    plan = _plan_that_counts(snapshot, is_planned=is_planned)
    if plan.phase is PlanPhase.PENDING:
        return Wait(reason, Instant(now + APPROVAL_MS), Waiting.APPROVAL)
    if plan.phase in (PlanPhase.APPROVED, PlanPhase.EMPTY):
        return _unless_backing_off(snapshot, Run(Operation.APPLY, reason, plan.hash), now)
    looked_at = _unanswered(snapshot, Operation.PLAN if is_planned else Operation.APPLY)
    if looked_at is not None and looked_at + APPROVAL_MS > now:
        return Wait(reason, Instant(min(looked_at, now) + APPROVAL_MS), Waiting.APPROVAL)
    return _unless_backing_off(snapshot, Run(Operation.PLAN if is_planned else Operation.APPLY, reason), now)


def _plan_that_counts(snapshot: Snapshot, *, is_planned: bool) -> PlanFacts:
    """The live plan, unless it was made under the other policy: then it is moot."""
    plan = snapshot.plan
    return plan if (plan.reason is PlanReason.MANUAL) is is_planned else PlanFacts()


def _unanswered(snapshot: Snapshot, op: Operation) -> Instant | None:
    """When a Job showed what the current inputs would do, if it is the newest and its plan is not there to approve.

    That Job is not run again at once: its plan may still appear, and without one it would run for ever.
    """
    newest = next(iter(newest_first(snapshot.jobs, op)), None)
    stopped = Outcome.SUCCEEDED if op is Operation.PLAN else Outcome.BLOCKED
    if newest is None or newest.outcome is not stopped or newest.inputs_hash != snapshot.inputs_hash:
        return None
    return None if _was_acted_on(snapshot, newest) else newest.finished_at


def _was_acted_on(snapshot: Snapshot, planned: JobFact) -> bool:
    """Whether an apply ended after this plan was made: what it showed is then of the past."""
    if planned.op is not Operation.PLAN:
        return False
    return any(job.age_key > planned.age_key for job in newest_first(snapshot.jobs, Operation.APPLY))


def _unless_backing_off(snapshot: Snapshot, run: Run, now: Instant) -> Run | Wait:
    until = backoff_until(snapshot, run.op, now)
    return run if until is None else Wait(run.reason, until, Waiting.BACKOFF)


def _scheduled(snapshot: Snapshot, now: Instant) -> Run | Wait:
    """The first check that is due and may run; one that backs off holds up no other operation."""
    soonest: Wait = Wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE)
    for appointment in appointments(snapshot, now):
        reason = Reason(appointment.check.value)
        until = backoff_until(snapshot, appointment.op, now)
        if appointment.due_at > now:
            at = max(appointment.due_at, until or now)
            soonest = replace(soonest, until=_soonest(soonest.until, at))
        elif until is None:
            return Run(appointment.op, reason)
        else:
            is_first = soonest.waiting is not Waiting.BACKOFF
            named = Wait(reason, soonest.until, Waiting.BACKOFF) if is_first else soonest
            soonest = replace(named, until=_soonest(named.until, until))
    return soonest


def _soonest(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
