"""What the end of a Job means: the more specific cause first, and a deadline always counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.job_scenes import (
    ERRORS,
    done_view,
    ended_pod,
    ended_view,
    job_view,
    pod_document,
    pods,
    pulling_pod,
    result,
    run_secret_with,
)
from tests.kube.scenes import NOW

from stackhold.engines.terraform.planfile import PlanSummary
from stackhold.engines.terraform.result import Failure, FailureKind, ResultDocument, StepDone, encode
from stackhold.engines.terraform.steps import Operation
from stackhold.kube.job_end import Cause, find_result, is_stuck, judge_end, pull_mark, to_count, wants_look
from stackhold.kube.job_facts import IMAGE_PULL, JobView, PodView, marked_outcome
from stackhold.kube.names import Annotation
from stackhold.kube.snapshot import Outcome
from stackhold.model.instant import MINUTE, SECOND, Instant

APPLY, PLAN = Operation.APPLY, Operation.PLAN
DEADLINE = "DeadlineExceeded"
EVICTED = pod_document(phase="Failed", reason="Evicted")
PULL = {IMAGE_PULL: "modules/cluster:v1: ErrImagePull"}
BLOCKED_PLAN = PlanSummary("p2:1", delete=1)


def said(kind: FailureKind) -> bytes:
    return result(error=ERRORS[kind])


@pytest.mark.parametrize(
    ("job", "seen", "cause", "outcome"),
    [
        (ended_view(), [ended_pod(said(FailureKind.STEP))], Cause.STEP, Outcome.FAILED),
        (ended_view(), [ended_pod(said(FailureKind.IMAGE_LAYOUT))], Cause.IMAGE_LAYOUT, Outcome.FAILED),
        (ended_view(), [ended_pod(said(FailureKind.INTERRUPTED))], Cause.INTERRUPTED, Outcome.INTERRUPTED),
        (ended_view(), [ended_pod(said(FailureKind.BLOCKED))], Cause.BLOCKED, Outcome.BLOCKED),
        (ended_view(), [ended_pod(said(FailureKind.PLAN_CHANGED))], Cause.PLAN_CHANGED, Outcome.PLAN_CHANGED),
        (ended_view(), [ended_pod()], Cause.NO_RESULT, Outcome.FAILED),
        (ended_view(), [], Cause.NO_RESULT, Outcome.FAILED),
        (ended_view(), [ended_pod(result())], Cause.STEP, Outcome.FAILED),
        (ended_view(), [EVICTED], Cause.INTERRUPTED, Outcome.INTERRUPTED),
        (ended_view(reason=DEADLINE), [ended_pod(said(FailureKind.INTERRUPTED))], Cause.DEADLINE, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE), [ended_pod(said(FailureKind.STEP))], Cause.DEADLINE, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE), [ended_pod(result(), exit_code=0)], Cause.DEADLINE, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE), [EVICTED], Cause.DEADLINE, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE), [], Cause.DEADLINE, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE), [ended_pod(said(FailureKind.BLOCKED))], Cause.BLOCKED, Outcome.BLOCKED),
        (ended_view(reason=DEADLINE), [pulling_pod()], Cause.IMAGE_PULL, Outcome.DEADLINE),
        (ended_view(reason=DEADLINE, marks=PULL), [], Cause.IMAGE_PULL, Outcome.DEADLINE),
        (ended_view(marks=PULL), [], Cause.IMAGE_PULL, Outcome.FAILED),
        (ended_view(reason=DEADLINE, marks=PULL), [ended_pod()], Cause.DEADLINE, Outcome.DEADLINE),
        (done_view(), [ended_pod(result(), exit_code=0)], Cause.DONE, Outcome.SUCCEEDED),
        (done_view(), [], Cause.DONE, Outcome.SUCCEEDED),
        (done_view(PLAN), [ended_pod(result(PLAN, plan=BLOCKED_PLAN), exit_code=0)], Cause.DONE, Outcome.SUCCEEDED),
        (done_view(PLAN), [ended_pod(result(PLAN), exit_code=0)], Cause.DONE, Outcome.SUCCEEDED),
        (done_view(PLAN), [], Cause.PLAN_UNREADABLE, Outcome.PLAN_UNREADABLE),
    ],
)
def test_what_a_job_came_to(job: JobView, seen: list[dict[str, Any]], cause: Cause, outcome: Outcome) -> None:
    ended = judge_end(job, pods(*seen), None)
    assert (ended.cause, ended.outcome) == (cause, outcome)
    assert (ended.detail == "") is (cause is Cause.DONE)


def test_a_plan_whose_changes_were_lost_is_no_plan() -> None:
    document = encode(ResultDocument("plan", steps=(StepDone("plan", 2, 8),)))
    assert judge_end(done_view(PLAN), pods(ended_pod(document, exit_code=0)), None).cause is Cause.PLAN_UNREADABLE


@pytest.mark.parametrize("kind", list(FailureKind))
def test_the_second_copy_tells_the_same_as_the_pod(kind: FailureKind) -> None:
    from_pod = judge_end(ended_view(), pods(ended_pod(said(kind))), None)
    from_secret = judge_end(ended_view(), [], run_secret_with(said(kind)))
    assert from_pod.result == from_secret.result is not None
    assert (from_pod.cause, from_pod.detail) == (from_secret.cause, from_secret.detail)


def test_what_the_kubelet_cut_is_read_from_the_second_copy() -> None:
    whole = said(FailureKind.STEP)
    cut = judge_end(ended_view(), pods(ended_pod(whole[:-7])), run_secret_with(whole))
    assert cut.cause is Cause.STEP


@pytest.mark.parametrize("secret", [None, {}, {"data": None}, {"data": {"result": "!"}}, {"data": {"result": "eA=="}}])
def test_a_second_copy_that_is_none_is_none(secret: dict[str, Any] | None) -> None:
    assert find_result(job_view(), [], secret) is None


def test_another_operations_result_is_not_ours() -> None:
    assert find_result(job_view(APPLY), [], run_secret_with(result(Operation.DRIFT))) is None


@pytest.mark.parametrize(
    ("job", "seen", "is_unconfirmed"),
    [
        (ended_view(), [], True),
        (ended_view(), [ended_pod()], True),
        (ended_view(reason=DEADLINE), [], True),
        (ended_view(), [EVICTED], False),
        (ended_view(), [pod_document(phase="Failed", state={"terminated": {"exitCode": 137}}, reason="Evicted")], True),
        (ended_view(), [ended_pod(said(FailureKind.STEP))], False),
        (ended_view(reason=DEADLINE, marks=PULL), [], False),
        (ended_view(Operation.DESTROY), [], False),
        (done_view(), [], False),
    ],
)
def test_an_apply_is_unconfirmed_when_it_may_have_run_and_said_nothing(
    job: JobView, seen: list[dict[str, Any]], is_unconfirmed: bool
) -> None:
    assert judge_end(job, pods(*seen), None).is_unconfirmed is is_unconfirmed


@given(
    is_deadline=st.booleans(),
    kind=st.none() | st.sampled_from(FailureKind),
    has_pod=st.booleans(),
    is_marked=st.booleans(),
)
def test_a_counted_job_reads_as_it_was_judged(
    is_deadline: bool, kind: FailureKind | None, has_pod: bool, is_marked: bool
) -> None:
    """The marks hold all that later passes go by: the pod and the Secret are gone by then."""
    reason, marks = DEADLINE if is_deadline else "BackoffLimitExceeded", PULL if is_marked else {}
    seen = pods(ended_pod(said(kind) if kind else b"")) if has_pod else []
    ended = judge_end(ended_view(reason=reason, marks=marks), seen, None)
    again = ended_view(reason=reason, marks=marks | ended.marks())
    assert again.is_bookkept
    assert marked_outcome(again) is ended.outcome


@given(kind=st.none() | st.sampled_from(FailureKind), has_pod=st.booleans())
def test_a_deadline_counts_unless_the_runner_had_stopped_by_itself(kind: FailureKind | None, has_pod: bool) -> None:
    seen = pods(ended_pod(said(kind) if kind else b"")) if has_pod else []
    outcome = judge_end(ended_view(reason=DEADLINE), seen, None).outcome
    assert outcome.is_counted or (has_pod and kind in (FailureKind.BLOCKED, FailureKind.PLAN_CHANGED))


def test_the_plans_hash_stays_on_the_job() -> None:
    blocked = result(error=ERRORS[FailureKind.BLOCKED], plan=BLOCKED_PLAN)
    marks = judge_end(ended_view(), pods(ended_pod(blocked)), None).marks()
    assert marks == {
        Annotation.BOOKKEPT: "true",
        Annotation.DESTRUCTIVE_PLAN_BLOCKED: "true",
        Annotation.PLAN_HASH: "p2:1",
    }
    planned = judge_end(done_view(PLAN), pods(ended_pod(result(PLAN, plan=BLOCKED_PLAN), exit_code=0)), None)
    assert planned.marks() == {Annotation.BOOKKEPT: "true", Annotation.PLAN_HASH: "p2:1"}
    assert judge_end(done_view(PLAN), [], None).marks()[Annotation.PLAN_UNREADABLE] == "true"


@pytest.mark.parametrize(
    ("job", "seen", "detail"),
    [
        (ended_view(), [ended_pod(said(FailureKind.STEP))], "apply failed: step: it was so"),
        (ended_view(reason=DEADLINE), [], "it ran past its deadline of 3600 s"),
        (
            ended_view(reason=DEADLINE),
            [ended_pod(said(FailureKind.INTERRUPTED))],
            "it ran past its deadline of 3600 s during apply",
        ),
        (ended_view(), [ended_pod(said(FailureKind.INTERRUPTED))], "it was stopped from outside during apply"),
        (ended_view(), [EVICTED], "its pod was stopped from outside (Evicted)"),
        (ended_view(), [], "it ended without a result, and its pod is gone"),
        (
            ended_view(),
            [ended_pod(result(error=Failure(FailureKind.STEP)))],
            "the runner failed",
        ),
        (ended_view(marks=PULL), [], "modules/cluster:v1: ErrImagePull"),
    ],
)
def test_what_is_said_of_it(job: JobView, seen: list[dict[str, Any]], detail: str) -> None:
    assert judge_end(job, pods(*seen), None).detail == detail


def test_a_job_is_counted_once_and_the_oldest_first() -> None:
    counted = ended_view(marks={Annotation.BOOKKEPT: "true"})
    later, earlier = done_view(completionTime="2026-11-30T18:01:00Z"), done_view(completionTime="2026-11-30T18:00:00Z")
    assert to_count([later, job_view(), counted, earlier]) == [earlier, later]


def test_a_job_at_its_deadline_is_not_counted_before_its_pod_is_gone() -> None:
    assert to_count([job_view(conditions={"FailureTarget": DEADLINE})]) == []


PENDING = pod_document(phase="Pending", state={"waiting": {"reason": "PodInitializing"}})
RUNNING = pod_document(state={"running": {}})
YOUNG = Instant(NOW - 119 * MINUTE - 1000)


@pytest.mark.parametrize(
    ("job", "seen", "has_secret", "now", "stuck"),
    [
        (job_view(), [PENDING], False, NOW, True),
        (job_view(), [], False, NOW, True),
        (job_view(), [PENDING], True, NOW, False),
        (job_view(), [PENDING], False, YOUNG, False),
        (job_view(), [RUNNING], False, NOW, False),
        (job_view(), [PENDING, ended_pod()], False, NOW, False),
        (job_view(conditions={"FailureTarget": DEADLINE}), [], False, NOW, False),
        (done_view(), [], False, NOW, False),
    ],
)
def test_a_job_is_stuck_when_it_can_never_start(
    job: JobView, seen: list[dict[str, Any]], has_secret: bool, now: Instant, stuck: bool
) -> None:
    assert is_stuck(job, pods(*seen), has_secret=has_secret, now=now) is stuck


@pytest.mark.parametrize(
    ("job", "now", "wanted"),
    [
        (job_view(), NOW, True),
        (job_view(ready=1), NOW, False),
        (job_view(), Instant(NOW - 120 * MINUTE + 10 * SECOND), False),
        (done_view(), NOW, False),
        (job_view(conditions={"FailureTarget": DEADLINE}), NOW, True),
    ],
)
def test_a_pod_is_asked_only_while_it_does_not_start(job: JobView, now: Instant, wanted: bool) -> None:
    assert wants_look(job, now) is wanted


@pytest.mark.parametrize(
    ("job", "seen", "mark"),
    [
        (job_view(), [], None),
        (job_view(), [pulling_pod()], {IMAGE_PULL: "modules/cluster:v1: ImagePullBackOff: not found"}),
        (job_view(), [PENDING], None),
        (job_view(marks=PULL), [], None),
        (job_view(marks=PULL), [RUNNING], {IMAGE_PULL: None}),
        (job_view(marks=PULL), [PENDING], {IMAGE_PULL: None}),
    ],
)
def test_why_a_pod_does_not_start_is_kept_on_the_job(
    job: JobView, seen: list[dict[str, Any]], mark: dict[str, str | None] | None
) -> None:
    assert pull_mark(job, pods(*seen)) == mark


def test_what_an_image_resolved_to_is_known_from_any_pod() -> None:
    pod = pod_document(state={"running": {}})
    pod["status"]["containerStatuses"][0]["imageID"] = "registry.example/modules/cluster@sha256:abc"
    seen: list[PodView] = pods(pod)
    assert judge_end(done_view(), seen, None).image_id == "registry.example/modules/cluster@sha256:abc"
    assert judge_end(done_view(), [], None).image_id == ""
