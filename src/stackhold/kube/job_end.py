"""What a Job that has ended came to, told from its conditions, its pods and its runner's result.

Read once, before the Job is marked as counted. The more specific cause goes first: an image that could not be had, then
what the runner says it stopped before, then the deadline, which counts although the runner may call itself interrupted,
and only then an interruption from outside. The result comes from the pod or, when the pod is gone, from the per-run
Secret; without either nobody knows what an apply did.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.result import FailureKind, ResultDocument, decode
from stackhold.engines.terraform.steps import Operation
from stackhold.errors import InputError
from stackhold.kube.job_facts import IMAGE_PULL, MARKS, Phase
from stackhold.kube.names import Annotation
from stackhold.kube.snapshot import Outcome
from stackhold.model.instant import MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.kube.job_facts import JobView, PodView
    from stackhold.model.instant import Instant

RESULT_KEY: Final = "result"
"""Where in the per-run Secret the runner leaves its result."""
STUCK_MS: Final = MINUTE
LOOK_MS: Final = 20 * SECOND
_PENDING: Final = "Pending"


class Cause(StrEnum):
    """Why a Job ended."""

    DONE = "done"
    PLAN_UNREADABLE = "plan-unreadable"
    IMAGE_PULL = "image-pull"
    BLOCKED = "blocked"
    PLAN_CHANGED = "plan-changed"
    DEADLINE = "deadline"
    IMAGE_LAYOUT = "image-layout"
    INTERRUPTED = "interrupted"
    STEP = "step"
    NO_RESULT = "no-result"


@dataclass(frozen=True, slots=True)
class Ended:
    """One Job's end."""

    job: JobView
    cause: Cause
    detail: str
    """What went wrong, for people; empty when nothing did."""
    result: ResultDocument | None
    pods: tuple[PodView, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What `decide` makes of it. An image that cannot be had or is not laid out right is a failure."""
        counted = Outcome.DEADLINE if self.job.hit_deadline else Outcome.FAILED
        return _OUTCOMES.get(self.cause, counted)

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it is an apply that may have done something of which there is no word."""
        if self.job.operation is not Operation.APPLY or self.result is not None:
            return False
        if self.cause in (Cause.DONE, Cause.IMAGE_PULL):
            return False
        return not self.pods or any(pod.has_started for pod in self.pods)

    @property
    def image_id(self) -> str:
        """What the module's image resolved to; empty when no pod says so."""
        return next((pod.image_id for pod in self.pods if pod.image_id), "")

    def marks(self) -> dict[str, str]:
        """The annotations that the Job gets when it is counted, which is after the status says what it came to."""
        marks = {Annotation.BOOKKEPT: "true"}
        marks |= {annotation: "true" for annotation, outcome in MARKS.items() if outcome is self.outcome}
        if self.outcome is Outcome.PLAN_UNREADABLE:
            marks[Annotation.PLAN_UNREADABLE] = "true"
        plan = self.result.plan if self.result is not None else None
        if plan is not None and (self.job.operation is Operation.PLAN or self.outcome.waits_for_approval):
            marks[Annotation.PLAN_HASH] = plan.hash
        return marks


_OUTCOMES: Final = {
    Cause.DONE: Outcome.SUCCEEDED,
    Cause.PLAN_UNREADABLE: Outcome.PLAN_UNREADABLE,
    Cause.BLOCKED: Outcome.BLOCKED,
    Cause.PLAN_CHANGED: Outcome.PLAN_CHANGED,
    Cause.DEADLINE: Outcome.DEADLINE,
    Cause.INTERRUPTED: Outcome.INTERRUPTED,
}


def to_count(jobs: Sequence[JobView]) -> list[JobView]:
    """The Jobs that have ended and are not counted yet, the oldest first."""
    found = [job for job in jobs if job.has_ended and not job.is_bookkept]
    return sorted(found, key=lambda job: (job.finished_at or 0, job.attempt, job.name))


def judge_end(job: JobView, pods: Sequence[PodView], secret: Mapping[str, Any] | None) -> Ended:
    """What a Job that has ended came to. `pods` are the newest first, as far as they are still there."""
    result = find_result(job, pods, secret)
    cause, detail = _done(job, result) if job.phase is Phase.SUCCEEDED else _failed(job, pods, result)
    return Ended(job, cause, detail, result, tuple(pods))


def find_result(job: JobView, pods: Sequence[PodView], secret: Mapping[str, Any] | None) -> ResultDocument | None:
    """The runner's result: a pod's termination message, or the second copy. What was cut off is not used."""
    for text in (*(pod.message.encode() for pod in pods), _second_copy(secret)):
        if text:
            try:
                document = decode(text)
            except InputError:
                continue
            if document.op == job.operation.value:
                return document
    return None


def is_stuck(job: JobView, pods: Sequence[PodView], *, has_secret: bool, now: Instant) -> bool:
    """Whether an active Job can never start: its Secret was never made, and every pod of it waits for it.

    It is deleted, on a paused object as well, and the next pass starts the operation again with its Secret.
    """
    if job.has_ended or job.is_ending or has_secret or now - job.created_at <= STUCK_MS:
        return False
    return all(pod.phase == _PENDING and not pod.has_started for pod in pods)


def wants_look(job: JobView, now: Instant) -> bool:
    """Whether an active Job's pod is to be asked why it has not started.

    Its answer is kept as a mark on the Job: at the deadline the pod goes, and takes it along.
    """
    is_late = now - job.created_at >= LOOK_MS
    return not job.has_ended and not job.ready_pods and is_late


def pull_mark(job: JobView, pods: Sequence[PodView]) -> dict[str, str | None] | None:
    """The annotation that an active Job gets or loses by what its pods say now; None when it stays as it is."""
    if not pods:
        return None
    problem = next((pod.pull_problem for pod in pods if pod.pull_problem), None)
    if any(pod.has_started for pod in pods):
        problem = None
    return None if job.annotations.get(IMAGE_PULL) == problem else {IMAGE_PULL: problem}


def _done(job: JobView, result: ResultDocument | None) -> tuple[Cause, str]:
    if job.operation is Operation.PLAN and (result is None or result.plan is None) and not _is_empty_plan(result):
        return Cause.PLAN_UNREADABLE, "it left no plan that can be read"
    return Cause.DONE, ""


def _is_empty_plan(result: ResultDocument | None) -> bool:
    """Whether the plan found nothing to do: then there is none to show."""
    if result is None or result.error is not None:
        return False
    return any(step.name == "plan" and step.exit == 0 for step in result.steps)


def _failed(job: JobView, pods: Sequence[PodView], result: ResultDocument | None) -> tuple[Cause, str]:
    pull = _pull_problem(job, pods)
    if result is None and pull:
        return Cause.IMAGE_PULL, pull
    error = result.error if result is not None else None
    if error is not None and error.kind in _STOPPED:
        return _STOPPED[error.kind], error.tail
    if job.hit_deadline:
        limit = "" if job.deadline_s is None else f" of {job.deadline_s} s"
        during = f" during {error.step}" if error is not None and error.step else ""
        return Cause.DEADLINE, f"it ran past its deadline{limit}{during}"
    if error is not None:
        return _of_error(error.kind, error.step, error.tail)
    return _without_word(pods, result)


_STOPPED: Final = {FailureKind.BLOCKED: Cause.BLOCKED, FailureKind.PLAN_CHANGED: Cause.PLAN_CHANGED}


def _of_error(kind: FailureKind, step: str, tail: str) -> tuple[Cause, str]:
    said = f": {tail}" if tail else ""
    if kind is FailureKind.INTERRUPTED:
        return Cause.INTERRUPTED, f"it was stopped from outside{f' during {step}' if step else ''}"
    if kind is FailureKind.IMAGE_LAYOUT:
        return Cause.IMAGE_LAYOUT, f"the image is not laid out as it must be{said}"
    return Cause.STEP, f"{step or 'the runner'} failed{said}"


def _without_word(pods: Sequence[PodView], result: ResultDocument | None) -> tuple[Cause, str]:
    disruption = next((pod.disruption for pod in pods if pod.disruption), "")
    if disruption:
        return Cause.INTERRUPTED, f"its pod was stopped from outside ({disruption})"
    if result is not None:
        return Cause.STEP, "it failed although its runner reports success"
    return Cause.NO_RESULT, "it ended without a result" + ("" if pods else ", and its pod is gone")


def _pull_problem(job: JobView, pods: Sequence[PodView]) -> str:
    if any(pod.has_started for pod in pods):
        return ""
    return next((pod.pull_problem for pod in pods if pod.pull_problem), job.annotations.get(IMAGE_PULL, ""))


def _second_copy(secret: Mapping[str, Any] | None) -> bytes:
    text = ((secret or {}).get("data") or {}).get(RESULT_KEY) or ""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
