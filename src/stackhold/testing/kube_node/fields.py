"""What a pod says about itself, and the environment and arguments that its containers get. Pure.

Secrets and ConfigMaps come through the two lookups that the caller passes in; one that is missing is `NotThere`, for
which a kubelet waits.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackhold.testing.kube_node.api import Object

_QUOTED = re.compile(r"^metadata\.(labels|annotations)\['(.*)'\]$")
_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")


class NotThere(Exception):
    """A Secret, a ConfigMap or a key of one does not exist (yet)."""


class Unsupported(Exception):
    """The pod asks for something that a test node does not do."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """How to read a Secret and a ConfigMap of the pod's namespace by name; each raises `NotThere`."""

    secret: Callable[[str], Object]
    config_map: Callable[[str], Object]


def field(pod: Object, path: str) -> str:
    """The value of a field path of the downward API."""
    metadata, spec = pod["metadata"], pod["spec"]
    if quoted := _QUOTED.match(path):
        return str(metadata.get(quoted[1], {}).get(quoted[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = metadata.get(path.partition(".")[2], {})
        return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
    plain = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": "127.0.0.1",
        "status.hostIPs": "127.0.0.1",
        "status.podIP": "127.0.0.1",
        "status.podIPs": "127.0.0.1",
    }
    if path not in plain:
        raise Unsupported(f"a test node has no field {path!r}")
    return str(plain[path])


def secret_bytes(secret: Object) -> dict[str, bytes]:
    """The entries of a Secret."""
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def config_map_bytes(config_map: Object) -> dict[str, bytes]:
    """The entries of a ConfigMap, text and binary."""
    text = {key: value.encode() for key, value in (config_map.get("data") or {}).items()}
    return text | {key: base64.b64decode(value) for key, value in (config_map.get("binaryData") or {}).items()}


def environment(pod: Object, container: Object, given: Mapping[str, str], lookups: Lookups) -> dict[str, str]:
    """A container's environment: what is `given`, then `envFrom`, then `env` in its order. Raises `NotThere`."""
    env = dict(given)
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix", "")
        env.update({prefix + key: value.decode() for key, value in _all_of(source, lookups).items()})
    for entry in container.get("env") or ():
        value = _value(pod, entry, lookups)
        if value is not None:
            env[entry["name"]] = expand(value, env) if "valueFrom" not in entry else value
    return env


def _all_of(source: Object, lookups: Lookups) -> dict[str, bytes]:
    kind = "secretRef" if "secretRef" in source else "configMapRef"
    reference = source[kind]
    try:
        if kind == "secretRef":
            return secret_bytes(lookups.secret(reference["name"]))
        return config_map_bytes(lookups.config_map(reference["name"]))
    except NotThere:
        if reference.get("optional"):
            return {}
        raise


def _value(pod: Object, entry: Object, lookups: Lookups) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"])
    for kind, read, entries in (
        ("secretKeyRef", lookups.secret, secret_bytes),
        ("configMapKeyRef", lookups.config_map, config_map_bytes),
    ):
        if kind in source:
            reference = source[kind]
            try:
                return _key(entries(read(reference["name"])), reference).decode()
            except NotThere:
                if reference.get("optional"):
                    return None
                raise
    raise Unsupported(f"a test node has no variable from {', '.join(source)}")


def _key(entries: Mapping[str, bytes], reference: Object) -> bytes:
    if reference["key"] not in entries:
        raise NotThere(f"couldn't find key {reference['key']} in {reference['name']}")
    return entries[reference["key"]]


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by that variable; `$$` is a dollar sign, and a name that is not set stays as it is."""

    def put(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return env.get(match[1], match[0])

    return _REFERENCE.sub(put, text)


def arguments(
    container: Object, *, entrypoint: Sequence[str], command: Sequence[str], env: Mapping[str, str]
) -> list[str]:
    """What is executed: the pod's command instead of the image's entrypoint, its args instead of the command."""
    if container.get("command"):
        words = [*container["command"], *(container.get("args") or ())]
        return [expand(word, env) for word in words]
    if container.get("args"):
        return [*entrypoint, *(expand(word, env) for word in container["args"])]
    return [*entrypoint, *command]


def host_name(pod: Object) -> str:
    """The host name of a pod's containers: its own wish, else its name, at most 63 characters."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")
