"""From a container of a pod and its image to the plan of its process. No I/O but the look-ups that it is given.

What a test node does not do is refused here with words, so that no test passes because something was ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.testing.kube_node import fields
from stackhold.testing.kube_node.fields import Unsupported
from stackhold.testing.kube_node.process import CAPABILITIES, Identity, Mount, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackhold.testing.kube_node.api import Object
    from stackhold.testing.kube_node.images import Image

_REFUSED = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "volumeDevices", "restartPolicy")


class ConfigError(Exception):
    """A container must not be made as it is specified; a kubelet shows it as CreateContainerConfigError."""


def refuse_unsupported(pod: Object) -> None:
    """Raise `Unsupported` for what a test node would have to ignore."""
    spec = pod["spec"]
    if spec.get("restartPolicy") != "Never":
        raise Unsupported("a test node never restarts a container: restartPolicy must be Never")
    for name in ("ephemeralContainers", "shareProcessNamespace", "hostPID", "activeDeadlineSeconds"):
        if spec.get(name):
            raise Unsupported(f"a test node does not know spec.{name}")
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for name in _REFUSED:
            if container.get(name):
                raise Unsupported(f"a test node does not know {name} of container {container['name']}")


def grace_seconds(pod: Object) -> int:
    """How long a pod that is going away may take: what its deletion says, else its spec; at least a second."""
    said = pod["metadata"].get("deletionGracePeriodSeconds")
    wanted = pod["spec"].get("terminationGracePeriodSeconds", 30) if said is None else said
    return max(int(wanted), 1)


def plan(
    pod: Object,
    container: Object,
    image: Image,
    *,
    volumes: Mapping[str, Path],
    given: Mapping[str, str],
    lookups: fields.Lookups,
    folder: Path,
) -> Plan:
    """The plan of one container whose own files lie in `folder`. Raises `ConfigError`, `NotThere`, `Unsupported`."""
    host_name = fields.host_name(pod)
    env = fields.environment(pod, container, {**image.env, "HOSTNAME": host_name, **given}, lookups)
    argv = fields.arguments(container, entrypoint=image.entrypoint, command=image.command, env=env)
    if not argv:
        raise ConfigError("neither the pod nor the image names a command")
    who = identity(pod, container, image)
    env.setdefault("HOME", "/" if who.user else "/root")
    own = container.get("securityContext") or {}
    return Plan(
        argv=argv,
        env=env,
        working_dir=container.get("workingDir") or image.working_dir,
        host_name=host_name,
        identity=who,
        mounts=[
            *(_volume(mount, volumes) for mount in container.get("volumeMounts") or ()),
            *(Mount(source, target, read_only=True) for target, source in image.mounts.items()),
            Mount(folder / "termination-log", container["terminationMessagePath"], read_only=False),
        ],
        layers=[image.files] if image.files else [],
        on_host=image.base == "host",
        read_only_root=bool(own.get("readOnlyRootFilesystem")),
        scratch=folder / "root",
        log=folder / "log",
    )


def _volume(mount: Object, volumes: Mapping[str, Path]) -> Mount:
    source = volumes[mount["name"]]
    if mount.get("subPathExpr"):
        raise Unsupported("a test node does not know subPathExpr")
    if sub_path := mount.get("subPath"):
        source = source / sub_path
        if not source.exists():
            source.mkdir(parents=True)
    return Mount(source, mount["mountPath"], read_only=bool(mount.get("readOnly")))


def identity(pod: Object, container: Object, image: Image) -> Identity:
    """Whom the container's process is: its own security context over the pod's over the image. Raises `ConfigError`."""
    shared = pod["spec"].get("securityContext") or {}
    own = container.get("securityContext") or {}
    merged = {**shared, **own}
    user = merged.get("runAsUser", image.user)
    if merged.get("runAsNonRoot") and user == 0:
        raise ConfigError(f"container has runAsNonRoot and image will run as root (container {container['name']})")
    groups = [*(shared.get("supplementalGroups") or ())]
    if "fsGroup" in shared:
        groups.append(shared["fsGroup"])
    return Identity(
        user=user,
        group=merged.get("runAsGroup", image.group),
        groups=tuple(groups),
        capabilities=None if own.get("privileged") else _capabilities(own.get("capabilities") or {}),
        no_new_privileges=own.get("allowPrivilegeEscalation") is False,
    )


def _capabilities(wanted: Object) -> tuple[int, ...]:
    unknown = sorted({*(wanted.get("add") or ())} - set(CAPABILITIES))
    if unknown:
        raise Unsupported(f"a test node does not know the capability {', '.join(unknown)}")
    dropped = set(wanted.get("drop") or ())
    kept = set() if "ALL" in dropped else set(CAPABILITIES) - dropped
    return tuple(sorted(CAPABILITIES[name] for name in kept | {*(wanted.get("add") or ())}))
