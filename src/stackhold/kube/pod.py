"""The pod of a Job: two containers, their volumes, their environment, and the runner's arguments.

The init container `runner` copies the runner's tree to a volume that the module's image, `source`, starts it from; the
image's own entry point never runs. What the runner is given by argument is what `stackhold runner run` takes. The
root file system is read-only, so every folder that is written to is a volume. Two containers share what the kubelet
keeps of termination messages, which leaves the whole 4096 bytes to the runner's result.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.job_facts import COPIER, SOURCE
from stackhold.kube.leases import POD_GRACE_S
from stackhold.kube.names import PLAN_KEY_KEY, RUNNER, STATE_KEY, run_secret, state_labels, state_suffix

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.kube.jobs import Order
    from stackhold.kube.policy import EffectivePolicy
    from stackhold.model.values import JsonMap

STOP_MARGIN_S: Final = 30
USER: Final = 65532
SECRET_MODE: Final = 0o440
BIN, WORK, TMP, CONFIG = "/captf/bin", "/captf/work", "/tmp", "/captf/config"
CREDENTIALS, PLAN_KEY = "/var/run/captf/credentials", "/captf/plan-key"
RUNTIME, MODULE, PROVIDERS = "/captf/runtime", "/captf/module", "/captf/providers"
RESULT: Final = "/dev/termination-log"
_RESTORE: Final = "restore"
_COPIER_RESOURCES: Final[dict[str, dict[str, str]]] = {
    "requests": {"cpu": "10m", "memory": "32Mi"},
    "limits": {"cpu": "100m", "memory": "64Mi"},
}
_HARDENED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
}
_NO_CAPABILITIES: Final = {"capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True)
class RunnerProgram:
    """The runner's tree: the image that brings it, how it is copied, how it is started."""

    image: str
    copy: tuple[str, ...]
    """The init container's command; it fills BIN."""
    start: tuple[str, ...]
    """What starts `stackhold` from BIN, in an image that may hold nothing else: no shell, no libc."""
    pull_policy: str = "IfNotPresent"
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: _COPIER_RESOURCES)


def pod_spec(order: Order) -> dict[str, Any]:
    """The pod of an order."""
    policy = order.policy
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": POD_GRACE_S,
        "serviceAccountName": policy.service_account or RUNNER,
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},
            "fsGroup": USER,
            **(policy.pod_security_context or {}),
        },
        "initContainers": [_copier(order.runner)],
        "containers": [_source(order)],
        "volumes": _volumes(order),
    }
    if policy.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in policy.image_pull_secrets]
    return spec


def runner_arguments(order: Order) -> list[str]:
    """What the runner is told."""
    operation, owner = order.identity.operation, order.owner
    suffix = state_suffix(owner.kind, namespace=owner.namespace, name=owner.name)
    labels = state_labels(owner.kind, owner.name, owner.cluster)
    return [
        f"--op={operation.value}",
        f"--bin={RUNTIME}",
        f"--image={order.image}",
        f"--module={MODULE}",
        f"--providers={PROVIDERS}",
        f"--workdir={WORK}",
        f"--config={CONFIG}",
        f"--result={RESULT}",
        f"--lock-timeout={order.policy.lock_timeout.value}s",
        f"--stop-timeout={POD_GRACE_S - STOP_MARGIN_S}s",
        f"--backend-config=secret_suffix={suffix}",
        f"--backend-config=namespace={owner.namespace}",
        "--backend-config=in_cluster_config=true",
        f"--backend-config=labels={_as_hcl(labels)}",
        *_flag("--force-unlock", order.force_unlock),
        *_approval(order),
        *_backup(order),
        *_flag("--event-object", owner.event_object if order.tells_events else ""),
        f"--job-name={order.name}",
    ]


def _approval(order: Order) -> list[str]:
    flags = ["--guard-deletes"] if order.guards_deletes else []
    if order.guards_deletes or order.expect_plan or order.identity.operation is Operation.PLAN:
        flags += _flag("--inputs-hash", order.approval_hash or order.identity.inputs_hash)
    flags += _flag("--allow-deletes-hash", order.allow_deletes_hash)
    flags += _flag("--expect-plan", order.expect_plan)
    return [*flags, *_flag("--plan-key-file", f"{PLAN_KEY}/{PLAN_KEY_KEY}" if _sees_plan_key(order) else "")]


