"""Jobs and pods of the tests, shaped as the manager's are, and what there is to see of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.cluster.waiting import wait_for

from stackhold.testing.kube_node import ApiError

if TYPE_CHECKING:
    from stackhold.testing.kube_node import Api

Object = dict[str, Any]

IMAGE = "registry.test/machine:1"


@dataclass(frozen=True, slots=True)
class Bench:
    """A namespace to run Jobs in."""

    api: Api
    namespace: str

    def path(self, kind: str, name: str = "") -> str:
        """The path of a kind's collection in the namespace, or of one object."""
        group = "/apis/batch/v1" if kind == "jobs" else "/api/v1"
        return f"{group}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def create_job(self, name: str, pod: Object, **spec: Any) -> Object:
        """Create a Job of one attempt whose pod is never replaced while it goes away."""
        job = {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": {"spec": {"restartPolicy": "Never", **pod}},
            **spec,
        }
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
        return self.api.create(self.path("jobs"), body)

    def create(self, kind: str, body: Object) -> Object:
        """Create an object of the core group."""
        return self.api.create(self.path(kind), body)

    def job_condition(self, name: str, kind: str) -> Object | None:
        """A Job's condition, if it is true."""
        status = self.api.get(self.path("jobs", name)).get("status", {})
        found = [one for one in status.get("conditions") or () if (one["type"], one["status"]) == (kind, "True")]
        return found[0] if found else None

    def wait_for_job(self, name: str, kind: str) -> Object:
        """Wait until a Job has a condition."""
        return wait_for(lambda: self.job_condition(name, kind), f"{kind} of Job {name}")

    def pods(self, job: str) -> list[Object]:
        """The pods of a Job that there are now."""
        found: list[Object] = self.api.get(self.path("pods"), {"labelSelector": f"job-name={job}"})["items"]
        return found

    def pod(self, job: str) -> Object:
        """The pod of a Job, once there is one."""
        return wait_for(lambda: next(iter(self.pods(job)), None), f"a pod of Job {job}")

    def wait_for_state(self, pod: str, container: str, state: str, reason: str = "") -> Object:
        """Wait until a container is waiting, running or terminated, for that reason if one is named."""

        def look() -> Object | None:
            try:
                status = self.api.get(self.path("pods", pod))["status"]
            except ApiError as error:
                if error.status == 404:
                    return None
                raise
            every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
            for one in every:
                if one["name"] == container and state in one["state"]:
                    found: Object = one["state"][state]
                    return found if reason in ("", found.get("reason")) else None
            return None

        return wait_for(look, f"{container} of {pod} to be {state} {reason}")


def shell(script: str, *, name: str = "source", **more: Any) -> Object:
    """A container that runs a shell script."""
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", script], **more}
