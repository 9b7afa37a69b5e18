"""What tags may not be: keys that belong to AWS or to us, keys that are there twice, tags without key or value.

Every service refuses these in its own words, half-way through a deploy, or takes the last of two; so the plan does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.coerce import PropertyError
from stackhold.engines.cloudformation.schema import Kind, schema_for
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackhold.engines.cloudformation.schema import TypeSchema
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, TypeName

_RESERVED: Final = {"aws:": "AWS", "stackhold:": "stackhold"}


def refuse_reserved_keys(tags: Mapping[str, str], *, given_by: str) -> None:
    """Raise `InputError` for tags of the whole stack that are not the user's to set."""
    for key in tags:
        if problem := _key_problem(key):
            raise InputError(f"{given_by}: {problem}", hint="Choose another key.")


def check_tags(type_name: TypeName, properties: Props, *, logical_id: LogicalId) -> None:
    """Raise one `InputError` for all that is wrong with a resource's own tags, as far as they are known."""
    schema = schema_for(type_name)
    place = schema.tag_property if schema is not None else None
    if schema is None or place is None or len(place) != 1:
        return
    name, tags = place[0], properties.get(place[0])
    wrong = list[str]()
    if isinstance(tags, dict):
        wrong += [f"{name}.{key}: {problem}" for key in tags if (problem := _key_problem(key))]
    elif isinstance(tags, list) and {"Key", "Value"} <= _members(schema, name):
        wrong += _wrong_in_list(name, tags, needs_value=schema.tags_need_value)
    if wrong:
        raise PropertyError(f"{logical_id} ({type_name}): " + "; ".join(wrong), of=f"{name} ")


def _members(schema: TypeSchema, name: str) -> set[str]:
    shape = schema.properties.member(name)
    return set(shape.item.names) if shape is not None and shape.kind in (Kind.LIST, Kind.SET) else set()


def _wrong_in_list(name: str, tags: Iterable[Any], *, needs_value: bool) -> Iterator[str]:
    seen = set[str]()
    for at, tag in enumerate(tags):
        if not isinstance(tag, dict):
            continue
        key = tag.get("Key")
        if "Key" not in tag:
            yield f"{name}.{at} has no Key"
        if needs_value and "Value" not in tag:
            yield f"{name}.{at}{f' ({key})' if isinstance(key, str) else ''} has no Value"
        if isinstance(key, str):
            if problem := _key_problem(key):
                yield f"{name}.{at}: {problem}"
            if key in seen:
                yield f"{name}.{at} has the key {key!r} a second time"
            seen.add(key)


def _key_problem(key: str) -> str:
    """What is wrong with a key; empty when nothing is. AWS reserves its prefix in any case."""
    if not key:
        return "a tag needs a key"
    for prefix, owner in _RESERVED.items():
        if key.lower().startswith(prefix):
            return f"the tag {key!r} begins with {prefix}, which is reserved for {owner}"
    return ""
