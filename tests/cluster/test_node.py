"""Pods on a test node under a real control plane: Job status, deadlines and admission are Kubernetes' own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.cluster.jobs import IMAGE, Bench, shell
from tests.cluster.waiting import wait_for

from stackhold.testing.kube_node import ApiError, Image, KubeNode

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.control_plane import ControlPlane

    from stackhold.testing.kube_node import Api
    from stackhold.testing.kube_node.process import Process

pytestmark = pytest.mark.cluster

WAITS_FOR_SIGTERM = "trap 'echo told >> /shared/told; exit 7' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def bench(api: Api, namespace: str, node: KubeNode) -> Bench:
    """A namespace whose pods the test node runs, which knows one image of this machine's files."""
    node.images.register(IMAGE, Image())
    return Bench(api, namespace)


def ready_process(bench: Bench, node: KubeNode, pod: str) -> Process:
    """The first process of the container `source`, once it has written that it is ready."""
    wait_for(lambda: "ready" in node.log(bench.namespace, pod, "source") or None, f"{pod} to be ready")
    return wait_for(lambda: node.process(bench.namespace, pod, "source"), f"the process of {pod}")


def is_alive(process: Process) -> bool:
    return os.path.exists(f"/proc/{process.pid}")


def test_the_node_is_ready_for_the_control_plane(api: Api, node: KubeNode) -> None:
    def is_ready() -> bool:
        found = api.get(f"/api/v1/nodes/{node.name}")
        taints = [one["key"] for one in found["spec"].get("taints") or ()]
        ready = {one["type"]: one["status"] for one in found["status"]["conditions"]}["Ready"]
        return ready == "True" and "node.kubernetes.io/not-ready" not in taints

    wait_for(lambda: is_ready() or None, "a ready node without taints")
    lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}")
    assert lease["spec"]["holderIdentity"] == node.name


