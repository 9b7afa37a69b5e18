"""The properties that a resource is to have: references looked up, literals coerced, stack tags put below its own.

Used while planning, when some values are still unknown, and again by the run that carries the plan out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.coerce import coerce
from stackhold.engines.cloudformation.meaning import has_unknown, tag_map
from stackhold.engines.cloudformation.schema import Kind, schema_for
from stackhold.engines.cloudformation.tag_rules import check_tags
from stackhold.engines.cloudformation.template.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.schema import TypeSchema
    from stackhold.engines.cloudformation.values import Lookup, Props
    from stackhold.model.ids import LogicalId, TypeName

_AT_LAUNCH: Final = "PropagateAtLaunch"
"""Only the tags of Auto Scaling have it, and must have it."""


def wanted_properties(
    type_name: TypeName,
    logical_id: LogicalId,
    properties: Props,
    lookup: Lookup,
    *,
    stack_tags: Mapping[str, str],
) -> Props:
    """What to compare, send and record. Raises `TemplateError` and `InputError`.

    Stack tags become part of it where the type's tags can be changed in place, so that changing or removing them is
    a change like any other. Where they cannot, they go along with the create only and never cause a replacement.
    """
    resolved = resolve(properties, lookup)
    coerced = coerce(type_name, resolved, logical_id=logical_id)
    check_tags(type_name, coerced, logical_id=logical_id)
    schema = schema_for(type_name)
    if not stack_tags or schema is None or not _takes_tags_later(schema):
        return coerced
    return _with_tags(schema, coerced, stack_tags)


def _takes_tags_later(schema: TypeSchema) -> bool:
    """Whether tags can be changed without replacing the resource."""
    place = schema.tag_property
    if place is None or len(place) != 1 or not schema.tags_updatable or not schema.has_update:
        return False
    return not any(pointer[:1] == place for pointer in schema.create_only)


def _with_tags(schema: TypeSchema, properties: Props, stack_tags: Mapping[str, str]) -> Props:
    assert schema.tag_property is not None
    name = schema.tag_property[0]
    shape = schema.properties.member(name)
    own = properties.get(name)
    if shape is None or (has_unknown(own) and tag_map(own) is None):
        return properties
    if shape.kind in (Kind.LIST, Kind.SET):
        if not {"Key", "Value"} <= set(shape.item.names) or not (own is None or isinstance(own, list)):
            return properties
        more = {_AT_LAUNCH: False} if _AT_LAUNCH in shape.item.names else {}
        return {**properties, name: _below(own or [], stack_tags, more)}
    if own is None or isinstance(own, dict):
        return {**properties, name: {**stack_tags, **(own or {})}}
    return properties


def _below(own: list[Any], stack_tags: Mapping[str, str], more: Mapping[str, Any]) -> list[Any]:
    keys = {tag.get("Key") for tag in own if isinstance(tag, dict)}
    return [*own, *({"Key": key, "Value": value, **more} for key, value in stack_tags.items() if key not in keys)]
