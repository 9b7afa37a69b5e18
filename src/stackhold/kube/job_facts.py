"""What a Job and its pods say of themselves: documents of the API server to values.

A Job has ended when it is `Failed` or `Complete`. At its deadline Kubernetes says `FailureTarget` at once and `Failed`
only when no pod of it runs any more: until then it is active, because its runner still writes. Nothing here decides
what an end means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.names import Annotation, Label
from stackhold.kube.slots import Cluster
from stackhold.kube.snapshot import JobFact, Outcome
from stackhold.kube.times import parse_time
from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SOURCE: Final = "source"
"""The container that is the module's image, in which the runner runs."""
COPIER: Final = "runner"
"""The init container that brings the runner."""
_DEADLINE: Final = "DeadlineExceeded"
_PULL_PROBLEMS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"}
)
IMAGE_PULL: Final = "captf.io/image-pull-failed"
"""Annotation on an active Job: what its pod last waited for. At the deadline the pod goes before anybody can ask it."""


class Phase(StrEnum):
    """How far a Job is."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One Job of ours."""

    name: str
    namespace: str
    uid: str
    owner_uid: str
    """Of the object that it is for: a later object of the same name has another."""
    operation: Operation
    attempt: int
    phase: Phase
    is_ending: bool
    """Whether Kubernetes is about to end it, or it is being deleted."""
    hit_deadline: bool
    created_at: Instant
    finished_at: Instant | None
    ready_pods: int
    deadline_s: int | None
    cluster: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether it is over for conditions, leases and slots."""
        return self.phase is not Phase.ACTIVE

    @property
    def is_bookkept(self) -> bool:
        """Whether what it came to is in the object's status."""
        return Annotation.BOOKKEPT in self.annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One pod of a Job."""

    name: str
    phase: str
    created_at: Instant
    has_started: bool
    """Whether the runner was started in it."""
    message: str
    """The termination message of the runner; empty when there is none."""
    image_id: str
    """What the module's image resolved to."""
    pull_problem: str
    """Which image cannot be had, and what is said of it; empty when none."""
    disruption: str
    """What stopped it from outside; empty when nothing did."""


def read_job(job: Mapping[str, Any]) -> JobView | None:
    """A Job as the API gave it; None when its labels are not those of a Job of ours."""
    metadata, status = job.get("metadata") or {}, job.get("status") or {}
    labels = metadata.get("labels") or {}
    operation, attempt = labels.get(Label.OPERATION), labels.get(Label.ATTEMPT, "")
    if operation not in set(Operation) or not attempt.isdecimal():
        return None
    conditions = {each["type"]: each for each in status.get("conditions") or () if each.get("status") == "True"}
    phase = _phase(conditions)
    return JobView(
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        owner_uid=_owner_uid(metadata),
        operation=Operation(operation),
        attempt=int(attempt),
        phase=phase,
        is_ending=bool(metadata.get("deletionTimestamp"))
        or not {"FailureTarget", "SuccessCriteriaMet"}.isdisjoint(conditions),
        hit_deadline=any(conditions.get(each, {}).get("reason") == _DEADLINE for each in ("Failed", "FailureTarget")),
        created_at=parse_time(metadata.get("creationTimestamp")) or Instant(0),
        finished_at=None if phase is Phase.ACTIVE else _finished_at(status, conditions),
        ready_pods=int(status.get("ready") or 0),
        deadline_s=(job.get("spec") or {}).get("activeDeadlineSeconds"),
        cluster=labels.get(Label.CLUSTER_NAME, ""),
        annotations=metadata.get("annotations") or {},
    )


def read_jobs(jobs: Iterable[Mapping[str, Any]], *, owner_uid: str) -> list[JobView]:
    """The Jobs of one object, and not those of an earlier one of its name."""
    views = (read_job(job) for job in jobs)
    return [view for view in views if view is not None and view.owner_uid == owner_uid]


def running(jobs: Iterable[Mapping[str, Any]]) -> list[Cluster]:
    """The Jobs that have not ended, by the cluster they are of: what `slots` counts."""
    views = (read_job(job) for job in jobs)
    return [Cluster(view.namespace, view.cluster) for view in views if view is not None and not view.has_ended]


