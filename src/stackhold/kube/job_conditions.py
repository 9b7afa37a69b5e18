"""What conditions say of Jobs: of one that ended, of one that waits to start, and of inputs that wait for one.

Each operation reports on one condition: what changes the infrastructure on `ApplyJobSucceeded`, what only looks on
`DriftJobSucceeded`, a restore on its own. An operation that was stopped from outside says nothing of its own: it is
started again at once, and what was said before stays true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.backoff import apply_is_unconverged
from stackhold.kube.condition_reasons import ConditionReason, Type
from stackhold.kube.conditions import Condition, condition
from stackhold.kube.decide import Run, Wait, Waiting
from stackhold.kube.job_end import Cause
from stackhold.kube.snapshot import Outcome, is_background, is_mutable

if TYPE_CHECKING:
    from stackhold.kube.decide import Decision
    from stackhold.kube.job_end import Ended
    from stackhold.kube.snapshot import Snapshot

_APPLY: Final = {
    Cause.PLAN_UNREADABLE: ConditionReason.APPLY_FAILED,
    Cause.IMAGE_PULL: ConditionReason.IMAGE_PULL_FAILED,
    Cause.BLOCKED: ConditionReason.DESTRUCTIVE_PLAN_BLOCKED,
    Cause.PLAN_CHANGED: ConditionReason.PLAN_CHANGED,
    Cause.DEADLINE: ConditionReason.JOB_DEADLINE_EXCEEDED,
    Cause.IMAGE_LAYOUT: ConditionReason.IMAGE_INVALID,
    Cause.STEP: ConditionReason.APPLY_FAILED,
    Cause.NO_RESULT: ConditionReason.APPLY_FAILED,
}
_NOTHING_APPLIED: Final = "nothing was applied"


def condition_type(operation: Operation) -> Type:
    """Where an operation reports."""
    if operation is Operation.RESTORE:
        return Type.RESTORE_JOB_SUCCEEDED
    return Type.DRIFT_JOB_SUCCEEDED if is_background(operation) else Type.APPLY_JOB_SUCCEEDED


def of_end(ended: Ended) -> Condition | None:
    """What a Job's end says; None when it leaves what was said before."""
    operation = ended.job.operation
    if is_background(operation):
        return _of_check(ended)
    if ended.cause is Cause.INTERRUPTED:
        return None
    if operation is Operation.RESTORE:
        reason = ConditionReason.STATE_RESTORED if ended.cause is Cause.DONE else ConditionReason.RESTORE_FAILED
        return condition(Type.RESTORE_JOB_SUCCEEDED, reason, _message(ended))
    return _of_change(ended)


def of_start(operation: Operation, job: str) -> Condition | None:
    """What is said while a Job runs; an apply keeps the last result."""
    if not is_background(operation):
        return None
    return condition(Type.DRIFT_JOB_SUCCEEDED, ConditionReason.DRIFT_JOB_RUNNING, f"Job {job} runs")


def of_wait(operation: Operation, reason: ConditionReason, message: str) -> Condition:
    """That an operation waits for a lease or for a slot."""
    return condition(condition_type(operation), reason, message)


def of_policy(refusal: str) -> Condition:
    """That no Job starts under the merged policy, whichever operation was due."""
    return condition(Type.APPLY_JOB_SUCCEEDED, ConditionReason.JOB_POLICY_INVALID, refusal)


def inputs_applied(snapshot: Snapshot, decision: Decision) -> Condition | None:
    """Whether the current inputs are what the infrastructure is; None when this pass does not know."""
    if snapshot.is_deleting or snapshot.is_paused:
        return None
    reason = _of_inputs(snapshot, decision)
    return None if reason is None else condition(Type.INPUTS_APPLIED, reason)


def _of_inputs(snapshot: Snapshot, decision: Decision) -> ConditionReason | None:
    active = [job.op for job in snapshot.jobs if job.outcome is Outcome.ACTIVE]
    if active:
        return ConditionReason.APPLY_RUNNING if Operation.APPLY in active else None
    if snapshot.state.status.is_held:
        return None
    if isinstance(decision, Wait) and decision.waiting is Waiting.APPROVAL:
        return ConditionReason.AWAITING_APPROVAL
    applied = snapshot.state.inputs_hash
    is_equal = bool(applied) and (snapshot.inputs_hash == applied or not is_mutable(snapshot.kind))
    if not is_equal and snapshot.inputs_hash is None:
        return ConditionReason.INPUTS_UNAVAILABLE
    if snapshot.unconfirmed_apply or apply_is_unconverged(snapshot.jobs):
        return (
            ConditionReason.INPUTS_APPLIED
            if is_equal and not is_mutable(snapshot.kind)
            else ConditionReason.INPUTS_APPLY_FAILED
        )
    is_due = isinstance(decision, Run) and decision.op in (Operation.APPLY, Operation.PLAN)
    return ConditionReason.INPUTS_APPLIED if is_equal and not is_due else ConditionReason.APPLY_PENDING


def _of_check(ended: Ended) -> Condition:
    match ended.cause:
        case Cause.DONE:
            reason = ConditionReason.DRIFT_CHECKED
        case Cause.INTERRUPTED:
            reason = ConditionReason.DRIFT_NOT_CHECKED
        case _:
            reason = (
                ConditionReason.DRIFT_JOB_DEADLINE_EXCEEDED
                if ended.job.hit_deadline
                else ConditionReason.DRIFT_JOB_FAILED
            )
    return condition(Type.DRIFT_JOB_SUCCEEDED, reason, _message(ended))


def _of_change(ended: Ended) -> Condition | None:
    is_destroy = ended.job.operation is Operation.DESTROY
    if ended.cause is Cause.DONE:
        if ended.job.operation is Operation.PLAN:
            return None
        reason = ConditionReason.DESTROY_SUCCEEDED if is_destroy else ConditionReason.APPLY_SUCCEEDED
    else:
        reason = _APPLY[ended.cause]
        if is_destroy and reason == ConditionReason.APPLY_FAILED:
            reason = ConditionReason.DESTROY_FAILED
    return condition(Type.APPLY_JOB_SUCCEEDED, reason, _message(ended))


def _message(ended: Ended) -> str:
    job = f"Job {ended.job.name}"
    match ended.cause:
        case Cause.DONE:
            return f"{job} succeeded"
        case Cause.BLOCKED:
            return f"{job}: {ended.detail or 'the plan deletes or replaces'}; {_NOTHING_APPLIED}"
        case Cause.PLAN_CHANGED:
            return f"{job}: {ended.detail or 'the plan is not the approved one'}; {_NOTHING_APPLIED}"
        case _:
            return f"{job}: {ended.detail}"
