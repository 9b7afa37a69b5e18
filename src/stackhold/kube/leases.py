"""Who may start a Job: the run lease of an object and the cluster's write lease, as verdicts on what was just read.

A lease is taken before the Job exists, in the name of that Job, by compare-and-swap on a live read; who loses the race
waits for another pass. Taking comes before looking on both sides of the gate, so that of a cluster and a machine at
least one sees the other: the machine then gives its own lease back, the cluster keeps its leases and waits. A holder
whose Job is absent has a grace, because its Job may be about to be created.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.names import Annotation, Kind, LeaseRole
from stackhold.kube.snapshot import is_gated
from stackhold.kube.times import micro_time, parse_time
from stackhold.model.instant import MINUTE, SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GRACE_MS: Final = MINUTE
CREATE_WITHIN_MS: Final = GRACE_MS // 2
"""How long after a lease was taken its Job may be created; the request itself has the rest of the grace."""
POD_GRACE_S: Final = 600
BACKSTOP_MARGIN_S: Final = 300
REQUEUE_MS: Final = 30 * SECOND
NAMED: Final = 5
"""How many Jobs a message names."""


class HolderJob(StrEnum):
    """The holder's Job, by a live read."""

    ACTIVE = "active"
    ENDED = "ended"
    ABSENT = "absent"


class Verdict(StrEnum):
    """What a lease means for who wants it."""

    FREE = "free"
    OURS = "ours"
    """Held in the name of the very Job: to be taken again, which makes it younger."""
    TAKEOVER = "takeover"
    """Its holder is done, or gone for good."""
    HELD = "held"

    @property
    def may_take(self) -> bool:
        """Whether the lease may be written in the name of the Job."""
        return self is not Verdict.HELD


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLease:
    """A lease as it was read."""

    name: str
    uid: str
    resource_version: str
    holder: str
    """The name of a Job; empty when nobody holds it."""
    acquired_at: Instant | None
    backstop_ms: int | None
    operation: str
    """What the holder does; empty when it does not say."""


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must still be so for a lease to be deleted: one that another Job took in the meantime stays."""

    uid: str
    resource_version: str

    def options(self) -> dict[str, Any]:
        """As the API takes them."""
        return {"preconditions": {"uid": self.uid, "resourceVersion": self.resource_version}}


@dataclass(frozen=True, slots=True)
class Needs:
    """What an operation takes, and what it looks at, before its Job is created. The run lease is always taken."""

    cluster_lease: bool = False
    """Takes the cluster's write lease, then looks for operations of machines and pools."""
    asks_cluster: bool = False
    """Looks at the cluster's write lease after it took its own."""


class Conflict(StrEnum):
    """Why an operation waits: the reason of its condition."""

    RUN_LEASE = "WaitingForRunLease"
    CLUSTER_OPERATION = "WaitingForClusterOperation"
    MACHINE_OPERATIONS = "WaitingForMachineOperations"


@dataclass(frozen=True, slots=True)
class LeaseWait:
    """No Job now, and look again then."""

    conflict: Conflict
    message: str
    until: Instant
    gives_back: bool = False
    """Whether the object's own run lease is given back, so that it holds up nobody who waits for it."""


def backstop_seconds(deadline_s: int) -> int:
    """How long a lease may be held at all: the Job's deadline, its pod's grace, and a margin."""
    return deadline_s + POD_GRACE_S + BACKSTOP_MARGIN_S


def needs(kind: Kind, operation: Operation, *, is_gate_on: bool, cluster: str) -> Needs:
    """What an operation of an object needs. Without a cluster's name there is nothing to be kept apart from."""
    if not is_gate_on or not cluster or not is_gated(operation):
        return Needs()
    return Needs(cluster_lease=True) if kind is Kind.CLUSTER else Needs(asks_cluster=True)


def judge(lease: HeldLease | None, *, job: str, holder_job: HolderJob, now: Instant, unchanged_ms: int = 0) -> Verdict:
    """What a lease means for the Job `job`, which does not exist yet.

    A lease is as old as it says, or as long as this manager has seen it unchanged: a holder whose clock was ahead
    does not keep it longer for that.
    """
    if lease is None or not lease.holder:
        return Verdict.FREE
    if lease.holder == job:
        return Verdict.OURS
    if holder_job is HolderJob.ENDED:
        return Verdict.TAKEOVER
    age = unchanged_ms if lease.acquired_at is None else max(now - lease.acquired_at, unchanged_ms)
    if holder_job is HolderJob.ABSENT and age > GRACE_MS:
        return Verdict.TAKEOVER
    if lease.backstop_ms is not None and age > lease.backstop_ms:
        return Verdict.TAKEOVER
    return Verdict.HELD


def may_create(since_taken_ms: int) -> bool:
    """Whether the Job may still be created on a lease that was taken so long ago, by a clock that sleep does not stop.

    A manager that was held up must not create what another, for whom the grace is over, has meanwhile replaced. It
    takes the lease again first.
    """
    return 0 <= since_taken_ms <= CREATE_WITHIN_MS


