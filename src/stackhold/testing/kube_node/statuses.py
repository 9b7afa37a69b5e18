"""From the states of a pod's containers to the status that a kubelet writes. Pure: times are passed in as text.

Termination messages are cut twice, as Kubernetes cuts them: each to the last 4096 bytes of its file, then each to its
share of the 12288 bytes that all containers of the pod have together, from the front.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.testing.kube_node.api import Object

MESSAGE_BYTES = 4096
FALLBACK_BYTES = 2048
FALLBACK_LINES = 80
POD_MESSAGE_BYTES = 12 * 1024
KILLED = 137


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that does not run yet."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A container whose first process runs."""

    started_at: str
    container_id: str


@dataclass(frozen=True, slots=True)
class Terminated:
    """A container whose first process has ended, or could not be started."""

    exit_code: int
    reason: str
    message: str
    started_at: str | None
    finished_at: str | None
    container_id: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod as the node knows it."""

    name: str
    image: str
    image_id: str
    state: State


def cut_message(text: bytes) -> bytes:
    """The part of a termination message file that Kubernetes keeps: its end."""
    return text[-MESSAGE_BYTES:]


def cut_log(text: bytes) -> bytes:
    """The part of a container's log that stands in for an empty message, if its policy says so and it failed."""
    return b"".join(text[-FALLBACK_BYTES:].splitlines(keepends=True)[-FALLBACK_LINES:])


def share_of_message(text: str, *, containers: int) -> str:
    """The part of one message that fits its share of what all messages of a pod may have."""
    share = POD_MESSAGE_BYTES // max(containers, 1)
    return text.encode()[:share].decode(errors="replace")


def ended(*, exit_code: int, message: str, started_at: str, finished_at: str, container_id: str) -> Terminated:
    """The state of a container that ran; a signal shows as 128 and its number."""
    return Terminated(
        exit_code=exit_code,
        reason="Completed" if exit_code == 0 else "Error",
        message=message,
        started_at=started_at,
        finished_at=finished_at,
        container_id=container_id,
    )


def never_ran(state: State) -> State:
    """What becomes of a state when the pod is over: a container that never ran counts as killed."""
    if isinstance(state, Terminated):
        return state
    return Terminated(
        exit_code=KILLED,
        reason="ContainerStatusUnknown",
        message="The container could not be located when the pod was terminated",
        started_at=None,
        finished_at=None,
    )


def phase(inits: Sequence[Container], mains: Sequence[Container]) -> str:
    """The phase of a pod that never restarts a container."""
    if any(_failed(one) for one in inits):
        return "Failed"
    if not all(isinstance(one.state, Terminated) for one in inits):
        return "Pending"
    if any(isinstance(one.state, Waiting) for one in mains):
        return "Pending"
    if any(isinstance(one.state, Running) for one in mains):
        return "Running"
    return "Failed" if any(_failed(one) for one in mains) else "Succeeded"


def _failed(one: Container) -> bool:
    return isinstance(one.state, Terminated) and one.state.exit_code != 0


def pod_status(
    inits: Sequence[Container], mains: Sequence[Container], *, started_at: str, since: Mapping[str, str]
) -> Object:
    """The status to merge into the pod's. `since` has the time at which each condition became what it is."""
    reached = phase(inits, mains)
    count = len(inits) + len(mains)
    status: Object = {
        "phase": reached,
        "startTime": started_at,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": "127.0.0.1",
        "podIPs": [{"ip": "127.0.0.1"}],
        "conditions": [
            _condition(kind, is_true, reached, since[kind]) for kind, is_true in conditions(inits, mains).items()
        ],
        "containerStatuses": [_status(one, count, is_init=False) for one in mains],
    }
    if inits:
        status["initContainerStatuses"] = [_status(one, count, is_init=True) for one in inits]
    return status


def conditions(inits: Sequence[Container], mains: Sequence[Container]) -> dict[str, bool]:
    """Which conditions of the pod hold."""
    ready = all(isinstance(one.state, Running) for one in mains)
    initialized = all(isinstance(one.state, Terminated) and one.state.exit_code == 0 for one in inits)
    return {"Initialized": initialized, "ContainersReady": ready, "Ready": ready}


def _condition(kind: str, is_true: bool, reached: str, since: str) -> Object:
    condition: Object = {
        "type": kind,
        "status": "True" if is_true else "False",
        "lastTransitionTime": since,
        "reason": None,
    }
    if reached == "Succeeded":
        condition["reason"] = "PodCompleted"
    elif not is_true:
        failed = "PodFailed" if reached == "Failed" else "ContainersNotReady"
        condition["reason"] = "ContainersNotInitialized" if kind == "Initialized" else failed
    return condition


def _status(one: Container, containers: int, *, is_init: bool) -> Object:
    is_running = isinstance(one.state, Running)
    done = isinstance(one.state, Terminated) and one.state.exit_code == 0
    status: Object = {
        "name": one.name,
        "image": one.image,
        "imageID": one.image_id,
        "restartCount": 0,
        "ready": done if is_init else is_running,
        "started": is_running,
        "state": _state(one.state, containers),
    }
    if not isinstance(one.state, Waiting):
        status["containerID"] = one.state.container_id
    return status


def _state(state: State, containers: int) -> Object:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}
        case Running(started_at, _):
            return {"running": {"startedAt": started_at}}
        case Terminated():
            return {
                "terminated": {
                    "exitCode": state.exit_code,
                    "reason": state.reason,
                    "message": share_of_message(state.message, containers=containers),
                    "startedAt": state.started_at,
                    "finishedAt": state.finished_at,
                    "containerID": state.container_id,
                }
            }
