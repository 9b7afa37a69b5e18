"""The Job that does one operation: its name, its manifest, and what to do when a Job of that name is there already.

The name is a function of what the Job does, so that making it twice finds the first. The pod has CAPTF's shape: an init
container brings the runner, and the module's own image is the main container, with its files, its certificates and
its user. Who may run, and when, is decided before; nothing here does I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.errors import Bug
from stackhold.kube.decide import Reason
from stackhold.kube.job_facts import read_job
from stackhold.kube.names import (
    API_VERSION,
    Annotation,
    Kind,
    job_labels,
    job_name,
    remediate_tick,
    restore_tick,
)
from stackhold.kube.pod import pod_spec
from stackhold.kube.times import second_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.kube.decide import Run
    from stackhold.kube.pod import RunnerProgram
    from stackhold.kube.policy import EffectivePolicy
    from stackhold.kube.snapshot import Snapshot
    from stackhold.model.instant import Instant

DEFAULT_PULL_POLICY: Final = "IfNotPresent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object that a Job is for."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    cluster: str = ""
    """The name of the cluster that it belongs to."""

    @property
    def event_object(self) -> str:
        """How the runner names what its events are about."""
        return f"{API_VERSION}/{self.kind.value}/{self.namespace}/{self.name}/{self.uid}"


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a Job this Job and no other."""

    operation: Operation
    attempt: int
    inputs_hash: str
    tick: str = ""
    """Tells an operation that is repeated on the same inputs from the one before."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The state that a restore pushes."""

    serial: int
    chunks: tuple[str, ...]
    """The names of its Secrets, in order."""
    resources: int
    """How many resources it records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything that a Job is made from."""

    owner: Owner
    identity: Identity
    image: str
    """The module's image, as it is to be run: as written, or by its digest."""
    pull_policy: str = DEFAULT_PULL_POLICY
    runner: RunnerProgram
    policy: EffectivePolicy
    credentials: str
    """The Secret with the identity's credentials."""
    plan_key: str = ""
    """The Secret with the key of the plan's hash; needed by a plan and by a guarded apply."""
    force_unlock: str = ""
    """The ID of a stale state lock."""
    guards_deletes: bool = False
    approval_hash: str = ""
    """Names the inputs for an approval; that of the inputs when empty."""
    allow_deletes_hash: str = ""
    expect_plan: str = ""
    plan: str = ""
    """The TerraformPlan that was approved."""
    backup: Backup | None = None
    is_remediation: bool = False
    is_after_failed_apply: bool = False
    after_interrupted_apply: str = ""
    """The apply Job of which nobody knows what it did."""
    tells_events: bool = True

    @property
    def name(self) -> str:
        """The Job's name."""
        what = self.identity
        return job_name(
            self.owner.kind,
            self.owner.name,
            what.operation,
            attempt=what.attempt,
            inputs_hash=what.inputs_hash,
            tick=what.tick,
        )


def identify(run: Run, snapshot: Snapshot, *, attempt: int) -> Identity:
    """What Job a decision asks for.

    What looks at or destroys what is there goes by the inputs of the state. A refresh and a drift check keep their
    name until one of them succeeds, since their tick is the time of the last that did.
    """
    applied, current = snapshot.state.inputs_hash, snapshot.inputs_hash or ""
    match run.op:
        case Operation.APPLY | Operation.PLAN:
            remediates = run.op is Operation.APPLY and run.reason is Reason.DRIFT_REMEDIATION
            tick = remediate_tick(_time(snapshot.last_drift_check)) if remediates else ""
            return Identity(run.op, attempt, current, tick)
        case Operation.REFRESH:
            return Identity(run.op, attempt, applied, _time(snapshot.last_refresh))
        case Operation.DRIFT:
            return Identity(run.op, attempt, applied, _time(snapshot.last_drift_check))
        case Operation.RESTORE:
            if snapshot.restore is None:
                raise Bug("a restore was decided on without a request for one")
            return Identity(run.op, attempt, snapshot.restore.inputs_hash, restore_tick(snapshot.restore.backup))
        case Operation.DESTROY:
            return Identity(run.op, attempt, applied)
        case Operation.FORCE_UNLOCK:
            raise Bug("no Job does nothing but clear a lock")


