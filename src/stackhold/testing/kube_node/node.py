"""A test node: it registers with an API server and runs the pods that it finds, as real processes of this machine.

It takes the scheduler's place too: a pod without a node is bound to it, if its node selector allows. It can be lost and
come back. It needs root, for the namespaces of its containers; without, `NotRoot` says so.
"""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import sys
import threading
from typing import TYPE_CHECKING, Literal

from stackhold.testing.kube_node.api import Api, ApiError, ApiUnreachable
from stackhold.testing.kube_node.container_run import Pace
from stackhold.testing.kube_node.images import Images
from stackhold.testing.kube_node.pod_run import Desk, PodRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from stackhold.testing.kube_node.api import Access, Object, Watch
    from stackhold.testing.kube_node.process import Process

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_LEASE_SECONDS = 40
_WATCH_SECONDS = 240
_RETRY_SECONDS = 0.3
_READY_SECONDS = 60.0
_SCHEDULER = "default-scheduler"


class NotRoot(Exception):
    """A test node needs root on Linux, and this process has not got it."""


class KubeNode:
    """A node that lives from `with` to the end of its block; then its containers are killed and nothing is reported.

    Making one raises `NotRoot` where it could not work. `folder` keeps each pod's volumes and logs. `images` may be
    shared with other nodes; `pace` may be changed at any time.
    """

    def __init__(
        self,
        access: Access,
        folder: Path,
        *,
        name: str = "node-1",
        images: Images | None = None,
        heartbeat: float = 2.0,
    ) -> None:
        if sys.platform != "linux" or os.geteuid() != 0:
            raise NotRoot("a test node needs Linux and root: it runs containers in namespaces of their own")
        self.name = name
        self.images = images or Images()
        self.pace = Pace()
        self.troubles: collections.deque[str] = collections.deque(maxlen=50)
        """What the API server refused lately, for the eyes of who looks for why nothing happens."""
        self._api = Api(access)
        self._heartbeat = heartbeat
        self._closing = threading.Event()
        self._lost = threading.Event()
        self._ready = threading.Event()
        self._news = threading.Condition()
        self._unreported: dict[str, PodRun] = {}
        self._runs: dict[str, PodRun] = {}
        self._watch: Watch | None = None
        self._desk = Desk(
            api=self._api,
            node_name=name,
            folder=folder,
            images=self.images,
            pace=self.pace,
            given={
                "KUBERNETES_SERVICE_HOST": access.host,
                "KUBERNETES_SERVICE_PORT": str(access.port),
                "KUBERNETES_SERVICE_PORT_HTTPS": str(access.port),
            },
            now=_now,
            closing=self._closing,
            is_lost=self._lost.is_set,
            report=self._report,
        )
        self._threads = [
            threading.Thread(target=target, name=f"{name} {target.__name__}", daemon=True)
            for target in (self._beat, self._follow, self._write)
        ]

    def __enter__(self) -> KubeNode:
        """Register the node and begin to run pods. Raises `ApiUnreachable`."""
        self._desk.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for thread in self._threads:
            thread.start()
        if not self._ready.wait(_READY_SECONDS):
            self.__exit__(None, None, None)
            raise ApiUnreachable(f"node {self.name} could not register in {_READY_SECONDS:.0f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill every container and stop."""
        self._closing.set()
        self._stop_watch()
        with self._news:
            self._news.notify_all()
            runs = list(self._runs.values())
        for run in runs:
            run.wake()
        for thread in self._threads:
            thread.join()
        for run in list(self._runs.values()):
            run.wake()
            run.join()

    def lose(self, *, processes: Literal["die", "go on"]) -> None:
        """Cut the node off: no heartbeat, no status, nothing heard; its containers die with it, or run on unseen."""
        self._lost.set()
        self._stop_watch()
        if processes == "die":
            for run in self._known():
                run.die()

    def come_back(self) -> None:
        """End that: the node hears what it missed and reports what it knows."""
        self._lost.clear()
        for run in self._known():
            run.wake()
            self._report(run)

    def process(self, namespace: str, pod: str, container: str) -> Process | None:
        """The first process of a container of the newest pod of that name, once it has been started."""
        run = self._find(namespace, pod)
        return None if run is None else run.container(container).process

    def log(self, namespace: str, pod: str, container: str) -> str:
        """What a container of the newest pod of that name has written so far."""
        run = self._find(namespace, pod)
        path = None if run is None else run.container(container).folder / "log"
        return path.read_text(errors="replace") if path is not None and path.exists() else ""

    def _known(self) -> list[PodRun]:
        with self._news:
            return list(self._runs.values())

    def _find(self, namespace: str, pod: str) -> PodRun | None:
        found = [run for run in self._known() if (run.namespace, run.name) == (namespace, pod)]
        return found[-1] if found else None

    def _stop_watch(self) -> None:
        with self._news:
            if self._watch is not None:
                self._watch.stop()

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Outlive what the API server refuses, and its absence; note it."""
        try:
            yield
        except (ApiError, ApiUnreachable) as error:
            self.troubles.append(str(error))

    def _beat(self) -> None:
        """Keep the node registered and its Lease renewed."""
        while not self._closing.is_set():
            pause = _RETRY_SECONDS
            if not self._lost.is_set():
                with self._going_on():
                    self._register()
                    self._renew()
                    self._ready.set()
                    pause = self._heartbeat
            self._closing.wait(pause)

    def _register(self) -> None:
        path = f"/api/v1/nodes/{self.name}"
        conditions = [_condition("Ready", "True", "KubeletReady")] + [
            _condition(kind, "False", "KubeletIsFine") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
        ]
        try:
            self._api.merge_lists(f"{path}/status", {"status": {"conditions": conditions}})
        except ApiError as error:
            if error.status != 404:
                raise
            self._api.create("/api/v1/nodes", _node(self.name, conditions))

    def _renew(self) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now}
        try:
            self._api.merge(f"{_LEASES}/{self.name}", {"spec": spec})
        except ApiError as error:
            if error.status != 404:
                raise
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name}}
            self._api.create(_LEASES, {**body, "spec": spec})

    def _follow(self) -> None:
        """Hear of pods: a list, then what changes, again and again."""
        while not self._closing.is_set():
            if not self._lost.is_set():
                with self._going_on():
                    self._hear()
            self._closing.wait(_RETRY_SECONDS)

    def _hear(self) -> None:
        listing = self._api.get("/api/v1/pods")
        for pod in listing["items"]:
            self._take(pod)
        there = {pod["metadata"]["uid"] for pod in listing["items"]}
        for run in self._known():
            if run.uid not in there:
                run.disappear()
        query = {"resourceVersion": listing["metadata"]["resourceVersion"], "allowWatchBookmarks": "true"}
        watch = self._api.watch("/api/v1/pods", query, seconds=_WATCH_SECONDS)
        with self._news:
            self._watch = watch
        for kind, pod in watch:
            if kind == "ERROR" or self._closing.is_set() or self._lost.is_set():
                break
            if kind == "DELETED":
                self._drop(pod)
            elif kind != "BOOKMARK":
                self._take(pod)

    def _take(self, pod: Object) -> None:
        run = self._runs.get(pod["metadata"]["uid"])
        node = pod["spec"].get("nodeName")
        if run is not None and node in (None, "", self.name):
            run.see(pod)
        elif run is not None:
            run.disappear()
        elif node == self.name or self._may_bind(pod):
            run = PodRun(self._desk, pod)
            with self._news:
                self._runs[run.uid] = run
            run.begin()

    def _drop(self, pod: Object) -> None:
        run = self._runs.get(pod["metadata"]["uid"])
        if run is not None:
            run.see(pod)
            run.disappear()

    def _may_bind(self, pod: Object) -> bool:
        spec = pod["spec"]
        selector = spec.get("nodeSelector") or {}
        return (
            not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and spec.get("schedulerName", _SCHEDULER) == _SCHEDULER
            and not pod["metadata"].get("deletionTimestamp")
            and selector.items() <= _labels(self.name).items()
        )

    def _report(self, run: PodRun) -> None:
        with self._news:
            self._unreported[run.uid] = run
            self._news.notify_all()

    def _write(self) -> None:
        """Write statuses, one pod after the other; what cannot be written now is tried again."""
        while not self._closing.is_set():
            with self._news:
                self._news.wait_for(
                    lambda: self._closing.is_set() or (self._unreported and not self._lost.is_set()), 0.5
                )
                if self._closing.is_set() or self._lost.is_set() or not self._unreported:
                    continue
                run = self._unreported.pop(next(iter(self._unreported)))
            if self._closing.wait(self.pace.report):
                return
            try:
                run.write(self._api)
            except (ApiError, ApiUnreachable) as error:
                self.troubles.append(f"status of {run.namespace}/{run.name}: {error}")
                self._report(run)
                self._closing.wait(_RETRY_SECONDS)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _labels(name: str) -> dict[str, str]:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": machine}


def _condition(kind: str, status: str, reason: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": _now()}


def _node(name: str, conditions: list[Object]) -> Object:
    room = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(name)},
        "status": {
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "capacity": room,
            "allocatable": room,
        },
    }
