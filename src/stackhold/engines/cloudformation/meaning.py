"""One form for all property values that mean the same to AWS.

Documents by content, tags as a map without AWS's and our own, lists without their order where it means nothing.
The forms are for comparing; they are never sent. What is known only after apply stays as it is.
"""

from __future__ import annotations

from typing import Any

from stackhold.engines.cloudformation.documents import canonical, sort_key
from stackhold.engines.cloudformation.names import is_system_tag, without_system_tags
from stackhold.engines.cloudformation.plan import ABSENT
from stackhold.engines.cloudformation.schema import ANY, Kind, Pointer, Shape, TypeSchema
from stackhold.engines.cloudformation.values import UNKNOWN, Expression

_TAGS: Pointer = ("Tags",)


def is_same(shape: Shape, one: Any, other: Any, *, is_tags: bool = False) -> bool:
    """Whether two values mean the same. Absent is only itself; what is not known yet is never the same."""
    if one is ABSENT or other is ABSENT or has_unknown(one) or has_unknown(other):
        return one is ABSENT and other is ABSENT
    return sort_key(meaning(shape, one, is_tags=is_tags)) == sort_key(meaning(shape, other, is_tags=is_tags))


def meaning(shape: Shape, value: Any, *, is_tags: bool = False) -> Any:
    """One form for all values that mean the same."""
    if value is ABSENT or has_unknown(value):
        return value
    if is_tags and (tags := tag_map(value)) is not None:
        return tags
    match shape.kind:
        case Kind.DOCUMENT:
            return canonical(value)
        case Kind.LIST if isinstance(value, list):
            return [meaning(shape.item, item) for item in value]
        case Kind.SET if isinstance(value, list):
            return sorted((meaning(shape.item, item) for item in value), key=sort_key)
        case Kind.OBJECT | Kind.MAP if isinstance(value, dict):
            return {name: meaning(shape.member(name) or ANY, inner) for name, inner in value.items()}
        case _:
            return value


def tag_map(tags: Any) -> dict[str, Any] | None:
    """Tags of either spelling as a map, without AWS's and our own; None when they are no tags that can be told apart.

    A tag with more than key and value keeps all that it has.
    """
    if isinstance(tags, dict):
        return without_system_tags(tags)
    if not isinstance(tags, list):
        return None
    found: dict[str, Any] = {}
    for tag in tags:
        key = tag.get("Key") if isinstance(tag, dict) else None
        if not isinstance(key, str):
            return None
        rest = {name: value for name, value in tag.items() if name != "Key"}
        if not is_system_tag(key):
            found[key] = rest.get("Value", "") if rest.keys() <= {"Value"} else rest
    return found


def has_unknown(value: Any) -> bool:
    """Whether any part of a value is known only after apply."""
    if isinstance(value, dict):
        return any(has_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(has_unknown(inner) for inner in value)
    return value is UNKNOWN or isinstance(value, Expression)


def tags_at(schema: TypeSchema | None) -> Pointer:
    """Where a type has its tags; `Tags` where nothing says."""
    return (schema.tag_property if schema else None) or _TAGS
