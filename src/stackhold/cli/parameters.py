"""Template parameters and tags as they come from the command line: `K=V` pairs, and files.

A file is JSON or YAML, either `{K: V}` or CloudFormation's list of `ParameterKey`/`ParameterValue`. Values are text
exactly as written; a list is joined with commas. A pair on the command line wins over a file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def parse_pairs(pairs: Iterable[str], *, flag: str) -> dict[str, str]:
    """`K=V` texts by key; raises a usage error for what is no pair, or names a key twice with two values."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{flag} {pair!r} is no pair; write {flag} KEY=VALUE")
        if found.get(key, value) != value:
            raise click.UsageError(f"{flag} gives {key} twice, with two values")
        found[key] = value
    return found


def load_parameters(files: Iterable[str], pairs: Iterable[str], *, cwd: Path) -> dict[str, str]:
    """Everything given, later files over earlier ones and pairs over files."""
    given = parse_pairs(pairs, flag="--parameter")
    found: dict[str, str] = {}
    for name in files:
        found.update(read_parameters(cwd / name))
    return {**found, **given}


def read_parameters(path: Path) -> dict[str, str]:
    """The parameters in a file; raises `InputError` naming file and key."""
    content = _document(path)
    if isinstance(content, list):
        content = dict(_cloudformation_pair(path, item) for item in content)
    if not isinstance(content, dict):
        raise InputError(f"{path}: parameters are an object, or a list of ParameterKey and ParameterValue")
    parameters = content.get("Parameters") if set(content) == {"Parameters"} else None
    return _texts(path, parameters if isinstance(parameters, dict) else content)


def _texts(path: Path, content: Mapping[object, object]) -> dict[str, str]:
    found = {}
    for key, value in content.items():
        text = _text(value)
        if text is None:
            raise InputError(f"{path}: {key}: a parameter's value is text, a number, true, false, or a list of these")
        found[str(key)] = text
    return found


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        parts = [_text(item) for item in value if not isinstance(item, list)]
        if len(parts) == len(value) and None not in parts:
            return ",".join(part for part in parts if part is not None)
    return None


def _cloudformation_pair(path: Path, item: object) -> tuple[object, object]:
    if isinstance(item, dict) and isinstance(item.get("ParameterKey"), str) and "ParameterValue" in item:
        return item["ParameterKey"], item["ParameterValue"]
    raise InputError(f"{path}: each item of the list needs ParameterKey and ParameterValue; got {json.dumps(item)}")


def _document(path: Path) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{path} cannot be read: {reason}") from error
    if path.suffix == ".json" or text.lstrip().startswith(("{", "[")):
        try:
            return json.loads(text, parse_int=str, parse_float=str)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{error.lineno}:{error.colno}: it is not valid JSON: {error.msg}") from error
    import yaml

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: it is not valid YAML: {' '.join(str(error).split())}") from error
