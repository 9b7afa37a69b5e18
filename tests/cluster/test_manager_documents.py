"""What the manager writes and reads, on a real API server: Jobs, their ends, leases, and the patch of a status."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.definitions import install, path_of, thing
from tests.cluster.jobs import IMAGE, Bench
from tests.cluster.waiting import wait_for
from tests.kube.job_scenes import OWNER, configured, order
from tests.kube.scenes import NOW

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.condition_reasons import ConditionReason, Type
from stackhold.kube.conditions import condition, read_conditions
from stackhold.kube.job_conditions import of_end
from stackhold.kube.job_end import Cause, judge_end, pull_mark
from stackhold.kube.job_facts import JobView, read_job, read_pods
from stackhold.kube.jobs import Adoption, Backup, Order, adopt, build_job
from stackhold.kube.leases import CreateAnswer, create_answer, lease_body, read_lease, release
from stackhold.kube.names import Kind, LeaseRole, lease_labels, run_secret
from stackhold.kube.snapshot import Outcome
from stackhold.kube.status_draft import StatusDraft
from stackhold.model.instant import Instant
from stackhold.testing.kube_node import ApiError, Image

if TYPE_CHECKING:
    from stackhold.testing.kube_node import Api, KubeNode

pytestmark = pytest.mark.cluster

OPERATIONS = [operation for operation in Operation if operation is not Operation.FORCE_UNLOCK]
STRICT = "fieldValidation=Strict"


def ordered(namespace: str, operation: Operation = Operation.APPLY, **fields: Any) -> Order:
    backup = Backup(7, ("backup-7", "backup-7-part-1"), 3) if operation is Operation.RESTORE else None
    return replace(order(operation), owner=replace(OWNER, namespace=namespace), backup=backup, **fields)


def contains(whole: Any, part: Any) -> bool:
    """Whether everything in `part` is in `whole`, which may have more."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_api_server_takes_every_job_whole(api: Api, namespace: str, operation: Operation) -> None:
    built = build_job(ordered(namespace, operation))
    stored = api.create(f"/apis/batch/v1/namespaces/{namespace}/jobs?dryRun=All&{STRICT}", built)
    assert contains(stored, built)
    assert read_job(stored) is not None


def test_a_job_of_the_name_is_there_already_and_is_adopted(api: Api, namespace: str) -> None:
    made = ordered(namespace)
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    api.create(jobs, build_job(made))
    with pytest.raises(ApiError) as refused:
        api.create(jobs, build_job(made))
    assert create_answer(refused.value.status, refused.value.reason) is CreateAnswer.EXISTS
    assert adopt(api.get(f"{jobs}/{made.name}"), made) is Adoption.OURS
    with pytest.raises(ApiError) as gone:
        api.create("/apis/batch/v1/namespaces/not-there/jobs", build_job(ordered("not-there")))
    assert create_answer(gone.value.status, gone.value.reason) is CreateAnswer.REJECTED


def test_a_lease_is_taken_over_once_and_given_back_only_as_it_was_read(api: Api, namespace: str) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def body(existing: dict[str, Any] | None, job: str) -> dict[str, Any]:
        return lease_body(
            existing,
            name="captf-run-x-c",
            namespace=namespace,
            labels=lease_labels(Kind.CLUSTER, "prod", "prod", LeaseRole.RUN),
            job=job,
            operation=Operation.APPLY,
            deadline_s=3600,
            now=NOW,
        )

    first = api.create(f"{leases}?{STRICT}", body(None, "one"))
    assert (read_lease(first).holder, read_lease(first).acquired_at) == ("one", NOW)
    taken = api.replace(f"{leases}/captf-run-x-c?{STRICT}", body(first, "two"))
    with pytest.raises(ApiError) as lost:
        api.replace(f"{leases}/captf-run-x-c", body(first, "three"))
    assert lost.value.status == 409
    stale, fresh = release(read_lease(first), job="one"), release(read_lease(taken), job="two")
    assert stale is not None
    assert fresh is not None
    with pytest.raises(ApiError) as kept:
        api.delete(f"{leases}/captf-run-x-c", stale.options())
    assert kept.value.status == 409
    api.delete(f"{leases}/captf-run-x-c", fresh.options())


def test_a_pass_says_all_in_one_patch_and_the_next_one_nothing(api: Api, namespace: str) -> None:
    install(api)
    spec = {"source": {"image": "ghcr.io/example/module:v1"}, "identityRef": {"name": "aws"}}
    path = path_of(Kind.CLUSTER.value, namespace, "prod")
    read = api.create(path_of(Kind.CLUSTER.value, namespace), thing(Kind.CLUSTER.value, "prod", spec))
    said = [
        condition(Type.APPLY_JOB_SUCCEEDED, ConditionReason.JOB_POLICY_INVALID, "does not fit"),
        condition(Type.PAUSED, ConditionReason.NOT_PAUSED),
    ]
    draft = StatusDraft(read)
    draft.say(*said)
    draft.sum_up(Kind.CLUSTER, is_provisioned=False)
    patch = draft.patch(NOW)
    assert patch is not None
    stored = api.merge(f"{path}/status", patch)
    assert read_conditions(stored["status"]["conditions"]) == draft.conditions()
    again = StatusDraft(stored)
    again.say(*said)
    again.sum_up(Kind.CLUSTER, is_provisioned=False)
    assert again.patch(Instant(NOW + 60_000)) is None
    with pytest.raises(ApiError) as lost:
        api.merge(f"{path}/status", patch)
    assert lost.value.status == 409


def test_an_image_that_cannot_be_had_is_told_although_its_pod_went_at_the_deadline(
    api: Api, namespace: str, node: KubeNode
) -> None:
    """Kubernetes deletes the pod at that second, so that only the mark on the Job says why it never started."""
    made = ordered(namespace, policy=configured(activeDeadlineSeconds=8), image="registry.test/module:none")
    node.images.register(IMAGE, Image())
    node.images.fail_pulls(made.image, "no such image")
    node.images.fail_pulls(made.runner.image, "no such image")
    bench = Bench(api, namespace)
    api.create(bench.path("serviceaccounts"), {"metadata": {"name": "captf-runner"}})
    for name, key in ((made.credentials, "A"), (made.plan_key, "key"), (run_secret(made.name), "main.tf.json")):
        api.create(bench.path("secrets"), {"metadata": {"name": name}, "data": {key: base64.b64encode(b"{}").decode()}})
    api.create(bench.path("jobs"), build_job(made))

    def view() -> JobView:
        found = read_job(api.get(bench.path("jobs", made.name)))
        assert found is not None
        return found

    mark = wait_for(lambda: pull_mark(view(), read_pods(bench.pods(made.name))), "the failing pull")
    api.merge(bench.path("jobs", made.name), {"metadata": {"annotations": mark}})
    wait_for(lambda: view().has_ended or None, "the end of the Job")
    ended = judge_end(view(), read_pods(bench.pods(made.name)), None)
    assert (ended.cause, ended.outcome) == (Cause.IMAGE_PULL, Outcome.DEADLINE)
    assert not ended.is_unconfirmed
    reported = of_end(ended)
    assert reported is not None
    assert reported.reason is ConditionReason.IMAGE_PULL_FAILED