def lease_wait(lease: HeldLease | None, now: Instant, *, role: LeaseRole = LeaseRole.RUN) -> LeaseWait:
    """What an operation waits for that did not get a lease; without one, somebody else wrote it first."""
    by = f"Job {lease.holder}" if lease is not None and lease.holder else "another manager, which took it first"
    doing = f", which runs {lease.operation}" if lease is not None and lease.holder and lease.operation else ""
    what = "run lease" if role is LeaseRole.RUN else "cluster's write lease"
    return LeaseWait(Conflict.RUN_LEASE, f"the {what} is held by {by}{doing}", _again(now))


def gate_of_cluster(running: Iterable[HeldLease], now: Instant) -> LeaseWait | None:
    """Whether a cluster that has both its leases has to wait for its machines and pools.

    `running` are the run leases of these that are held. It keeps its leases while it waits, and so goes before all
    that have not begun.
    """
    jobs = sorted(lease.holder for lease in running if is_in_the_way(lease))
    if not jobs:
        return None
    named = ", ".join(jobs[:NAMED])
    more = f" and {len(jobs) - NAMED} more" if len(jobs) > NAMED else ""
    what = "1 operation" if len(jobs) == 1 else f"{len(jobs)} operations"
    message = f"waits for {what} of its machines and pools: {named}{more}"
    return LeaseWait(Conflict.MACHINE_OPERATIONS, message, _again(now))


def gate_of_machine(cluster_lease: HeldLease | None, verdict: Verdict, now: Instant) -> LeaseWait | None:
    """Whether a machine or a pool that has its own run lease has to give it back for its cluster's operation."""
    if cluster_lease is None or verdict is not Verdict.HELD:
        return None
    what = cluster_lease.operation or "an operation"
    message = f"waits for {what} of its cluster: Job {cluster_lease.holder}"
    return LeaseWait(Conflict.CLUSTER_OPERATION, message, _again(now), gives_back=True)


def is_in_the_way(lease: HeldLease) -> bool:
    """Whether what holds this run lease must not overlap with its cluster's operation.

    A lease that does not say what it is for may be for anything.
    """
    if not lease.holder:
        return False
    return not lease.operation or lease.operation in {op.value for op in Operation if is_gated(op)}


def release(lease: HeldLease | None, *, job: str) -> Preconditions | None:
    """How to give a lease back that the Job `job` holds; None when it is not this Job's to give."""
    if lease is None or lease.holder != job:
        return None
    return Preconditions(lease.uid, lease.resource_version)


class CreateAnswer(StrEnum):
    """What the API server said to the creation of a Job."""

    CREATED = "created"
    EXISTS = "exists"
    REJECTED = "rejected"
    """It was refused for what it is: there is no such Job because of this request."""
    UNKNOWN = "unknown"
    """It may have been created, whatever was said."""


_REJECTIONS: Final = frozenset({400, 401, 403, 404, 405, 413, 415, 422})


def create_answer(status: int | None, reason: str = "") -> CreateAnswer:
    """By the answer's HTTP status (None when there was no answer) and the reason of its Status object."""
    if status is not None and 200 <= status < 300:
        return CreateAnswer.CREATED
    if status == 409 and reason == "AlreadyExists":
        return CreateAnswer.EXISTS
    return CreateAnswer.REJECTED if status in _REJECTIONS else CreateAnswer.UNKNOWN


def releases_after(answer: CreateAnswer, job: HolderJob | None) -> bool:
    """Whether both leases are given back after a creation that went wrong.

    Only when it was refused and a live read (`job`; None when it failed) finds no such Job: an earlier pass may have
    created it under the same name.
    """
    return answer is CreateAnswer.REJECTED and job is HolderJob.ABSENT


def read_lease(lease: Mapping[str, Any]) -> HeldLease:
    """A Lease as the API gave it. What is not there or not to be understood is as if it were not set."""
    metadata, spec = lease.get("metadata") or {}, lease.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    seconds = spec.get("leaseDurationSeconds")
    return HeldLease(
        name=metadata.get("name", ""),
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        holder=spec.get("holderIdentity") or "",
        acquired_at=parse_time(annotations.get(Annotation.LEASE_ACQUIRED_AT) or spec.get("acquireTime")),
        backstop_ms=seconds * SECOND if isinstance(seconds, int) else None,
        operation=annotations.get(Annotation.LEASE_OPERATION, ""),
    )


def lease_body(
    existing: Mapping[str, Any] | None,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    job: str,
    operation: Operation,
    deadline_s: int,
    now: Instant,
) -> dict[str, Any]:
    """The Lease in the name of a Job: to be created, or, with what was read, to be put in its place.

    It then carries the version that was read, so that the API server refuses it when somebody else wrote since.
    """
    acquired = micro_time(now)
    read = dict((existing or {}).get("metadata") or {})
    kept = {key: read[key] for key in ("uid", "resourceVersion", "ownerReferences", "finalizers") if key in read}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            **kept,
            "name": name,
            "namespace": namespace,
            "labels": {**(read.get("labels") or {}), **labels},
            "annotations": {
                **(read.get("annotations") or {}),
                Annotation.LEASE_OPERATION: operation.value,
                Annotation.LEASE_ACQUIRED_AT: acquired,
            },
        },
        "spec": {
            "holderIdentity": job,
            "leaseDurationSeconds": backstop_seconds(deadline_s),
            "acquireTime": acquired,
            "renewTime": acquired,
        },
    }


def _again(now: Instant) -> Instant:
    return Instant(now + REQUEUE_MS)
