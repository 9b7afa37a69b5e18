"""Which condition a Job's end reports on, with which reason and which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.kube.job_scenes import ERRORS, done_view, ended_pod, ended_view, pods, result
from tests.kube.scenes import NEW, NOW, job, settled

from stackhold.engines.terraform.result import FailureKind
from stackhold.engines.terraform.steps import Operation
from stackhold.kube.condition_reasons import ConditionReason, Status, Type
from stackhold.kube.decide import decide
from stackhold.kube.job_conditions import condition_type, inputs_applied, of_end, of_policy, of_start, of_wait
from stackhold.kube.job_end import Cause, judge_end
from stackhold.kube.job_facts import IMAGE_PULL
from stackhold.kube.leases import Conflict, needs
from stackhold.kube.names import Kind
from stackhold.kube.snapshot import Outcome, PlanFacts, PlanPhase, PlanReason, Snapshot, StateFacts, StateStatus

R, T = ConditionReason, Type
DEADLINE = "DeadlineExceeded"
PULL = {IMAGE_PULL: "x: ErrImagePull"}
APPLY, PLAN, DESTROY = Operation.APPLY, Operation.PLAN, Operation.DESTROY
REFRESH, DRIFT, RESTORE = Operation.REFRESH, Operation.DRIFT, Operation.RESTORE
APPLY_T, DRIFT_T, RESTORE_T = T.APPLY_JOB_SUCCEEDED, T.DRIFT_JOB_SUCCEEDED, T.RESTORE_JOB_SUCCEEDED
JOB_OPERATIONS = [APPLY, PLAN, DESTROY, REFRESH, DRIFT, RESTORE]


def reported(operation: Operation, kind: FailureKind | None = None, **view: Any) -> tuple[Type, ConditionReason] | None:
    message = result(operation, error=ERRORS[kind]) if kind else b""
    made = of_end(judge_end(ended_view(operation, **view), pods(*([ended_pod(message)] if kind else [])), None))
    return None if made is None else (made.type, made.reason)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (APPLY, (APPLY_T, R.JOB_DEADLINE_EXCEEDED)),
        (PLAN, (APPLY_T, R.JOB_DEADLINE_EXCEEDED)),
        (DESTROY, (APPLY_T, R.JOB_DEADLINE_EXCEEDED)),
        (REFRESH, (DRIFT_T, R.DRIFT_JOB_DEADLINE_EXCEEDED)),
        (DRIFT, (DRIFT_T, R.DRIFT_JOB_DEADLINE_EXCEEDED)),
        (RESTORE, (RESTORE_T, R.RESTORE_FAILED)),
    ],
)
def test_a_deadline_is_told_by_operation(operation: Operation, expected: tuple[Type, ConditionReason]) -> None:
    for kind in (None, FailureKind.INTERRUPTED, FailureKind.STEP):
        assert reported(operation, kind, reason=DEADLINE) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (APPLY, (APPLY_T, R.IMAGE_PULL_FAILED)),
        (PLAN, (APPLY_T, R.IMAGE_PULL_FAILED)),
        (DESTROY, (APPLY_T, R.IMAGE_PULL_FAILED)),
        (REFRESH, (DRIFT_T, R.DRIFT_JOB_DEADLINE_EXCEEDED)),
        (DRIFT, (DRIFT_T, R.DRIFT_JOB_DEADLINE_EXCEEDED)),
        (RESTORE, (RESTORE_T, R.RESTORE_FAILED)),
    ],
)
def test_an_image_that_cannot_be_had_goes_before_the_deadline(
    operation: Operation, expected: tuple[Type, ConditionReason]
) -> None:
    assert reported(operation, reason=DEADLINE, marks=PULL) == expected


@pytest.mark.parametrize(
    ("operation", "kind", "expected"),
    [
        (APPLY, FailureKind.STEP, (APPLY_T, R.APPLY_FAILED)),
        (APPLY, FailureKind.IMAGE_LAYOUT, (APPLY_T, R.IMAGE_INVALID)),
        (APPLY, FailureKind.BLOCKED, (APPLY_T, R.DESTRUCTIVE_PLAN_BLOCKED)),
        (APPLY, FailureKind.PLAN_CHANGED, (APPLY_T, R.PLAN_CHANGED)),
        (APPLY, FailureKind.INTERRUPTED, None),
        (APPLY, None, (APPLY_T, R.APPLY_FAILED)),
        (PLAN, FailureKind.STEP, (APPLY_T, R.APPLY_FAILED)),
        (DESTROY, FailureKind.STEP, (APPLY_T, R.DESTROY_FAILED)),
        (DESTROY, FailureKind.IMAGE_LAYOUT, (APPLY_T, R.IMAGE_INVALID)),
        (DESTROY, None, (APPLY_T, R.DESTROY_FAILED)),
        (DRIFT, FailureKind.STEP, (DRIFT_T, R.DRIFT_JOB_FAILED)),
        (REFRESH, FailureKind.IMAGE_LAYOUT, (DRIFT_T, R.DRIFT_JOB_FAILED)),
        (DRIFT, FailureKind.INTERRUPTED, (DRIFT_T, R.DRIFT_NOT_CHECKED)),
        (RESTORE, FailureKind.STEP, (RESTORE_T, R.RESTORE_FAILED)),
        (RESTORE, FailureKind.INTERRUPTED, None),
    ],
)
def test_a_failure_is_told_by_operation_and_kind(
    operation: Operation, kind: FailureKind | None, expected: tuple[Type, ConditionReason] | None
) -> None:
    assert reported(operation, kind) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (APPLY, (APPLY_T, R.APPLY_SUCCEEDED)),
        (DESTROY, (APPLY_T, R.DESTROY_SUCCEEDED)),
        (REFRESH, (DRIFT_T, R.DRIFT_CHECKED)),
        (DRIFT, (DRIFT_T, R.DRIFT_CHECKED)),
        (RESTORE, (RESTORE_T, R.STATE_RESTORED)),
    ],
)
def test_a_success_is_told_by_operation(operation: Operation, expected: tuple[Type, ConditionReason]) -> None:
    made = of_end(judge_end(done_view(operation), [], None))
    assert made is not None
    assert (made.type, made.reason) == expected
    assert made.message == f"Job {done_view(operation).name} succeeded"


def test_a_plan_stands_for_its_apply_only_when_it_went_wrong() -> None:
    planned = pods(ended_pod(result(PLAN), exit_code=0))
    assert of_end(judge_end(done_view(PLAN), planned, None)) is None
    unreadable = of_end(judge_end(done_view(PLAN), [], None))
    assert unreadable is not None
    assert unreadable.reason is R.APPLY_FAILED


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("operation", JOB_OPERATIONS)
def test_every_end_of_every_operation_can_be_told(operation: Operation, cause: Cause) -> None:
    ended = replace(judge_end(ended_view(operation), [], None), cause=cause, detail="so it was")
    made = of_end(ended)
    assert made is None or (made.type is condition_type(operation) and ended.job.name in made.message)


def test_the_message_names_the_job_the_step_and_what_was_left_undone() -> None:
    name = ended_view().name
    made = of_end(judge_end(ended_view(), pods(ended_pod(result(error=ERRORS[FailureKind.STEP]))), None))
    assert made is not None
    assert made.message == f"Job {name}: apply failed: step: it was so"
    blocked = of_end(judge_end(ended_view(), pods(ended_pod(result(error=ERRORS[FailureKind.BLOCKED]))), None))
    assert blocked is not None
    assert blocked.message == f"Job {name}: blocked: it was so; nothing was applied"


@pytest.mark.parametrize("operation", JOB_OPERATIONS)
@pytest.mark.parametrize("conflict", list(Conflict))
def test_every_wait_for_a_lease_can_be_told_where_its_operation_reports(
    operation: Operation, conflict: Conflict
) -> None:
    is_gated = needs(Kind.MACHINE, operation, is_gate_on=True, cluster="prod").asks_cluster
    if conflict is not Conflict.RUN_LEASE and not is_gated:
        return
    made = of_wait(operation, ConditionReason(conflict.value), "waits")
    assert (made.type, made.status) == (condition_type(operation), Status.UNKNOWN)


@pytest.mark.parametrize("operation", JOB_OPERATIONS)
def test_every_operation_can_wait_for_a_slot(operation: Operation) -> None:
    assert of_wait(operation, R.WAITING_FOR_JOB_SLOT, "full").status is Status.UNKNOWN


def test_a_policy_that_does_not_fit_is_told_on_the_apply_whatever_was_due() -> None:
    made = of_policy("lockTimeoutSeconds must be less")
    assert (made.type, made.status, made.reason) == (APPLY_T, Status.FALSE, R.JOB_POLICY_INVALID)


def test_a_check_that_runs_is_told_and_an_apply_keeps_the_last_result() -> None:
    running = of_start(DRIFT, "j")
    assert running is not None
    assert (running.reason, running.message) == (R.DRIFT_JOB_RUNNING, "Job j runs")
    assert of_start(APPLY, "j") is None


BLOCKED = PlanFacts(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, "p2:1")


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (settled(), R.INPUTS_APPLIED),
        (settled(Kind.MACHINE, inputs_hash=None), R.INPUTS_APPLIED),
        (settled(inputs_hash=NEW), R.APPLY_PENDING),
        (settled(state=StateFacts()), R.APPLY_PENDING),
        (settled(inputs_hash=None), R.INPUTS_UNAVAILABLE),
        (settled(inputs_hash=NEW, plan=BLOCKED), R.AWAITING_APPROVAL),
        (settled(jobs=(job(APPLY, Outcome.ACTIVE),)), R.APPLY_RUNNING),
        (settled(jobs=(job(APPLY, Outcome.FAILED),)), R.INPUTS_APPLY_FAILED),
        (settled(inputs_hash=NEW, jobs=(job(APPLY, Outcome.FAILED),)), R.INPUTS_APPLY_FAILED),
        (settled(unconfirmed_apply="gone"), R.INPUTS_APPLY_FAILED),
        (settled(jobs=(job(DRIFT, Outcome.ACTIVE),)), None),
        (settled(state=StateFacts(StateStatus.LOST)), None),
        (settled(is_deleting=True), None),
        (settled(is_paused=True), None),
    ],
)
def test_whether_the_inputs_are_applied(seen: Snapshot, reason: ConditionReason | None) -> None:
    made = inputs_applied(seen, decide(seen, NOW))
    assert (None if made is None else made.reason) is reason
