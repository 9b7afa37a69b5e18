"""A `cdk.out` directory: which stacks it holds, where each one's template is, and what each would still need.

Reads the manifests of the assembly and of the stages nested in it. A stack that needs an asset, or context that
synthesis lacked, is refused by name, since nothing here can build or upload one.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import InputError, TemplateError
from stackhold.model.ids import Region, StackName, region_name, stack_name
from stackhold.ports.named_file import Unreadable, read_named_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_ENVIRONMENT: Final = re.compile(r"aws://([^/]+)/([^/]+)")
_STACK: Final = "aws:cloudformation:stack"
_STAGE: Final = "cdk:cloud-assembly"
_ASSETS: Final = "cdk:asset-manifest"
_MAX_BYTES: Final = 64 * 1024 * 1024
"""Of a manifest, which has every construct of an app with its metadata."""


@dataclass(frozen=True, slots=True)
class AssemblyStack:
    """One stack of an assembly."""

    name: StackName
    template_file: Path
    environment_region: Region | None
    """None when the app left it open."""
    account: str | None
    display_path: str
    """`Stage/Stack`: unique in the assembly, unlike the name."""
    depends_on: tuple[str, ...] = ()
    """Display paths of the stacks to deploy before."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    """A stack, and what its assembly says about it."""

    stack: AssemblyStack
    artifact: Mapping[str, Any]
    folder: Path
    asset_files: tuple[Path, ...]


def is_assembly(directory: Path) -> bool:
    """Whether a path is a directory with something called as an assembly's manifest is."""
    return os.path.lexists(directory / "manifest.json")


def load_assembly(directory: Path, *, only: Collection[str] | None = None) -> tuple[AssemblyStack, ...]:
    """The stacks of an assembly, those of nested stages included, in the manifest's order.

    With `only` just those of these names or display paths are given, and checked for what they would need. Raises
    `TemplateError`; `InputError` when one of `only` is not there.
    """
    manifest = _manifest(Path(directory))
    missing = [str(entry.get("key", entry)) for entry in _missing(manifest, Path(directory))]
    if missing:
        raise TemplateError(
            f"the app was synthesized without the context values {', '.join(missing)}",
            file=str(Path(directory) / "manifest.json"),
            hint="Run `cdk synth` once with access to the account, and keep its cdk.context.json.",
        )
    found = list(_stacks(Path(directory), manifest, path="", inherited=()))
    if only is not None:
        found = _select(found, only)
    for entry in found:
        _refuse_assets(entry)
    return tuple(entry.stack for entry in found)


def _select(found: list[_Found], only: Collection[str]) -> list[_Found]:
    names = {name for entry in found for name in (entry.stack.name, entry.stack.display_path)}
    unknown = [name for name in only if name not in names]
    if unknown:
        known = ", ".join(entry.stack.display_path for entry in found)
        raise InputError(f"the app has no stack {', '.join(unknown)}", hint=f"It has: {known or 'none'}.")
    return [entry for entry in found if entry.stack.name in only or entry.stack.display_path in only]


def _stacks(folder: Path, manifest: Mapping[str, Any], *, path: str, inherited: tuple[str, ...]) -> Iterator[_Found]:
    """Stacks of one assembly, then of its stages. `inherited`: what the stage as a whole depends on."""
    artifacts = _artifacts(manifest)
    members = {
        artifact_id: _members(folder, artifact_id, artifact, path) for artifact_id, artifact in artifacts.items()
    }
    asset_files = _asset_files(folder, artifacts)
    for artifact_id, artifact in artifacts.items():
        needs = dict.fromkeys(
            display for needed in _texts(artifact.get("dependencies")) for display in members.get(needed, ())
        )
        depends_on = tuple(dict.fromkeys((*inherited, *needs)))
        if artifact.get("type") == _STACK:
            stack = _stack(folder, artifact_id, artifact, path, depends_on)
            named = [file for needed in _texts(artifact.get("dependencies")) for file in asset_files.get(needed, ())]
            yield _Found(stack, artifact, folder, tuple(named))
        elif artifact.get("type") == _STAGE:
            inner = _stage_folder(folder, artifact)
            yield from _stacks(
                inner, _manifest(inner), path=_display(artifact_id, artifact, path), inherited=depends_on
            )


