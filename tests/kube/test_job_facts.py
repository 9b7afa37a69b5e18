"""What Jobs and pods say of themselves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.job_scenes import (
    done_view,
    ended_pod,
    ended_view,
    job_document,
    job_view,
    pod_document,
    pods,
    pulling_pod,
)
from tests.kube.scenes import NOW, OLD, UID

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.job_facts import Phase, fact, marked_outcome, read_job, read_jobs, read_pods, running
from stackhold.kube.names import Annotation, Label
from stackhold.kube.slots import Cluster
from stackhold.kube.snapshot import Outcome
from stackhold.model.instant import MINUTE

DEADLINE = "DeadlineExceeded"


@pytest.mark.parametrize(
    ("conditions", "phase", "is_ending", "hit_deadline"),
    [
        ({}, Phase.ACTIVE, False, False),
        ({"FailureTarget": DEADLINE}, Phase.ACTIVE, True, True),
        ({"FailureTarget": DEADLINE, "Failed": DEADLINE}, Phase.FAILED, True, True),
        ({"FailureTarget": "BackoffLimitExceeded"}, Phase.ACTIVE, True, False),
        ({"Failed": "BackoffLimitExceeded"}, Phase.FAILED, False, False),
        ({"SuccessCriteriaMet": "CompletionsReached"}, Phase.ACTIVE, True, False),
        ({"SuccessCriteriaMet": "", "Complete": ""}, Phase.SUCCEEDED, True, False),
        ({"Suspended": "JobSuspended"}, Phase.ACTIVE, False, False),
    ],
)
def test_a_job_has_ended_only_when_it_is_failed_or_complete(
    conditions: dict[str, str], phase: Phase, is_ending: bool, hit_deadline: bool
) -> None:
    view = job_view(conditions=conditions)
    assert (view.phase, view.is_ending, view.hit_deadline) == (phase, is_ending, hit_deadline)
    assert view.has_ended is (phase is not Phase.ACTIVE)
    assert (view.finished_at is None) is (phase is Phase.ACTIVE)


def test_a_condition_that_is_false_says_nothing() -> None:
    document = job_document()
    document["status"]["conditions"] = [{"type": "Failed", "status": "False", "reason": DEADLINE}]
    view = read_job(document)
    assert view is not None
    assert view.phase is Phase.ACTIVE


def test_the_end_is_when_kubernetes_says_it_was() -> None:
    assert ended_view().finished_at == (NOW - MINUTE) // 1000 * 1000
    assert done_view(completionTime="2026-11-30T18:00:00Z").finished_at == 1_796_061_600_000


@pytest.mark.parametrize(
    "labels", [{}, {Label.OPERATION: "dance", Label.ATTEMPT: "1"}, {Label.OPERATION: "apply", Label.ATTEMPT: "x"}]
)
def test_a_job_that_is_not_ours_is_none_of_ours(labels: dict[str, str]) -> None:
    document = job_document()
    document["metadata"]["labels"] = labels
    assert read_job(document) is None
    assert read_jobs([document], owner_uid=UID) == []


def test_an_earlier_object_of_the_name_leaves_jobs_that_are_not_ours() -> None:
    assert [view.name for view in read_jobs([job_document()], owner_uid=UID)] == [job_document()["metadata"]["name"]]
    assert read_jobs([job_document()], owner_uid="another") == []


def test_a_job_at_its_deadline_keeps_its_slot_until_its_pod_is_gone() -> None:
    ending = job_document(conditions={"FailureTarget": DEADLINE})
    over = job_document(conditions={"FailureTarget": DEADLINE, "Failed": DEADLINE})
    assert running([ending, over]) == [Cluster("acme", "prod")]


@pytest.mark.parametrize(
    ("marks", "outcome"),
    [
        ({}, Outcome.FAILED),
        ({Annotation.INTERRUPTED: "true"}, Outcome.INTERRUPTED),
        ({Annotation.DESTRUCTIVE_PLAN_BLOCKED: "true"}, Outcome.BLOCKED),
        ({Annotation.PLAN_CHANGED: "true"}, Outcome.PLAN_CHANGED),
    ],
)
def test_a_counted_job_is_known_by_its_marks(marks: dict[str, str], outcome: Outcome) -> None:
    assert marked_outcome(ended_view(marks=marks)) is outcome


def test_without_marks_the_conditions_speak() -> None:
    assert marked_outcome(job_view()) is Outcome.ACTIVE
    assert marked_outcome(done_view()) is Outcome.SUCCEEDED
    assert marked_outcome(done_view(Operation.PLAN, marks={Annotation.PLAN_UNREADABLE: "true"})) is (
        Outcome.PLAN_UNREADABLE
    )
    assert marked_outcome(ended_view(reason=DEADLINE)) is Outcome.DEADLINE


def test_decide_sees_what_was_just_judged_rather_than_the_marks() -> None:
    seen = fact(ended_view(marks={Annotation.DRIFT_REMEDIATION: "true"}), Outcome.INTERRUPTED)
    assert (seen.outcome, seen.op, seen.attempt) == (Outcome.INTERRUPTED, Operation.APPLY, 1)
    assert seen.inputs_hash == OLD
    assert seen.is_remediation
    assert not seen.is_bookkept


@pytest.mark.parametrize(
    ("document", "has_started", "pull_problem", "message"),
    [
        (pod_document(phase="Pending", state={"waiting": {"reason": "PodInitializing"}}), False, "", ""),
        (pod_document(state={"running": {"startedAt": "2026-11-30T18:00:00Z"}}), True, "", ""),
        (ended_pod(b"{}"), True, "", "{}"),
        (pulling_pod(), False, "modules/cluster:v1: ImagePullBackOff: not found", ""),
        (pulling_pod("ErrImagePull"), False, "modules/cluster:v1: ErrImagePull: not found", ""),
        ({"metadata": {}, "status": {}}, False, "", ""),
    ],
)
def test_what_a_pod_says(document: dict[str, Any], has_started: bool, pull_problem: str, message: str) -> None:
    pod = read_pods([document])[0]
    assert (pod.has_started, pod.pull_problem, pod.message) == (has_started, pull_problem, message)


def test_the_runners_own_image_may_be_what_cannot_be_had() -> None:
    waiting = {"waiting": {"reason": "ErrImagePull"}}
    init = [{"name": "runner", "image": "stackhold:1", "state": waiting}]
    assert (
        pods(pod_document(phase="Pending", initContainerStatuses=init))[0].pull_problem == "stackhold:1: ErrImagePull"
    )


@pytest.mark.parametrize(
    ("status", "disruption"),
    [
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            "EvictionByEvictionAPI",
        ),
        ({"conditions": [{"type": "DisruptionTarget", "status": "False", "reason": "x"}]}, ""),
        ({"reason": "Evicted"}, "Evicted"),
        ({"reason": "DeadlineExceeded"}, ""),
        ({}, ""),
    ],
)
def test_what_stopped_a_pod_from_outside(status: dict[str, Any], disruption: str) -> None:
    assert pods(pod_document(**status))[0].disruption == disruption


def test_the_newest_pod_comes_first() -> None:
    older = pod_document()
    older["metadata"] = {"name": "older", "creationTimestamp": "2026-11-30T17:00:00Z"}
    assert [pod.name for pod in pods(older, pod_document())][-1] == "older"
