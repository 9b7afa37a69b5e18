"""RFC 6902, applied for real: what the Cloud Control test server does with a patch document."""

from __future__ import annotations

import copy
from typing import Any


class PatchError(Exception):
    """The patch cannot be applied; nothing of it counts."""


def apply_patch(document: Any, operations: Any) -> Any:  # noqa: ANN401
    """A changed copy of `document`. Raises `PatchError`; the document itself is never touched."""
    if not isinstance(operations, list):
        raise PatchError("a patch is a list of operations")
    result = copy.deepcopy(document)
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("an operation is an object")
        result = _apply(result, operation)
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:  # noqa: ANN401
    path = _pointer(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, _value(operation))
        case "remove":
            return _remove(document, path)
        case "replace":
            value = _value(operation)
            return value if not path else _add(_remove(document, path), path, value)
        case "move":
            source = _pointer(operation, "from")
            if path[: len(source)] == source and path != source:
                raise PatchError("a value cannot be moved into itself")
            value = _get(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_get(document, _pointer(operation, "from"))))
        case "test":
            if not _equal(_get(document, path), _value(operation)):
                raise PatchError(f"test failed at {operation['path']}")
            return document
        case other:
            raise PatchError(f"unknown operation {other!r}")


def _pointer(operation: dict[str, Any], key: str) -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{key} must be a JSON pointer, not {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: dict[str, Any]) -> Any:  # noqa: ANN401
    if "value" not in operation:
        raise PatchError(f"{operation.get('op')} needs a value")
    return copy.deepcopy(operation["value"])


def _get(document: Any, path: list[str]) -> Any:  # noqa: ANN401
    for part in path:
        if isinstance(document, list):
            document = document[_index(part, len(document))]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        else:
            raise PatchError(f"there is no {part!r}")
    return document


def _index(part: str, length: int) -> int:
    if not (part.isascii() and part.isdigit() and (part == "0" or part[0] != "0") and int(part) < length):
        raise PatchError(f"{part!r} is no index of a list of {length}")
    return int(part)


def _add(document: Any, path: list[str], value: Any) -> Any:  # noqa: ANN401
    if not path:
        return value
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        place = len(parent) if path[-1] == "-" else _index(path[-1], len(parent) + 1)
        parent.insert(place, value)
    elif isinstance(parent, dict):
        parent[path[-1]] = value
    else:
        raise PatchError(f"nothing can be added to {parent!r}")
    return document


def _remove(document: Any, path: list[str]) -> Any:  # noqa: ANN401
    if not path:
        raise PatchError("the whole document cannot be removed")
    _get(document, path)
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        del parent[int(path[-1])]
    else:
        del parent[path[-1]]
    return document


def _equal(one: Any, other: Any) -> bool:  # noqa: ANN401
    """JSON's equality: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