def fact(job: JobView, outcome: Outcome | None = None) -> JobFact:
    """A Job as `decide` sees it: by `outcome` if it was only just judged, else by the marks that it bears."""
    return JobFact(
        name=job.name,
        op=job.operation,
        attempt=job.attempt,
        outcome=outcome or marked_outcome(job),
        created_at=job.created_at,
        finished_at=job.finished_at,
        inputs_hash=job.annotations.get(Annotation.INPUTS_HASH, ""),
        is_remediation=Annotation.DRIFT_REMEDIATION in job.annotations,
        is_bookkept=job.is_bookkept,
    )


def marked_outcome(job: JobView) -> Outcome:
    """What became of a Job by its conditions and its marks, without its pods."""
    if job.phase is Phase.ACTIVE:
        return Outcome.ACTIVE
    if job.phase is Phase.SUCCEEDED:
        return Outcome.PLAN_UNREADABLE if Annotation.PLAN_UNREADABLE in job.annotations else Outcome.SUCCEEDED
    for annotation, outcome in MARKS.items():
        if annotation in job.annotations:
            return outcome
    return Outcome.DEADLINE if job.hit_deadline else Outcome.FAILED


MARKS: Final[dict[str, Outcome]] = {
    Annotation.DESTRUCTIVE_PLAN_BLOCKED: Outcome.BLOCKED,
    Annotation.PLAN_CHANGED: Outcome.PLAN_CHANGED,
    Annotation.INTERRUPTED: Outcome.INTERRUPTED,
}
"""The annotations of a failed Job that was counted, and what each stands for."""


def read_pod(pod: Mapping[str, Any]) -> PodView:
    """A pod as the API gave it."""
    metadata, status = pod.get("metadata") or {}, pod.get("status") or {}
    statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    source: Mapping[str, Any] = next((each for each in statuses if each.get("name") == SOURCE), {})
    states = [source.get("state") or {}, source.get("lastState") or {}]
    ended: Mapping[str, Any] = next((state["terminated"] for state in states if state.get("terminated")), {})
    return PodView(
        name=metadata.get("name", ""),
        phase=status.get("phase", ""),
        created_at=parse_time(metadata.get("creationTimestamp")) or Instant(0),
        has_started=any("running" in state or "terminated" in state for state in states),
        message=ended.get("message") or "",
        image_id=source.get("imageID") or "",
        pull_problem=next(filter(None, map(_pull_problem, statuses)), ""),
        disruption=_disruption(status),
    )


def read_pods(pods: Iterable[Mapping[str, Any]]) -> list[PodView]:
    """All pods of a Job, the newest first."""
    return sorted(map(read_pod, pods), key=lambda pod: (pod.created_at, pod.name), reverse=True)


def _phase(conditions: Mapping[str, Any]) -> Phase:
    if "Failed" in conditions:
        return Phase.FAILED
    return Phase.SUCCEEDED if "Complete" in conditions else Phase.ACTIVE


def _finished_at(status: Mapping[str, Any], conditions: Mapping[str, Any]) -> Instant:
    ending = conditions.get("Failed") or conditions.get("Complete") or {}
    at = parse_time(status.get("completionTime")) or parse_time(ending.get("lastTransitionTime"))
    return at or parse_time(status.get("startTime")) or Instant(0)


def _owner_uid(metadata: Mapping[str, Any]) -> str:
    references = metadata.get("ownerReferences") or ()
    return next((each.get("uid", "") for each in references if each.get("controller")), "")


def _pull_problem(container: Mapping[str, Any]) -> str:
    waiting = (container.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") not in _PULL_PROBLEMS:
        return ""
    message = waiting.get("message") or ""
    return f"{container.get('image') or container.get('name')}: {waiting['reason']}" + (
        f": {message}" if message else ""
    )


def _disruption(status: Mapping[str, Any]) -> str:
    """A drain, an eviction, a preemption, a node that is gone: what Kubernetes marks as none of the pod's doing."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return condition.get("reason") or "DisruptionTarget"
    return status["reason"] if status.get("reason") in ("Evicted", "NodeLost", "Shutdown", "Preempting") else ""
