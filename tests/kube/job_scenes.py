"""Jobs and pods as the API server has them, and the orders that Jobs are built from."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.kube.scenes import NOW, OLD, UID

from stackhold.engines.terraform.result import Failure, FailureKind, ResultDocument, StepDone, encode
from stackhold.engines.terraform.steps import Operation
from stackhold.kube.job_end import RESULT_KEY
from stackhold.kube.job_facts import JobView, PodView, read_job, read_pods
from stackhold.kube.jobs import Backup, Identity, Order, Owner, build_job
from stackhold.kube.names import Kind
from stackhold.kube.pod import RunnerProgram
from stackhold.kube.policy import Layer, merge
from stackhold.kube.times import second_time
from stackhold.model.instant import MINUTE, Instant

if TYPE_CHECKING:
    from stackhold.engines.terraform.planfile import PlanSummary

RUNNER = RunnerProgram("registry.example/stackhold:1", ("/copy", "/captf/bin"), ("/captf/bin/start",))
OWNER = Owner(kind=Kind.CLUSTER, namespace="acme", name="prod", uid=UID, cluster="prod")
ERRORS = {kind: Failure(kind, "apply", f"{kind.value}: it was so") for kind in FailureKind}


def order(operation: Operation = Operation.APPLY, **fields: Any) -> Order:
    """An order that can be built for any operation but a restore."""
    plain = Order(
        owner=OWNER,
        identity=Identity(operation, 1, OLD),
        image="registry.example/modules/cluster:v1",
        runner=RUNNER,
        policy=merge(()),
        credentials="captf-creds-aws",
        plan_key="captf-plankey-c-prod",
    )
    return replace(plain, **fields)


def job_document(operation: Operation = Operation.APPLY, **status: Any) -> dict[str, Any]:
    """A Job that was created two hours ago; `conditions` are given by name, with their reason."""
    document = build_job(order(operation, **_backup(operation)))
    document["metadata"] |= {"uid": "job-uid", "creationTimestamp": second_time(Instant(NOW - 120 * MINUTE))}
    ended = second_time(Instant(NOW - MINUTE))
    conditions = [
        {"type": name, "status": "True", "reason": reason, "lastTransitionTime": ended}
        for name, reason in status.pop("conditions", {}).items()
    ]
    document["status"] = {"conditions": conditions, **status}
    return document


def job_view(operation: Operation = Operation.APPLY, *, marks: dict[str, str] | None = None, **status: Any) -> JobView:
    """The same, read."""
    document = job_document(operation, **status)
    document["metadata"].setdefault("annotations", {}).update(marks or {})
    view = read_job(document)
    assert view is not None
    return view


def ended_view(operation: Operation = Operation.APPLY, *, reason: str = "BackoffLimitExceeded", **more: Any) -> JobView:
    """A Job that failed, for the reason that Kubernetes gives."""
    return job_view(operation, conditions={"FailureTarget": reason, "Failed": reason}, **more)


def done_view(operation: Operation = Operation.APPLY, **more: Any) -> JobView:
    """A Job that went well."""
    return job_view(operation, conditions={"SuccessCriteriaMet": "", "Complete": ""}, **more)


def pod_document(*, phase: str = "Running", state: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    """A pod whose main container is in this state."""
    containers = [{"name": "source", "image": "modules/cluster:v1", "imageID": "", "state": state or {}}]
    return {
        "metadata": {"name": "captf-c-prod-apply-a1-abcdef-x7k2p", "creationTimestamp": second_time(NOW)},
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def pods(*documents: dict[str, Any]) -> list[PodView]:
    """Pods, read."""
    return read_pods(documents)


def ended_pod(message: bytes = b"", *, exit_code: int = 1) -> dict[str, Any]:
    """A pod whose runner ended and left this termination message."""
    terminated = {"exitCode": exit_code, "message": message.decode(), "reason": "Error" if exit_code else "Completed"}
    return pod_document(phase="Failed" if exit_code else "Succeeded", state={"terminated": terminated})


def pulling_pod(reason: str = "ImagePullBackOff") -> dict[str, Any]:
    """A pod whose image cannot be had."""
    waiting = {"reason": reason, "message": "not found"}
    return pod_document(phase="Pending", state={"waiting": waiting})


def result(
    operation: Operation = Operation.APPLY, *, error: Failure | None = None, plan: PlanSummary | None = None
) -> bytes:
    """What the runner wrote."""
    steps = (StepDone("init", 0, 3), StepDone("plan", 2 if plan else 0, 8))
    return encode(ResultDocument(operation.value, steps=steps, error=error, plan=plan))


def run_secret_with(document: bytes) -> dict[str, Any]:
    """The per-run Secret with the second copy in it."""
    return {"data": {RESULT_KEY: base64.b64encode(document).decode()}}


def configured(**policy: Any) -> Any:
    """What a policy comes to, when it is all there is."""
    return merge([Layer("spec.jobs", policy)])


def _backup(operation: Operation) -> dict[str, Any]:
    return {"backup": Backup(7, ("captf-state-backup-x-c-7",), 3)} if operation is Operation.RESTORE else {}