def build_job(order: Order) -> dict[str, Any]:
    """The whole Job, as it is created."""
    _check(order)
    owner, what, policy = order.owner, order.identity, order.policy
    labels = job_labels(owner.kind, owner.name, owner.cluster, what.operation, what.attempt)
    annotations = _annotations(order)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": order.name,
            "namespace": owner.namespace,
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": policy.deadline.value,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod_spec(order)},
        },
    }


def owner_reference(owner: Owner) -> dict[str, Any]:
    """Makes the Job go with its object."""
    return {
        "apiVersion": API_VERSION,
        "kind": owner.kind.value,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


class Adoption(StrEnum):
    """What a Job is that has the name of the one that was to be created."""

    OURS = "ours"
    """It is the one: go on with it as if it had just been created."""
    ENDED = "ended"
    """It is the one and is over: the list of Jobs was behind, so look again."""
    LEAVING = "leaving"
    """It is being deleted, or is another object's of the same name: wait until it is gone."""


def adopt(existing: Mapping[str, Any], order: Order) -> Adoption:
    """What to do about a Job that is there already; it was read live."""
    found = read_job(existing)
    is_leaving = bool((existing.get("metadata") or {}).get("deletionTimestamp"))
    if found is None or found.owner_uid != order.owner.uid or is_leaving:
        return Adoption.LEAVING
    return Adoption.ENDED if found.has_ended else Adoption.OURS


class SecretStep(StrEnum):
    """What to do about a Job's per-run Secret."""

    CREATE = "create"
    KEEP = "keep"
    REPLACE = "replace"
    """It belongs to an earlier Job of this name, and would go with that one while the new pod needs it."""


def secret_step(existing: Mapping[str, Any] | None, *, job_uid: str) -> SecretStep:
    """By the Secret that is there, read live; one of the same Job has the same content, for the name says so."""
    if existing is None:
        return SecretStep.CREATE
    metadata = existing.get("metadata") or {}
    owners = {each.get("uid") for each in metadata.get("ownerReferences") or ()}
    is_kept = owners == {job_uid} and not metadata.get("deletionTimestamp")
    return SecretStep.KEEP if is_kept else SecretStep.REPLACE


def _check(order: Order) -> None:
    operation = order.identity.operation
    needs_key = operation is Operation.PLAN or (operation is Operation.APPLY and _is_guarded(order))
    if needs_key and not order.plan_key:
        raise Bug(f"a Job that makes a plan to be judged needs the plan's key: {order.name}")
    if (operation is Operation.RESTORE) is (order.backup is None):
        raise Bug(f"a restore and nothing else has a backup: {order.name}")
    if _is_guarded(order) and operation is not Operation.APPLY:
        raise Bug(f"only an apply is guarded: {order.name}")


def _is_guarded(order: Order) -> bool:
    return order.guards_deletes or bool(order.expect_plan)


def _annotations(order: Order) -> dict[str, str]:
    marks = {
        Annotation.DRIFT_REMEDIATION: "true" if order.is_remediation else "",
        Annotation.APPROVED_PLAN: order.expect_plan,
        Annotation.PLAN: order.plan,
        Annotation.AFTER_FAILED_APPLY: "true" if order.is_after_failed_apply else "",
        Annotation.AFTER_INTERRUPTED_APPLY: order.after_interrupted_apply,
        Annotation.RESTORE_SERIAL: str(order.backup.serial) if order.backup is not None else "",
    }
    if order.identity.operation in (Operation.APPLY, Operation.PLAN, Operation.RESTORE):
        marks[Annotation.INPUTS_HASH] = order.identity.inputs_hash
    return {key: value for key, value in marks.items() if value}


def _time(at: Instant | None) -> str:
    return "" if at is None else second_time(at)