def _backup(order: Order) -> list[str]:
    if order.backup is None:
        return []
    chunks = [f"--restore-chunks={CONFIG}/{_RESTORE}/{index}" for index in range(len(order.backup.chunks))]
    return [*chunks, f"--restore-resources={order.backup.resources}"]


def _flag(name: str, value: str) -> list[str]:
    return [f"{name}={value}"] if value else []


def _as_hcl(labels: Mapping[str, str]) -> str:
    """A map as `-backend-config` takes it: JSON is an expression of the language, but for what begins a template."""
    return json.dumps(dict(sorted(labels.items())), separators=(",", ":")).replace("${", "$${").replace("%{", "%%{")


def _sees_plan_key(order: Order) -> bool:
    return bool(order.plan_key) and order.identity.operation in (Operation.PLAN, Operation.APPLY)


def _copier(runner: RunnerProgram) -> dict[str, Any]:
    return {
        "name": COPIER,
        "image": runner.image,
        "imagePullPolicy": runner.pull_policy,
        "command": list(runner.copy),
        "volumeMounts": [{"name": "runner", "mountPath": BIN}],
        "securityContext": {**_HARDENED, **_NO_CAPABILITIES, "runAsNonRoot": True, "runAsUser": USER},
        "resources": {name: dict(values) for name, values in runner.resources.items()},
    }


def _source(order: Order) -> dict[str, Any]:
    policy = order.policy
    return {
        "name": SOURCE,
        "image": order.image,
        "imagePullPolicy": order.pull_policy,
        "command": [*order.runner.start, "runner", "run"],
        "args": runner_arguments(order),
        "env": _environment(policy, order.owner.namespace),
        "envFrom": [{"secretRef": {"name": order.credentials}}],
        "volumeMounts": _mounts(order),
        "securityContext": {**_HARDENED, **(policy.security_context or {}), **_NO_CAPABILITIES},
        "resources": dict(policy.resources),
        "terminationMessagePath": RESULT,
        "terminationMessagePolicy": "File",
    }


def _environment(policy: EffectivePolicy, namespace: str) -> list[JsonMap]:
    """The Job's own variables, then the policy's, which may say one of them differently.

    They win over the credentials', which come by `envFrom`. The runner sets what it must have once more.
    """
    ours = {
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "HOME": WORK,
        "TMPDIR": TMP,
        "KUBE_NAMESPACE": namespace,
        "CHECKPOINT_DISABLE": "1",
    }
    said = {entry["name"] for entry in policy.env}
    return [*({"name": name, "value": value} for name, value in ours.items() if name not in said), *policy.env]


def _mounts(order: Order) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "runner", "mountPath": BIN, "readOnly": True},
        {"name": "work", "mountPath": WORK},
        {"name": "tmp", "mountPath": TMP},
        {"name": "config", "mountPath": CONFIG, "readOnly": True},
        {"name": "creds", "mountPath": CREDENTIALS, "readOnly": True},
    ]
    if _sees_plan_key(order):
        mounts.append({"name": "plan-key", "mountPath": PLAN_KEY, "readOnly": True})
    return mounts


def _volumes(order: Order) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [
        {"name": "runner", "emptyDir": {}},
        {"name": "work", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "config", **_config(order)},
        {"name": "creds", "secret": {"secretName": order.credentials, "defaultMode": SECRET_MODE}},
    ]
    if _sees_plan_key(order):
        items = [{"key": PLAN_KEY_KEY, "path": PLAN_KEY_KEY}]
        secret = {"secretName": order.plan_key, "defaultMode": SECRET_MODE, "items": items}
        volumes.append({"name": "plan-key", "secret": secret})
    return volumes


def _config(order: Order) -> dict[str, Any]:
    """The per-run Secret; for a restore, with the parts of the backup in a folder beside its files."""
    files = run_secret(order.name)
    if order.backup is None:
        return {"secret": {"secretName": files, "defaultMode": SECRET_MODE}}
    chunks = [
        {"secret": {"name": name, "items": [{"key": STATE_KEY, "path": f"{_RESTORE}/{index}"}]}}
        for index, name in enumerate(order.backup.chunks)
    ]
    return {"projected": {"defaultMode": SECRET_MODE, "sources": [{"secret": {"name": files}}, *chunks]}}
