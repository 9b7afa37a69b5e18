"""A file of parameters as data: JSON or YAML, with every scalar left as text and no key given twice.

Read with the readers' own types switched off, so that `012` stays `012`. What cannot be used is an `InputError` that
names the file; values are never in its text, since they may be secrets.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

import yaml

from stackhold.errors import InputError
from stackhold.ports.named_file import Unreadable, read_named_file

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

MAX_BYTES: Final = 1024 * 1024


class _Twice(ValueError):
    """A key that stands twice in one object."""


def read_document(path: Path) -> object:
    """What a file of parameters holds; raises `InputError`."""
    text = _read(path)
    read = _json if path.suffix == ".json" or text.lstrip().startswith(("{", "[")) else _yaml
    try:
        return read(path, text)
    except RecursionError as error:
        raise InputError(f"{path}: it is nested too deeply for a file of parameters") from error
    except _Twice as error:
        raise InputError(f"{path}: {error}") from error


def _read(path: Path) -> str:
    try:
        return read_named_file(path, limit=MAX_BYTES).decode("utf-8-sig")
    except Unreadable as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be read: it is not UTF-8 text") from error


def _json(path: Path, text: str) -> object:
    def refuse(name: str) -> NoReturn:
        raise InputError(f"{path}: it is not valid JSON: {name} is no number of JSON")

    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}:{error.colno}: it is not valid JSON: {error.msg}") from error


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _yaml(path: Path, text: str) -> object:
    try:
        return yaml.load(text, Loader=_OnceEach)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: it is not valid YAML: {' '.join(str(error).split())}") from error


class _OnceEach(yaml.BaseLoader):
    """Every scalar as text, and no key twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ANN401
        """A map whose keys differ."""
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in seen:
                    raise _Twice(f"line {key.start_mark.line + 1}: the key {key.value!r} stands twice in one map")
                seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep=deep)