def test_a_job_runs_to_complete_with_all_that_its_pod_asked_for(bench: Bench, node: KubeNode) -> None:
    bench.create("secrets", {"metadata": {"name": "creds"}, "stringData": {"key": "hidden"}})
    bench.create("configmaps", {"metadata": {"name": "config"}, "data": {"root": "module"}})
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600, "audience": "tests"}}
    script = """
    set -e
    test "$(cat /init/said)" = "from the init container"
    test "$(cat /creds/key) $KEY" = "hidden hidden"
    test "$(cat /config/root)" = module
    test "$(cut -d. -f2 /projected/token | wc -c)" -gt 50
    test "$POD $POD" = "$(hostname) $HOSTNAME"
    test -s /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    test -s /var/run/secrets/kubernetes.io/serviceaccount/namespace
    test $$$$ = 1
    test "$(id -u) $(stat -c %g /init)" = "65532 65532"
    echo to the log
    printf done > /dev/termination-log
    """
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("init", "creds", "config", "projected")]
    env = [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "key"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    pod = {
        "securityContext": {"runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532},
        "initContainers": [shell("echo from the init container > /init/said", name="runner", volumeMounts=mounts[:1])],
        "containers": [shell(script, volumeMounts=mounts, env=env)],
        "volumes": [
            {"name": "init", "emptyDir": {}},
            {"name": "creds", "secret": {"secretName": "creds", "defaultMode": 0o440}},
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "projected", "projected": {"sources": [token]}},
        ],
    }
    bench.create_job("whole", pod)
    name = bench.pod("whole")["metadata"]["name"]
    ended = bench.wait_for_state(name, "source", "terminated")
    assert (ended["exitCode"], ended.get("message")) == (0, "done"), node.log(bench.namespace, name, "source")
    assert bench.wait_for_job("whole", "Complete")
    assert bench.api.get(bench.path("pods", name))["status"]["phase"] == "Succeeded"
    assert node.log(bench.namespace, name, "source") == "to the log\n"


def test_a_pods_own_account_reaches_the_api_server(bench: Bench) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{bench.namespace}"
    bench.api.create(f"{rbac}/roles", {"metadata": {"name": "writer"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": bench.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    body = {"metadata": {"name": "writer"}, "roleRef": role, "subjects": [subject]}
    bench.api.create(f"{rbac}/rolebindings", body)
    script = """
import json, os, ssl, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
path = "/api/v1/namespaces/" + open(account + "namespace").read() + "/configmaps"
body = json.dumps({"metadata": {"name": "from-the-pod"}}).encode()
headers = {"Authorization": "Bearer " + open(account + "token").read(), "Content-Type": "application/json"}
request = urllib.request.Request(f"https://{host}:{port}{path}", body, headers)
urllib.request.urlopen(request, context=ssl.create_default_context(cafile=account + "ca.crt"))
"""
    container = {"name": "source", "image": IMAGE, "command": ["python3", "-c", script]}
    bench.create_job("writes", {"containers": [container]})
    bench.wait_for_job("writes", "Complete")
    assert bench.api.get(bench.path("configmaps", "from-the-pod"))


def test_at_its_deadline_a_job_fails_only_when_its_process_has_heard_sigterm_and_ended(
    bench: Bench, node: KubeNode, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    slow = WAITS_FOR_SIGTERM.replace("exit 7", "sleep 3; echo drained >> /shared/told; exit 0")
    pod = {
        "terminationGracePeriodSeconds": 600,
        "containers": [shell(slow, volumeMounts=[{"name": "shared", "mountPath": "/shared"}])],
        "volumes": [{"name": "shared", "hostPath": {"path": str(shared)}}],
    }
    bench.create_job("late", pod, activeDeadlineSeconds=6)
    name = bench.pod("late")["metadata"]["name"]
    ready_process(bench, node, name)
    target = bench.wait_for_job("late", "FailureTarget")
    assert target["reason"] == "DeadlineExceeded"
    wait_for(lambda: (shared / "told").exists() or None, "SIGTERM")
    assert bench.job_condition("late", "Failed") is None
    assert bench.pods("late")[0]["metadata"]["deletionGracePeriodSeconds"] == 600
    failed = bench.wait_for_job("late", "Failed")
    assert failed["reason"] == "DeadlineExceeded"
    assert (shared / "told").read_text() == "told\ndrained\n"
    wait_for(lambda: not bench.pods("late") or None, "the end of the pod's object")


def test_when_the_grace_is_over_everything_is_killed(bench: Bench, node: KubeNode) -> None:
    script = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done"
    bench.create_job("deaf", {"terminationGracePeriodSeconds": 600, "containers": [shell(script)]})
    name = bench.pod("deaf")["metadata"]["name"]
    process = ready_process(bench, node, name)
    bench.api.delete(bench.path("pods", name), {"gracePeriodSeconds": 2})
    assert bench.wait_for_job("deaf", "Failed")["reason"] == "BackoffLimitExceeded"
    assert not is_alive(process)


def test_a_failed_pull_is_shown_and_ends_when_the_image_can_be_had(bench: Bench, node: KubeNode) -> None:
    node.pace.pull_backoff = 0.4
    node.images.fail_pulls(IMAGE, "no route to the registry")
    bench.create_job("pulls", {"containers": [shell("true")]})
    name = bench.pod("pulls")["metadata"]["name"]
    waiting = bench.wait_for_state(name, "source", "waiting", "ImagePullBackOff")
    assert "no route to the registry" in waiting["message"]
    assert bench.api.get(bench.path("pods", name))["status"]["phase"] == "Pending"
    node.images.heal_pulls(IMAGE)
    bench.wait_for_job("pulls", "Complete")


def test_a_pod_waits_for_a_secret_that_comes_later(bench: Bench) -> None:
    mounts = [{"name": "run", "mountPath": "/run-secret"}]
    volume = {"name": "run", "secret": {"secretName": "later"}}
    bench.create_job("waits", {"containers": [shell("cat /run-secret/a", volumeMounts=mounts)], "volumes": [volume]})
    name = bench.pod("waits")["metadata"]["name"]
    bench.wait_for_state(name, "source", "waiting", "ContainerCreating")
    bench.create("secrets", {"metadata": {"name": "later"}, "stringData": {"a": "b"}})
    bench.wait_for_job("waits", "Complete")


def test_a_container_killed_with_kill_9_shows_137_and_the_end_of_its_long_message(bench: Bench, node: KubeNode) -> None:
    script = "yes 0123456789abcde | head -c 8192 > /dev/termination-log; echo ready; sleep 1000"
    bench.create_job("killed", {"containers": [shell(script)]})
    name = bench.pod("killed")["metadata"]["name"]
    process = ready_process(bench, node, name)
    os.kill(process.pid, signal.SIGKILL)
    ended = bench.wait_for_state(name, "source", "terminated")
    assert (ended["exitCode"], ended["reason"], len(ended["message"])) == (137, "Error", 4096)
    assert bench.wait_for_job("killed", "Failed")["reason"] == "BackoffLimitExceeded"


def test_a_pod_that_asks_for_what_the_node_does_not_do_fails_with_words(bench: Bench) -> None:
    probe: dict[str, Any] = {"exec": {"command": ["true"]}}
    bench.create_job("probed", {"containers": [shell("true", livenessProbe=probe)]})
    bench.wait_for_job("probed", "Failed")
    status = bench.pods("probed")[0]["status"]
    assert status["reason"] == "Unsupported"
    assert "livenessProbe" in status["message"]


def test_a_lost_node_leaves_its_pod_going_away_until_it_comes_back(bench: Bench, node: KubeNode) -> None:
    bench.create_job("lost", {"containers": [shell("echo ready; sleep 1000")]})
    name = bench.pod("lost")["metadata"]["name"]
    bench.wait_for_state(name, "source", "running")
    process = ready_process(bench, node, name)
    node.lose(processes="go on")
    bench.api.delete(bench.path("pods", name), {"gracePeriodSeconds": 1})

    def readiness() -> str:
        conditions = bench.api.get(f"/api/v1/nodes/{node.name}")["status"]["conditions"]
        return str({one["type"]: one["status"] for one in conditions}["Ready"])

    wait_for(lambda: readiness() == "Unknown" or None, "the control plane to miss the node")
    assert is_alive(process)
    assert bench.pods("lost")[0]["metadata"]["deletionTimestamp"]
    assert bench.job_condition("lost", "Failed") is None
    node.come_back()
    bench.wait_for_job("lost", "Failed")
    assert not is_alive(process)


def test_what_a_node_that_lost_its_power_ran_is_reported_when_it_is_back(bench: Bench, node: KubeNode) -> None:
    bench.create_job("dark", {"containers": [shell("echo ready; sleep 1000")]})
    name = bench.pod("dark")["metadata"]["name"]
    bench.wait_for_state(name, "source", "running")
    process = ready_process(bench, node, name)
    node.lose(processes="die")
    wait_for(lambda: not is_alive(process) or None, "the end of the process")
    assert bench.pods("dark")[0]["status"]["phase"] == "Running"
    node.come_back()
    assert bench.wait_for_state(name, "source", "terminated")["exitCode"] == 137
    bench.wait_for_job("dark", "Failed")


def test_a_slow_node_pulls_first_and_starts_later(bench: Bench, node: KubeNode) -> None:
    node.pace.start = 1000.0
    bench.create_job("slow", {"containers": [shell("true")]})
    name = bench.pod("slow")["metadata"]["name"]
    bench.wait_for_state(name, "source", "waiting", "ContainerCreating")
    bench.api.delete(bench.path("pods", name))
    bench.wait_for_job("slow", "Failed")
    node.pace.start = 0.0
    bench.create_job("faster", {"containers": [shell("true")]})
    bench.wait_for_job("faster", "Complete")


def test_a_pod_goes_to_the_node_that_it_selects(bench: Bench, control_plane: ControlPlane, tmp_path: Path) -> None:
    with KubeNode(control_plane.access(), tmp_path / "other", name="other-node") as other:
        other.images.register(IMAGE, Image())
        selector = {"kubernetes.io/hostname": "other-node"}
        bench.create_job("there", {"containers": [shell("true")], "nodeSelector": selector})
        bench.wait_for_job("there", "Complete")
        assert bench.pods("there")[0]["spec"]["nodeName"] == "other-node"
    bench.api.delete("/api/v1/nodes/other-node")


def test_a_pod_deleted_by_force_is_not_a_dead_process(bench: Bench, node: KubeNode) -> None:
    spec = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [shell("trap '' TERM; echo ready; sleep 1000")],
    }
    bench.create("pods", {"metadata": {"name": "forced"}, "spec": spec})
    process = ready_process(bench, node, "forced")
    node.lose(processes="go on")
    bench.api.delete(bench.path("pods", "forced"), {"gracePeriodSeconds": 0})
    with pytest.raises(ApiError, match="404"):
        bench.api.get(bench.path("pods", "forced"))
    assert is_alive(process)
    node.come_back()
    wait_for(lambda: not is_alive(process) or None, "the end of the process")


def test_a_jobs_pod_deleted_by_force_stays_until_its_node_says_that_it_has_ended(bench: Bench, node: KubeNode) -> None:
    bench.create_job("forced", {"containers": [shell("trap '' TERM; echo ready; sleep 1000")]})
    name = bench.pod("forced")["metadata"]["name"]
    process = ready_process(bench, node, name)
    node.lose(processes="go on")
    bench.api.delete(bench.path("pods", name), {"gracePeriodSeconds": 0})
    (pod,) = bench.pods("forced")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 0
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert is_alive(process)
    node.come_back()
    bench.wait_for_job("forced", "Failed")
    assert not is_alive(process)


def test_the_node_outlives_the_api_server(bench: Bench, node: KubeNode, control_plane: ControlPlane) -> None:
    bench.create_job("lasting", {"containers": [shell("echo ready; sleep 1; echo over")]})
    name = bench.pod("lasting")["metadata"]["name"]
    ready_process(bench, node, name)
    control_plane.kill("kube-apiserver")
    try:
        wait_for(lambda: "over" in node.log(bench.namespace, name, "source") or None, "the end of the process")
    finally:
        control_plane.start("kube-apiserver")
    bench.wait_for_job("lasting", "Complete")