def _members(folder: Path, artifact_id: str, artifact: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """Display paths of the stacks that a dependency on an artifact means: itself, or all of a stage."""
    if artifact.get("type") == _STACK:
        return (_display(artifact_id, artifact, path),)
    if artifact.get("type") != _STAGE:
        return ()
    inner = _stage_folder(folder, artifact)
    stage = _display(artifact_id, artifact, path)
    return tuple(
        display
        for inner_id, inner_artifact in _artifacts(_manifest(inner)).items()
        for display in _members(inner, inner_id, inner_artifact, stage)
    )


def _stack(
    folder: Path, artifact_id: str, artifact: Mapping[str, Any], path: str, depends_on: tuple[str, ...]
) -> AssemblyStack:
    properties = _map(artifact.get("properties"))
    environment = _ENVIRONMENT.fullmatch(str(artifact.get("environment", "")))
    account, region = environment.groups() if environment else ("unknown-account", "unknown-region")
    template = properties.get("templateFile")
    if not isinstance(template, str):
        raise TemplateError(
            f"the stack {artifact_id} has no templateFile", file=str(folder / "manifest.json"), logical_id=artifact_id
        )
    return AssemblyStack(
        name=stack_name(str(properties.get("stackName") or artifact_id)),
        template_file=folder / template,
        environment_region=None if region == "unknown-region" else region_name(region),
        account=None if account == "unknown-account" else account,
        display_path=_display(artifact_id, artifact, path),
        depends_on=depends_on,
        tags={str(key): str(value) for key, value in _map(properties.get("tags")).items()},
    )


def _display(artifact_id: str, artifact: Mapping[str, Any], path: str) -> str:
    """Newer manifests give the whole path; older ones only the artifact's own id."""
    shown = artifact.get("displayName") or _map(artifact.get("properties")).get("displayName")
    if isinstance(shown, str) and shown:
        return shown
    return f"{path}/{artifact_id}" if path else artifact_id


def _refuse_assets(entry: _Found) -> None:
    template = entry.stack.template_file
    needed = dict(_needed_assets(entry))
    if not needed:
        return
    asset, source = next(iter(needed.items()))
    user = _user_of(template, asset, source)
    used = f", used by {user}" if user else ""
    more = f" and {len(needed) - 1} more" if len(needed) > 1 else ""
    raise TemplateError(
        f"the stack {entry.stack.name} needs the asset {asset} ({source}){used}{more}; assets are not supported",
        file=str(template),
    )


def _needed_assets(entry: _Found) -> Iterator[tuple[str, str]]:
    """Every asset but the template itself, with where it comes from."""
    own = entry.stack.template_file.name
    for file in entry.asset_files:
        manifest = _read(file)
        for asset_id, asset in _map(manifest.get("files")).items():
            source = _map(_map(asset).get("source"))
            shown = source.get("path") or " ".join(_texts(source.get("executable")))
            if shown != own:
                yield str(asset_id), str(shown)
        for asset_id, asset in _map(manifest.get("dockerImages")).items():
            source = _map(_map(asset).get("source"))
            yield str(asset_id), str(source.get("directory") or "a Docker image")
    for entries in _map(entry.artifact.get("metadata")).values():
        for note in _list(entries):
            if _map(note).get("type") == "aws:cdk:asset":
                data = _map(_map(note).get("data"))
                yield str(data.get("id")), str(data.get("path"))


def _user_of(template: Path, asset: str, source: str) -> str:
    """The resource whose definition names an asset: its logical id and construct path."""
    for logical_id, resource in _map(_read(template).get("Resources")).items():
        metadata = _map(_map(resource).get("Metadata"))
        if metadata.get("aws:asset:path") in (source, asset) or asset in json.dumps(resource):
            path = metadata.get("aws:cdk:path")
            return f"{logical_id} ({path})" if path else str(logical_id)
    return ""


def _asset_files(folder: Path, artifacts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for artifact_id, artifact in artifacts.items():
        file = _map(artifact.get("properties")).get("file")
        if artifact.get("type") == _ASSETS and isinstance(file, str):
            found[artifact_id] = [folder / file]
    return found


def _missing(manifest: Mapping[str, Any], folder: Path) -> Iterator[Mapping[str, Any]]:
    yield from (_map(entry) for entry in _list(manifest.get("missing")))
    for artifact in _artifacts(manifest).values():
        if artifact.get("type") == _STAGE:
            inner = _stage_folder(folder, artifact)
            yield from _missing(_manifest(inner), inner)


def _stage_folder(folder: Path, artifact: Mapping[str, Any]) -> Path:
    name = _map(artifact.get("properties")).get("directoryName")
    if not isinstance(name, str) or not name or Path(name).name != name or name in (".", ".."):
        raise TemplateError("a nested assembly has no proper directoryName", file=str(folder / "manifest.json"))
    return folder / name


def _artifacts(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(key): _map(value) for key, value in _map(manifest.get("artifacts")).items()}


def _manifest(folder: Path) -> Mapping[str, Any]:
    manifest = _read(folder / "manifest.json")
    if not isinstance(manifest.get("version"), str):
        raise TemplateError("not the manifest of a CDK assembly: it has no version", file=str(folder / "manifest.json"))
    return manifest


def _read(file: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(read_named_file(file, limit=_MAX_BYTES))
    except Unreadable as error:
        raise TemplateError(f"cannot be read: {error}", file=str(file)) from error
    except ValueError as error:
        raise TemplateError(f"not JSON: {error}", file=str(file)) from error
    except RecursionError as error:
        raise TemplateError("not JSON that can be read: it is nested too deeply", file=str(file)) from error
    if not isinstance(document, dict):
        raise TemplateError("not a JSON object", file=str(file))
    return document


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [str(each) for each in _list(value)]
