"""A pod's volumes as folders of the node, with the owners and modes that a kubelet gives them.

Secrets, ConfigMaps and projected volumes have a kubelet's layout: each name is a link through `..data` into a folder of
one moment. They are written once; a later change of the source does not reach a running pod. Limits of size are not
kept.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.testing.kube_node import fields
from stackhold.testing.kube_node.fields import NotThere, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stackhold.testing.kube_node.api import Object

_DEFAULT_MODE = 0o644
_READ_WRITE, _READ_ONLY, _SEARCH = 0o660, 0o440, 0o110

KINDS = ("emptyDir", "secret", "configMap", "projected", "downwardAPI", "hostPath")
SOURCES = ("serviceAccountToken", "secret", "configMap", "downwardAPI")


@dataclass(frozen=True, slots=True)
class Contents:
    """Where the contents of volumes come from: lookups, and a token of the pod for a projection's options."""

    lookups: fields.Lookups
    token: Callable[[Object], str]


@dataclass(frozen=True, slots=True)
class _File:
    text: bytes
    mode: int


def make(pod: Object, root: Path, contents: Contents) -> dict[str, Path]:
    """Make every volume of the pod under `root`, by name. Raises `NotThere` for what it must wait for."""
    context = pod["spec"].get("securityContext") or {}
    made = {}
    for volume in pod["spec"].get("volumes") or ():
        target = root / volume["name"]
        if volume.get("hostPath"):
            target = root.__class__(volume["hostPath"]["path"])
        elif not target.exists():
            _make(pod, volume, target, contents, context.get("fsGroup"))
        made[volume["name"]] = target
    return made


def _make(pod: Object, volume: Object, target: Path, contents: Contents, group: int | None) -> None:
    if "emptyDir" in volume:
        target.mkdir(parents=True)
        target.chmod(0o777)
        _give_to(target, group, _READ_WRITE)
        return
    files = _files(pod, volume, contents, keeps_to_itself=group is not None)
    _write(target, files)
    _give_to(target, group, _READ_ONLY)


def _files(pod: Object, volume: Object, contents: Contents, *, keeps_to_itself: bool) -> dict[str, _File]:
    for kind in ("secret", "configMap", "downwardAPI"):
        if kind in volume:
            source = volume[kind]
            return _entries(pod, kind, source, contents, source.get("defaultMode", _DEFAULT_MODE))
    if "projected" not in volume:
        kinds = ", ".join(key for key in volume if key != "name")
        raise Unsupported(f"a test node has no volume of kind {kinds}")
    mode = volume["projected"].get("defaultMode", _DEFAULT_MODE)
    files: dict[str, _File] = {}
    for source in volume["projected"].get("sources") or ():
        (kind, options), *_ = source.items()
        if kind == "serviceAccountToken":
            own = 0o600 if keeps_to_itself else mode
            files[options["path"]] = _File(contents.token(options).encode(), own)
        elif kind in SOURCES:
            files |= _entries(pod, kind, options, contents, mode)
        else:
            raise Unsupported(f"a test node has no projection of {kind}")
    return files


def _entries(pod: Object, kind: str, source: Object, contents: Contents, mode: int) -> dict[str, _File]:
    if kind == "downwardAPI":
        return {
            item["path"]: _File(fields.field(pod, item["fieldRef"]["fieldPath"]).encode(), item.get("mode", mode))
            for item in source.get("items") or ()
        }
    name = source.get("secretName") or source.get("name") or ""
    try:
        if kind == "secret":
            entries = fields.secret_bytes(contents.lookups.secret(name))
        else:
            entries = fields.config_map_bytes(contents.lookups.config_map(name))
    except NotThere:
        if source.get("optional"):
            return {}
        raise
    return _chosen(entries, source, name, mode)


def _chosen(entries: Mapping[str, bytes], source: Object, name: str, mode: int) -> dict[str, _File]:
    if not source.get("items"):
        return {key: _File(text, mode) for key, text in entries.items()}
    chosen = {}
    for item in source["items"]:
        if item["key"] in entries:
            chosen[item["path"]] = _File(entries[item["key"]], item.get("mode") or mode)
        elif not source.get("optional"):
            raise NotThere(f"references non-existent key {item['key']} of {name}")
    return chosen


def _write(target: Path, files: Mapping[str, _File]) -> None:
    moment = target / "..2000_01_01_00_00_00.000000001"
    moment.mkdir(parents=True)
    for folder in (target, moment):
        folder.chmod(0o755)
    for name, file in files.items():
        path = moment / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.text)
        path.chmod(file.mode)
    (target / "..data").symlink_to(moment.name)
    for top in sorted({name.split("/")[0] for name in files}):
        (target / top).symlink_to(f"..data/{top}")


def _give_to(target: Path, group: int | None, mask: int) -> None:
    """Let a pod's group in, as its `fsGroup` asks: it owns everything, may search folders, and what is new is its."""
    if group is None:
        return
    for path in (target, *target.rglob("*")):
        os.lchown(path, -1, group)
        if path.is_symlink():
            continue
        extra = mask | (stat.S_ISGID | _SEARCH if path.is_dir() else 0)
        path.chmod(stat.S_IMODE(path.stat().st_mode) | extra)
