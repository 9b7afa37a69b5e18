"""One pod's life on a test node, in a thread of its own, from its binding to the removal of its object.

The order is a kubelet's: volumes, init containers one after the other, then all containers at once. When the pod's
object asks for its deletion, or is gone, every first process gets SIGTERM and, after the grace, everything SIGKILL;
only then is the object let go. What is written to the API server is written by the node's reporter, never from here.
"""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stackhold.testing.kube_node import fields, plans, statuses, volumes
from stackhold.testing.kube_node.api import ApiError, ApiUnreachable
from stackhold.testing.kube_node.container_run import ContainerRun, Pace, Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stackhold.testing.kube_node.api import Api, Object
    from stackhold.testing.kube_node.images import Images

_T = TypeVar("_T")
_RETRY_SECONDS = 0.3
_LOOK_AGAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Desk:
    """What the pods of a node share."""

    api: Api
    node_name: str
    folder: Path
    images: Images
    pace: Pace
    given: Mapping[str, str]
    now: Callable[[], str]
    closing: threading.Event
    is_lost: Callable[[], bool]
    report: Callable[[PodRun], None]


class _Ending(Exception):
    """The pod is to end before its containers have."""


class PodRun:
    """A pod that this node runs, or wants to."""

    def __init__(self, desk: Desk, pod: Object) -> None:
        meta = pod["metadata"]
        self.uid = str(meta["uid"])
        self.namespace, self.name = str(meta["namespace"]), str(meta["name"])
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.folder = desk.folder / f"{self.namespace}_{self.name}_{self.uid}"
        self._desk = desk
        self._pod = pod
        self._changed = threading.Condition()
        self._is_gone = False
        self._is_killed = False
        self._is_over = False
        self._refusal = ""
        self._started_at = desk.now()
        self._since: dict[str, str] = {}
        self._truth: dict[str, bool] = {}
        self._reported: Object = {}
        self._is_let_go = False
        spec = pod["spec"]
        waiting = "PodInitializing" if spec.get("initContainers") else "ContainerCreating"
        around = Surroundings(
            images=desk.images,
            pace=desk.pace,
            given=desk.given,
            lookups=self._lookups(),
            now=desk.now,
            pause=self._pause,
            changed=self._has_changed,
            is_ending=self._is_ending,
        )
        self._inits, self._mains = (
            [
                ContainerRun(one, waiting=waiting, folder=self.folder / "containers" / one["name"], around=around)
                for one in spec.get(kind) or ()
            ]
            for kind in ("initContainers", "containers")
        )
        self._thread = threading.Thread(target=self._run, name=f"pod {self.name}", daemon=True)

    def begin(self) -> None:
        """Start its thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its thread."""
        self._thread.join()

    def see(self, pod: Object) -> None:
        """Take the newest version of its object."""
        with self._changed:
            self._pod = pod
            self._changed.notify_all()
        self._desk.report(self)

    def disappear(self) -> None:
        """Its object is gone."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()

    def wake(self) -> None:
        """Let its thread look at the node again."""
        with self._changed:
            self._changed.notify_all()

    def container(self, name: str) -> ContainerRun:
        """One of its containers."""
        return next(one for one in (*self._inits, *self._mains) if one.name == name)

    def die(self) -> None:
        """End all its processes at once, and start none any more: the machine went off."""
        with self._changed:
            self._is_killed = True
            self._changed.notify_all()
        self._kill()

    def _kill(self) -> None:
        for one in (*self._inits, *self._mains):
            if one.process is not None:
                one.process.send(signal.SIGKILL)

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it runs any more and its object is gone."""
        return self._is_gone and not self._thread.is_alive()

    def write(self, api: Api) -> None:
        """Write its status if it is news, and let its object go when it may. Raises what the server answers."""
        try:
            status = self._status()
            if self._is_bound() and status != self._reported:
                api.merge_lists(f"{self.path}/status", {"metadata": {"uid": self.uid}, "status": status})
                self._reported = status
            if self._is_over and self._is_asked_to_go() and not self._is_let_go and status == self._status():
                api.delete(self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})
                self._is_let_go = True
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            self.disappear()

    def _status(self) -> Object:
        with self._changed:
            inits = [one.snapshot(is_over=self._is_over) for one in self._inits]
            mains = [one.snapshot(is_over=self._is_over) for one in self._mains]
            for kind, is_true in statuses.conditions(inits, mains).items():
                if self._truth.get(kind) != is_true:
                    self._truth[kind] = is_true
                    self._since[kind] = self._desk.now()
            status = statuses.pod_status(inits, mains, started_at=self._started_at, since=self._since)
            if self._refusal:
                status |= {"phase": "Failed", "reason": "Unsupported", "message": self._refusal}
            return status

    def _run(self) -> None:
        try:
            self._bind()
            self._desk.report(self)
            self._live()
        except _Ending:
            pass
        except fields.Unsupported as error:
            self._refusal = str(error)
        self._terminate()
        with self._changed:
            self._is_over = True
        if not self._desk.closing.is_set():
            self._desk.report(self)

    def _live(self) -> None:
        plans.refuse_unsupported(self._pod)
        contents = volumes.Contents(lookups=self._lookups(), token=self._token)
        made = self._insist(lambda: volumes.make(self._pod, self.folder / "volumes", contents))
        for one in self._inits:
            if not self._runs_well(one, made):
                return
        for one in self._mains:
            one.begin(self._pod, made)
        self._wait_for(lambda: all(one.is_over for one in self._mains))

    def _runs_well(self, one: ContainerRun, made: Mapping[str, Path]) -> bool:
        one.begin(self._pod, made)
        self._wait_for(lambda: one.is_over)
        return one.has_succeeded

    def _bind(self) -> None:
        if self._is_bound():
            return
        if self._pause(self._desk.pace.bind):
            raise _Ending
        body: Object = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": self.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self._desk.node_name},
        }
        try:
            self._insist(lambda: self._desk.api.create(f"{self.path}/binding", body))
        except ApiError as error:
            if error.status == 404:
                self.disappear()
        self._wait_for(self._is_bound)

    def _is_bound(self) -> bool:
        return bool(self._pod["spec"].get("nodeName") == self._desk.node_name)

    def _insist(self, action: Callable[[], _T]) -> _T:
        """Do what needs the API server until it is done; the pod's end, or a definite no, ends that."""
        while True:
            if not self._desk.is_lost():
                try:
                    return action()
                except (fields.NotThere, ApiUnreachable):
                    pass
                except ApiError as error:
                    if error.status in (404, 409):
                        raise
            if self._pause(_RETRY_SECONDS):
                raise _Ending

    def _lookups(self) -> fields.Lookups:
        return fields.Lookups(
            secret=lambda name: self._read("secrets", name), config_map=lambda name: self._read("configmaps", name)
        )

    def _read(self, kind: str, name: str) -> Object:
        self._need_network()
        try:
            return self._desk.api.get(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
        except ApiError as error:
            if error.status == 404:
                raise fields.NotThere(f'{kind.removesuffix("s")} "{name}" not found') from error
            raise

    def _token(self, options: Object) -> str:
        self._need_network()
        account = self._pod["spec"].get("serviceAccountName") or "default"
        spec: Object = {
            "audiences": [options["audience"]] if options.get("audience") else [],
            "expirationSeconds": options.get("expirationSeconds", 3600),
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": self.name, "uid": self.uid},
        }
        try:
            answer = self._desk.api.create(
                f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
            )
        except ApiError as error:
            if error.status == 404:
                raise fields.NotThere(str(error)) from error
            raise
        return str(answer["status"]["token"])

    def _need_network(self) -> None:
        if self._desk.is_lost():
            raise ApiUnreachable("the node is lost")

    def _terminate(self) -> None:
        """End what runs: SIGTERM to each first process, SIGKILL to all of it when the grace is over."""
        grace = plans.grace_seconds(self._pod)
        give_up = time.monotonic() + grace
        with self._changed:
            while any(one.is_running for one in self._all()) and not self._is_off():
                for one in self._all():
                    one.tell_to_end(signal.SIGTERM)
                if plans.grace_seconds(self._pod) < grace:
                    grace = plans.grace_seconds(self._pod)
                    give_up = min(give_up, time.monotonic() + grace)
                left = give_up - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _LOOK_AGAIN_SECONDS))
        while any(one.is_running for one in self._all()):
            self._kill()
            self._pause_anyway()
        for one in self._all():
            one.join()

    def _all(self) -> list[ContainerRun]:
        return [*self._inits, *self._mains]

    def _pause_anyway(self) -> None:
        with self._changed:
            self._changed.wait(0.02)

    def _has_changed(self) -> None:
        self.wake()
        self._desk.report(self)

    def _is_off(self) -> bool:
        return self._is_killed or self._desk.closing.is_set()

    def _is_asked_to_go(self) -> bool:
        return bool(self._pod["metadata"].get("deletionTimestamp"))

    def _is_ending(self) -> bool:
        return self._is_gone or self._is_killed or self._is_asked_to_go() or self._desk.closing.is_set()

    def _pause(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(self._is_ending, seconds)

    def _wait_for(self, reached: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: reached() or self._is_ending())
        if not reached():
            raise _Ending
