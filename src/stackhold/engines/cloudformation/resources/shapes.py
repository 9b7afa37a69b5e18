"""Small turns between a template's shapes and the services': documents, texts, what differs.

Nothing here knows a service or makes a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.resources.documents import as_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def document(value: Any) -> Any:
    """A document of an answer as data; None for the empty text that says that there is none."""
    return None if value == "" else as_data(value)


def text(value: Any) -> str:
    """A scalar as an attribute map takes it: booleans in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def present(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Without the keys that are None."""
    return {key: value for key, value in mapping.items() if value is not None}


def chosen(mapping: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The named keys that are there."""
    return {name: mapping[name] for name in names if mapping.get(name) is not None}


def differing(old: Mapping[str, Any], new: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Which of the named properties an update must send, removed ones included; sorted."""
    return sorted(name for name in names if old.get(name) != new.get(name))


def renamed(mapping: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """With these keys called otherwise. Others stay, so that a service refuses what it does not know
    instead of our dropping it silently."""
    return {names.get(key, key): value for key, value in mapping.items() if value is not None}


def like(declared: Any, seen: Any) -> Any:
    """`seen` without the empty or false fields that a service adds to what was declared.

    Only inside of objects that were declared, and only where the declaration leaves the field open: a service
    that spells out a default is no difference, a value that somebody set is one.
    """
    if isinstance(declared, dict) and isinstance(seen, dict):
        return {
            key: like(declared.get(key), value) for key, value in seen.items() if key in declared or not _is_idle(value)
        }
    if isinstance(declared, list) and isinstance(seen, list) and len(declared) == len(seen):
        return [like(one, other) for one, other in zip(declared, seen, strict=True)]
    return seen


def _is_idle(value: Any) -> bool:
    return value is None or value is False or value == "" or value == [] or value == {}
