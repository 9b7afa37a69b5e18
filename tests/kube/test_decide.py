"""The order in which a pass chooses what runs, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from tests.kube.scenes import NEW, NOW, OLD, UID, job, settled

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.decide import Decision, Finalize, Reason, Run, Wait, Waiting, decide
from stackhold.kube.names import Kind
from stackhold.kube.schedule import jitter
from stackhold.kube.snapshot import (
    ApplyPolicy,
    DeletionPolicy,
    Intervals,
    Outcome,
    PlanFacts,
    PlanPhase,
    PlanReason,
    Readings,
    RestoreRequest,
    Snapshot,
    StateFacts,
    StateStatus,
)
from stackhold.model.instant import HOUR, MINUTE, SECOND, Instant

APPLY, PLAN, DESTROY = Operation.APPLY, Operation.PLAN, Operation.DESTROY
REFRESH, DRIFT, RESTORE = Operation.REFRESH, Operation.DRIFT, Operation.RESTORE
CLUSTER, MACHINE, POOL = Kind.CLUSTER, Kind.MACHINE, Kind.MACHINE_POOL
BACKUP = RestoreRequest(7, "captf-state-backup-x-c-7", OLD)
LOST, GONE = StateFacts(StateStatus.LOST), StateFacts()
AGO = {n: Instant(NOW - n * MINUTE) for n in (1, 5, 20, 60, 180)}
HELD = [status for status in StateStatus if status.is_held]
MANUAL: dict[str, Any] = {"apply_policy": ApplyPolicy.MANUAL, "inputs_hash": NEW}
NO_CHECKS = Intervals(drift_ms=None)


def at(ms: int) -> Instant:
    return Instant(NOW + ms)


def wait(reason: Reason, ms: int | None, waiting: Waiting) -> Wait:
    return Wait(reason, None if ms is None else at(ms), waiting)


class Row(NamedTuple):
    """What is so, and what follows."""

    name: str
    snapshot: Snapshot
    decision: Decision


def drifted(**fields: Any) -> Snapshot:
    given: dict[str, Any] = {"readings": Readings(has_drift=True), "remediates_drift": True}
    return settled(**{**given, **fields})


def due(minutes: int, **fields: Any) -> dict[str, Any]:
    return {"last_refresh": AGO[minutes], "last_drift_check": AGO[minutes], **fields}


ORDER = [
    Row(
        "an active Job, whatever else is due",
        settled(jobs=(job(REFRESH, Outcome.ACTIVE),), is_deleting=True, restore=BACKUP, state=LOST, is_paused=True),
        wait(Reason.JOB_ACTIVE, MINUTE, Waiting.JOB),
    ),
    Row(
        "an active Job that the list does not have",
        settled(has_unseen_job=True, is_deleting=True),
        wait(Reason.JOB_ACTIVE, 5 * SECOND, Waiting.CACHE),
    ),
    Row(
        "paused, even when deleting",
        settled(is_paused=True, is_deleting=True, restore=BACKUP),
        wait(Reason.PAUSED, None, Waiting.UNPAUSE),
    ),
    Row(
        "a restore before an apply",
        settled(restore=BACKUP, inputs_hash=NEW),
        Run(RESTORE, Reason.RESTORE_REQUESTED),
    ),
    Row(
        "a restore of a lost state",
        settled(restore=BACKUP, state=LOST),
        Run(RESTORE, Reason.RESTORE_REQUESTED),
    ),
    Row(
        "no restore while deleting with a readable state",
        settled(restore=BACKUP, is_deleting=True),
        Run(DESTROY, Reason.DELETING),
    ),
    Row(
        "a restore of a held deletion",
        settled(restore=BACKUP, is_deleting=True, state=LOST),
        Run(RESTORE, Reason.RESTORE_REQUESTED),
    ),
    Row(
        "no restore of a deletion that has no state",
        settled(restore=BACKUP, is_deleting=True, state=GONE),
        Finalize(Reason.DELETING_WITHOUT_STATE),
    ),
    Row(
        "no second restore of one serial",
        settled(restore=BACKUP, last_restored_serial=7, inputs_hash=NEW),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    Row(
        "no restore of a backup that is not there",
        settled(restore=RestoreRequest(7, ""), inputs_hash=NEW),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    *(
        Row(
            f"deleting with a state that is {status.value}",
            settled(is_deleting=True, state=StateFacts(status)),
            wait(Reason.DELETION_HELD, MINUTE, Waiting.STATE),
        )
        for status in HELD
        if status is not StateStatus.RETAINED
    ),
    Row(
        "deleting what an earlier object left",
        settled(is_deleting=True, state=StateFacts(StateStatus.RETAINED), deletion_policy=DeletionPolicy.UNRESOLVED),
        Finalize(Reason.DELETING_WITHOUT_STATE),
    ),
    Row("deleting without state", settled(is_deleting=True, state=GONE), Finalize(Reason.DELETING_WITHOUT_STATE)),
    Row("deleting", settled(is_deleting=True, inputs_hash=None), Run(DESTROY, Reason.DELETING)),
    Row(
        "deleting and backing off",
        settled(is_deleting=True, jobs=(job(DESTROY, Outcome.FAILED, ago=20 * SECOND),)),
        wait(Reason.DELETING, 40 * SECOND, Waiting.BACKOFF),
    ),
    Row(
        "deleting, destroyed already",
        settled(is_deleting=True, state=LOST, restore=BACKUP, jobs=(job(DESTROY, Outcome.SUCCEEDED),)),
        Finalize(Reason.DESTROYED),
    ),
    Row(
        "deleting, destroyed and restored since",
        settled(is_deleting=True, jobs=(job(DESTROY, Outcome.SUCCEEDED), job(RESTORE, Outcome.SUCCEEDED, ago=MINUTE))),
        Run(DESTROY, Reason.DELETING),
    ),
    Row(
        "deleting with dependents",
        settled(is_deleting=True, dependents=("web-1",), state=GONE, deletion_policy=DeletionPolicy.RETAIN),
        wait(Reason.DEPENDENTS_EXIST, 30 * SECOND, Waiting.DEPENDENTS),
    ),
    Row(
        "deleting and retaining, whatever holds it",
        settled(is_deleting=True, state=LOST, restore=BACKUP, deletion_policy=DeletionPolicy.RETAIN),
        Finalize(Reason.RETAINED),
    ),
    Row(
        "deleting under a policy that cannot be found",
        settled(is_deleting=True, deletion_policy=DeletionPolicy.UNRESOLVED),
        wait(Reason.DELETION_POLICY_UNRESOLVED, 30 * SECOND, Waiting.POLICY),
    ),
    *(
        Row(
            f"not deleting with a state that is {status.value}",
            settled(state=StateFacts(status), inputs_hash=NEW),
            wait(Reason.STATE_HELD, MINUTE, Waiting.STATE),
        )
        for status in HELD
    ),
    Row("no state", settled(MACHINE, state=GONE), Run(APPLY, Reason.NO_STATE)),
    Row(
        "no state and no inputs",
        settled(state=GONE, inputs_hash=None),
        wait(Reason.NO_STATE, 30 * SECOND, Waiting.INPUTS),
    ),
    Row(
        "state of an apply that never succeeded",
        settled(MACHINE, state=StateFacts(StateStatus.READABLE)),
        Run(APPLY, Reason.STATE_WITHOUT_INPUTS_HASH),
    ),
    Row("changed inputs of a cluster", settled(inputs_hash=NEW), Run(APPLY, Reason.INPUTS_CHANGED)),
    Row("changed inputs of a pool", settled(POOL, inputs_hash=NEW), Run(APPLY, Reason.INPUTS_CHANGED)),
    Row(
        "a machine's inputs never change",
        settled(MACHINE, inputs_hash=NEW, intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "changed inputs put off every check",
        settled(inputs_hash=NEW, jobs=(job(APPLY, Outcome.FAILED, ago=SECOND),), **due(180)),
        wait(Reason.INPUTS_CHANGED, 59 * SECOND, Waiting.BACKOFF),
    ),
    Row(
        "the last apply failed",
        settled(jobs=(job(APPLY, Outcome.FAILED), job(APPLY, Outcome.SUCCEEDED, ago=HOUR))),
        Run(APPLY, Reason.LAST_APPLY_FAILED),
    ),
    Row(
        "the last apply was stopped from outside",
        settled(jobs=(job(APPLY, Outcome.INTERRUPTED, ago=SECOND),)),
        Run(APPLY, Reason.LAST_APPLY_FAILED),
    ),
    Row(
        "an apply vanished",
        settled(unconfirmed_apply="captf-c-prod-apply-a3-abcdef"),
        Run(APPLY, Reason.LAST_APPLY_FAILED),
    ),
    Row(
        "a failed apply before one that was blocked",
        settled(jobs=(job(APPLY, Outcome.BLOCKED, inputs_hash=NEW), job(APPLY, Outcome.FAILED, ago=HOUR))),
        Run(APPLY, Reason.LAST_APPLY_FAILED),
    ),
    Row(
        "a machine whose apply failed has no state of it",
        settled(MACHINE, jobs=(job(APPLY, Outcome.FAILED),), intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "a remediation that failed is no failed apply",
        settled(jobs=(job(APPLY, Outcome.FAILED, is_remediation=True),), intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row("drift", drifted(), Run(APPLY, Reason.DRIFT_REMEDIATION)),
    Row(
        "drift that is only reported",
        drifted(remediates_drift=False, intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "a machine never remediates",
        drifted(kind=MACHINE, intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "drift that an apply has undone",
        drifted(last_apply=AGO[1], last_drift_check=AGO[5], intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "drift, and as many remediations failed as are allowed",
        drifted(
            jobs=tuple(job(APPLY, Outcome.FAILED, ago=n * MINUTE, is_remediation=True) for n in (2, 3, 4)),
            last_drift_check=AGO[5],
            intervals=NO_CHECKS,
        ),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "drift, and the remediations failed before the last check",
        drifted(
            jobs=tuple(job(APPLY, Outcome.FAILED, ago=n * MINUTE, is_remediation=True) for n in (22, 23, 24)),
            last_drift_check=AGO[20],
            intervals=NO_CHECKS,
        ),
        Run(APPLY, Reason.DRIFT_REMEDIATION),
    ),
    Row(
        "a remediation that backs off does not put off a check",
        drifted(
            jobs=(job(APPLY, Outcome.FAILED, ago=SECOND, is_remediation=True),),
            **due(5, intervals=Intervals(None, 300 * SECOND), uid=""),
        ),
        Run(REFRESH, Reason.HEALTH_CHECK_DUE),
    ),
    Row(
        "a refresh after an apply",
        settled(MACHINE, last_apply=AGO[1], last_refresh=AGO[5]),
        Run(REFRESH, Reason.REFRESH_AFTER_APPLY),
    ),
    Row(
        "none when the apply's own reading was definite",
        settled(MACHINE, last_apply=AGO[1], last_refresh=AGO[1], intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "none for a cluster",
        settled(last_apply=AGO[1], last_refresh=AGO[5], intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "members that come or go",
        settled(POOL, readings=Readings(pending_samples=4, is_converging=True)),
        Run(REFRESH, Reason.MEMBERSHIP_CONVERGING),
    ),
    Row(
        "only a pool has members",
        settled(readings=Readings(is_converging=True), intervals=NO_CHECKS),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "pending health",
        settled(readings=Readings(pending_samples=1)),
        Run(REFRESH, Reason.HEALTH_PENDING),
    ),
    Row(
        "pending health for the fourth time",
        settled(readings=Readings(pending_samples=4), uid=""),
        wait(Reason.UP_TO_DATE, 3 * MINUTE, Waiting.SCHEDULE),
    ),
    Row(
        "pending health of a pool for the fourth time",
        settled(POOL, readings=Readings(pending_samples=4)),
        Run(REFRESH, Reason.HEALTH_PENDING),
    ),
    Row(
        "membership",
        settled(POOL, intervals=Intervals(None, 300 * SECOND, 60 * SECOND), **due(20)),
        Run(REFRESH, Reason.MEMBERSHIP_REFRESH_DUE),
    ),
    Row(
        "a machine has no membership",
        settled(MACHINE, intervals=Intervals(None, None, 60 * SECOND), **due(20)),
        wait(Reason.UP_TO_DATE, None, Waiting.SCHEDULE),
    ),
    Row(
        "health before drift",
        settled(MACHINE, intervals=Intervals(30 * MINUTE, 300 * SECOND), **due(60)),
        Run(REFRESH, Reason.HEALTH_CHECK_DUE),
    ),
    Row("drift check", settled(**due(60)), Run(DRIFT, Reason.DRIFT_DUE)),
    Row(
        "a refresh that backs off does not put off the drift check",
        settled(
            MACHINE,
            intervals=Intervals(30 * MINUTE, 300 * SECOND),
            jobs=(job(REFRESH, Outcome.FAILED, ago=SECOND),),
            **due(60),
        ),
        Run(DRIFT, Reason.DRIFT_DUE),
    ),
    Row(
        "a check that backs off",
        settled(jobs=(job(DRIFT, Outcome.DEADLINE, ago=SECOND),), **due(60)),
        wait(Reason.DRIFT_DUE, 59 * SECOND, Waiting.BACKOFF),
    ),
    Row(
        "the first check counts from the last apply",
        settled(last_refresh=None, last_drift_check=None, last_apply=AGO[20], uid=""),
        wait(Reason.UP_TO_DATE, 10 * MINUTE, Waiting.SCHEDULE),
    ),
    Row(
        "after a move there is only the object's creation",
        settled(last_refresh=None, last_drift_check=None, last_apply=None, created_at=AGO[20], uid=""),
        wait(Reason.UP_TO_DATE, 10 * MINUTE, Waiting.SCHEDULE),
    ),
    Row(
        "up to date until the next check",
        settled(),
        wait(Reason.UP_TO_DATE, 29 * MINUTE + jitter(UID, 30 * MINUTE), Waiting.SCHEDULE),
    ),
]

APPROVALS = [
    Row("the first apply is not planned", settled(**MANUAL | {"state": GONE}), Run(APPLY, Reason.NO_STATE)),
    Row("a change is planned first", settled(**MANUAL), Run(PLAN, Reason.INPUTS_CHANGED)),
    Row(
        "only a cluster has an apply policy",
        settled(POOL, **MANUAL),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    Row(
        "a plan that failed backs off",
        settled(jobs=(job(PLAN, Outcome.PLAN_UNREADABLE, ago=SECOND),), **MANUAL),
        wait(Reason.INPUTS_CHANGED, 59 * SECOND, Waiting.BACKOFF),
    ),
    Row(
        "a plan that is not to be found yet is not made again at once",
        settled(jobs=(job(PLAN, Outcome.SUCCEEDED, ago=MINUTE, inputs_hash=NEW),), **MANUAL),
        wait(Reason.INPUTS_CHANGED, 9 * MINUTE, Waiting.APPROVAL),
    ),
    Row(
        "a plan of other inputs is none",
        settled(jobs=(job(PLAN, Outcome.SUCCEEDED, ago=MINUTE),), **MANUAL),
        Run(PLAN, Reason.INPUTS_CHANGED),
    ),
    Row(
        "a plan that an apply came after is made again",
        settled(
            jobs=(
                job(APPLY, Outcome.PLAN_CHANGED, ago=SECOND, inputs_hash=NEW),
                job(PLAN, Outcome.SUCCEEDED, ago=MINUTE, inputs_hash=NEW),
            ),
            **MANUAL,
        ),
        Run(PLAN, Reason.INPUTS_CHANGED),
    ),
    Row(
        "a plan waits for its approval",
        settled(plan=PlanFacts(PlanPhase.PENDING, PlanReason.MANUAL, "p2:1"), **MANUAL),
        wait(Reason.INPUTS_CHANGED, 10 * MINUTE, Waiting.APPROVAL),
    ),
    Row(
        "an approved plan is what is applied",
        settled(plan=PlanFacts(PlanPhase.APPROVED, PlanReason.MANUAL, "p2:1"), **MANUAL),
        Run(APPLY, Reason.INPUTS_CHANGED, "p2:1"),
    ),
    Row(
        "an approved apply that failed backs off",
        settled(
            plan=PlanFacts(PlanPhase.APPROVED, PlanReason.MANUAL, "p2:1"),
            jobs=(job(APPLY, Outcome.FAILED, ago=SECOND),),
            **MANUAL,
        ),
        wait(Reason.INPUTS_CHANGED, 59 * SECOND, Waiting.BACKOFF),
    ),
    Row(
        "an empty plan needs no approval",
        settled(plan=PlanFacts(PlanPhase.EMPTY, PlanReason.MANUAL, "p2:0"), **MANUAL),
        Run(APPLY, Reason.INPUTS_CHANGED, "p2:0"),
    ),
    Row(
        "a plan of the other policy is moot",
        settled(plan=PlanFacts(PlanPhase.PENDING, PlanReason.MANUAL, "p2:1"), inputs_hash=NEW),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    Row(
        "a blocked apply waits for its approval",
        settled(
            plan=PlanFacts(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, "p2:1"),
            jobs=(job(APPLY, Outcome.BLOCKED, inputs_hash=NEW),),
            inputs_hash=NEW,
        ),
        wait(Reason.INPUTS_CHANGED, 10 * MINUTE, Waiting.APPROVAL),
    ),
    Row(
        "so it does when its Job did not come along",
        settled(plan=PlanFacts(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, "p2:1"), inputs_hash=NEW),
        wait(Reason.INPUTS_CHANGED, 10 * MINUTE, Waiting.APPROVAL),
    ),
    Row(
        "a blocked apply that was approved",
        settled(
            plan=PlanFacts(PlanPhase.APPROVED, PlanReason.DESTRUCTIVE, "p2:1"),
            jobs=(job(APPLY, Outcome.BLOCKED, inputs_hash=NEW, ago=SECOND),),
            inputs_hash=NEW,
        ),
        Run(APPLY, Reason.INPUTS_CHANGED, "p2:1"),
    ),
    Row(
        "a blocked apply without a plan to approve",
        settled(jobs=(job(APPLY, Outcome.BLOCKED, inputs_hash=NEW, ago=MINUTE),), inputs_hash=NEW),
        wait(Reason.INPUTS_CHANGED, 9 * MINUTE, Waiting.APPROVAL),
    ),
    Row(
        "tries again after ten minutes",
        settled(jobs=(job(APPLY, Outcome.BLOCKED, inputs_hash=NEW, ago=10 * MINUTE),), inputs_hash=NEW),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    Row(
        "new inputs end the wait",
        settled(jobs=(job(APPLY, Outcome.BLOCKED, ago=MINUTE),), inputs_hash=NEW),
        Run(APPLY, Reason.INPUTS_CHANGED),
    ),
    Row(
        "a blocked remediation does not put off a check",
        drifted(
            plan=PlanFacts(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, "p2:1"),
            jobs=(job(APPLY, Outcome.BLOCKED, is_remediation=True),),
            **due(60),
        ),
        Run(DRIFT, Reason.DRIFT_DUE),
    ),
    Row(
        "a blocked remediation wakes for the next check",
        drifted(
            plan=PlanFacts(PlanPhase.PENDING, PlanReason.DESTRUCTIVE, "p2:1"),
            intervals=Intervals(None, 300 * SECOND),
            uid="",
        ),
        wait(Reason.DRIFT_REMEDIATION, 4 * MINUTE, Waiting.APPROVAL),
    ),
]


@pytest.mark.parametrize("row", [*ORDER, *APPROVALS], ids=lambda row: row.name)
def test_the_first_rule_that_applies_decides(row: Row) -> None:
    assert decide(row.snapshot, NOW) == row.decision


def test_every_reason_has_its_row() -> None:
    assert {row.decision.reason for row in [*ORDER, *APPROVALS]} == set(Reason)


def test_the_metric_tells_a_backoff_from_what_backs_off() -> None:
    failed = (job(APPLY, Outcome.FAILED, ago=SECOND),)
    assert decide(settled(inputs_hash=NEW, jobs=failed), NOW).label == "InputsChangedBackoff"
    assert decide(settled(inputs_hash=NEW), NOW).label == "InputsChanged"
    assert decide(settled(is_deleting=True, state=GONE), NOW).label == "DeletingWithoutState"


def test_only_a_retained_deletion_keeps_what_there_is() -> None:
    assert Finalize(Reason.RETAINED).keeps
    assert not any(Finalize(reason).keeps for reason in Reason if reason is not Reason.RETAINED)


def test_only_an_apply_against_drift_is_a_remediation() -> None:
    assert Run(APPLY, Reason.DRIFT_REMEDIATION).is_remediation
    assert not Run(PLAN, Reason.DRIFT_REMEDIATION).is_remediation
    assert not Run(APPLY, Reason.INPUTS_CHANGED).is_remediation


def test_a_failed_restore_does_not_back_off_for_another_serial() -> None:
    failed = job(RESTORE, Outcome.FAILED, ago=SECOND)
    asked = settled(jobs=(failed,), restore=replace(BACKUP, serial=8), last_restored_serial=7)
    assert decide(asked, NOW) == Run(RESTORE, Reason.RESTORE_REQUESTED)
