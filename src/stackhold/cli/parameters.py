"""Template parameters and tags as they come from the command line: `K=V` pairs, and files.

A file is JSON or YAML, either `{K: V}` or CloudFormation's list of `ParameterKey`/`ParameterValue`. Values are text
exactly as written; a list is joined with commas. A pair on the command line wins over a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.printable import is_text
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


_MAX_LIST = 1024 * 1024
"""How long a joined list may be: aliases can make a small file a huge text."""


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
    from stackhold.cli.parameter_file import read_document

    content = read_document(path)
    if isinstance(content, list):
        content = _listed(path, content)
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
        if not is_text(text) or not is_text(str(key)):
            raise InputError(f"{path}: {key!a}: it holds half of a surrogate pair, which is no text")
        found[str(key)] = text
    return found


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        parts = [part for item in value if not isinstance(item, list) and (part := _text(item)) is not None]
        if len(parts) == len(value) and sum(map(len, parts)) <= _MAX_LIST:
            return ",".join(parts)
    return None


def _listed(path: Path, items: list[object]) -> dict[object, object]:
    found: dict[object, object] = {}
    for number, item in enumerate(items, start=1):
        if not (isinstance(item, dict) and isinstance(item.get("ParameterKey"), str) and "ParameterValue" in item):
            raise InputError(f"{path}: item {number} of the list needs ParameterKey and ParameterValue")
        if item["ParameterKey"] in found:
            raise InputError(f"{path}: item {number} of the list gives {item['ParameterKey']} a second time")
        found[item["ParameterKey"]] = item["ParameterValue"]
    return found
