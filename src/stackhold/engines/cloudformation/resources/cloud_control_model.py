"""What Cloud Control is sent and what it answers, as values: the desired state, the patch, the model that was read.

Pure. A patch works on whole top-level properties: Cloud Control applies it to what its read handler gives, where
positions in lists may differ from ours. Create-only properties are never in one; write-only ones always are, since
the state that a patch starts from lacks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.resources import tags
from stackhold.engines.cloudformation.schema import ANY_ITEM, Kind, Pointer, TypeSchema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Want
    from stackhold.engines.cloudformation.values import Props

_AT_LAUNCH: Final = "PropagateAtLaunch"
"""Only Auto Scaling's tags have it, and must have it."""


@dataclass(frozen=True, slots=True)
class TagShape:
    """How a type takes its tags: in which top-level property, and whether as a map or as a list of Key and Value."""

    property: str
    is_map: bool
    is_updatable: bool = True
    at_launch: bool = False

    def put(self, values: Mapping[str, str], own: Any = None) -> Any:
        """Tags in the type's shape. `own` are the template's, whose further members are kept."""
        if self.is_map:
            return dict(values)
        extras = {str(tag.get("Key")): tag for tag in own or () if isinstance(tag, dict)}
        default = {_AT_LAUNCH: False} if self.at_launch else {}
        return [{**default, **extras.get(tag["Key"], {}), **tag} for tag in tags.as_list(values)]


def tag_shape(schema: TypeSchema | None) -> TagShape | None:
    """How a type takes tags; None when it takes none, or only in a shape of its own that must be left alone."""
    if schema is None or schema.tag_property is None or len(schema.tag_property) != 1:
        return None
    shape = schema.shape_at(schema.tag_property)
    if shape is None:
        return None
    name = schema.tag_property[0]
    if shape.kind in (Kind.MAP, Kind.DOCUMENT, Kind.ANY):
        return TagShape(name, is_map=True, is_updatable=schema.tags_updatable)
    if shape.kind in (Kind.LIST, Kind.SET) and {"Key", "Value"} <= set(shape.item.names):
        at_launch = _AT_LAUNCH in shape.item.names
        return TagShape(name, is_map=False, is_updatable=schema.tags_updatable, at_launch=at_launch)
    return None


def desired_state(want: Want, shape: TagShape | None) -> Props:
    """The properties to create with: the template's, and all three layers of tags where the type takes them."""
    if shape is None:
        return dict(want.properties)
    own = want.properties.get(shape.property)
    values = {**want.stack_tags, **tags.as_map(own), **want.tags}
    return {**want.properties, shape.property: shape.put(values, own)} if values else dict(want.properties)


def patch(
    old: Props, want: Want, current: Props, *, schema: TypeSchema | None, shape: TagShape | None
) -> list[dict[str, Any]]:
    """RFC 6902 operations that lead from `old` to `want`; `current` is what Cloud Control reads now.

    Empty when nothing is left to change.
    """
    new = want.properties
    fixed = {pointer[0] for pointer in _pointers(schema, "create_only") if len(pointer) == 1}
    hidden = {pointer[0] for pointer in _pointers(schema, "write_only")} - fixed
    names = {*old, *new} - fixed - ({shape.property} if shape else set())
    changed = {name for name in names if old.get(name, _NO) != new.get(name, _NO)}
    removed = [name for name in sorted(changed) if name not in new and name in current]
    added = [name for name in new if name in changed]
    tag_operations = _tag_patch(old, want, current, shape) if shape else []
    if not (added or removed or tag_operations):
        return []
    sent = [name for name in new if name in changed or name in hidden]
    return [
        *({"op": "add", "path": _path(name), "value": new[name]} for name in sent),
        *({"op": "remove", "path": _path(name)} for name in removed),
        *tag_operations,
    ]


def _tag_patch(old: Props, want: Want, current: Props, shape: TagShape) -> list[dict[str, Any]]:
    if not shape.is_updatable:
        return []
    own = want.properties.get(shape.property)
    there = current.get(shape.property)
    ours = tags.hidden(there) if shape.property in current else dict(want.tags)
    wanted = {**want.stack_tags, **tags.as_map(own), **ours}
    before = {**tags.visible(old.get(shape.property)), **ours}
    if wanted == tags.as_map(there) or (shape.property not in current and wanted == before):
        return []
    return [{"op": "add", "path": _path(shape.property), "value": shape.put(wanted, own)}]


def properties_of(model: Props, schema: TypeSchema | None, shape: TagShape | None) -> Props:
    """A model as a template could have written it: without read-only places, `aws:` and ownership tags."""
    found = model
    for pointer in _pointers(schema, "read_only"):
        found = _without(found, pointer)
    found = dict(found)
    if shape is not None:
        own = found.get(shape.property)
        found[shape.property] = shape.put(tags.visible(own), own)
    return found


def attributes_of(model: Props, schema: TypeSchema | None) -> dict[str, Any]:
    """What `Fn::GetAtt` may ask for, under dotted names; the whole model where no schema says."""
    if schema is None:
        return dict(model)
    found: dict[str, Any] = {}
    for name in sorted(schema.attributes):
        value = _at(model, tuple(name.split(".")))
        if value is not _NO:
            found[name] = value
    for pointer in schema.primary_id:
        value = _at(model, pointer)
        if value is not _NO:
            found.setdefault(".".join(pointer), value)
    return found


_NO: Final = object()


def _pointers(schema: TypeSchema | None, which: str) -> Iterable[Pointer]:
    found: tuple[Pointer, ...] = getattr(schema, which) if schema is not None else ()
    return found


def _path(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _at(value: Any, pointer: Pointer) -> Any:
    for part in pointer:
        if not isinstance(value, dict) or part not in value:
            return _NO
        value = value[part]
    return value


def _without(value: Any, pointer: Pointer) -> Any:
    """A copy that lacks what a pointer names; lists are entered where it says `*`."""
    head, rest = pointer[0], pointer[1:]
    if isinstance(value, list):
        return [_without(item, rest) for item in value] if head == ANY_ITEM and rest else value
    if not isinstance(value, dict) or head not in value:
        return value
    if not rest:
        return {key: item for key, item in value.items() if key != head}
    return {key: _without(item, rest) if key == head else item for key, item in value.items()}
