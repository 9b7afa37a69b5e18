"""Where two sets of properties differ, and what each difference does to the resource.

Properties of a record are compared with what is wanted: a difference is made in place, by replacement, or in a way
that is known only after apply. Values are read as their schema means them (`meaning.py`). Absent, an empty list and
empty text are three different things. What AWS itself has is compared in `observed.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.coerce import coerce_recorded, places
from stackhold.engines.cloudformation.documents import canonical, parsed, sort_key
from stackhold.engines.cloudformation.meaning import has_unknown, is_same, meaning, tag_map, tags_at
from stackhold.engines.cloudformation.plan import ABSENT, Effect, PropertyChange
from stackhold.engines.cloudformation.schema import ANY, ANY_ITEM, Kind, Pointer, Shape, schema_for, touches
from stackhold.engines.cloudformation.values import UNKNOWN, Props

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.schema import TypeSchema
    from stackhold.model.ids import TypeName
    from stackhold.model.record import ResourceRecord

Difference = tuple[Pointer, Any, Any]


def diff_properties(
    type_name: TypeName,
    old: Props,
    new: Props,
    *,
    handler: Handler | None = None,
    recorded: ResourceRecord | None = None,
) -> tuple[PropertyChange, ...]:
    """Every place where `new` differs from `old`, with what it does; `new` may hold `UNKNOWN`.

    `handler` is the native one, where it carries the resource out: it decides what the schema leaves open. `recorded`
    tells what AWS has in properties that the template left open: naming that very value is no change.
    """
    schema = schema_for(type_name)
    old = _without_named(schema, coerce_recorded(type_name, old), new, recorded)
    found = list(differences(schema, old, new))
    if not found:
        return ()
    judge = _Judge(schema, old, new, handler, frozenset(path[0] for path, _, _ in found))
    return tuple(
        PropertyChange(path=".".join(path), old=before, new=after, effect=judge.effect(path, after))
        for path, before, after in found
    )


def differences(schema: TypeSchema | None, old: Props, new: Props) -> Iterator[Difference]:
    """The places, as deep as both sides allow: list items by position, whole lists where order means nothing."""
    for name in _all_names(old, new):
        shape = schema.properties.member(name) if schema else None
        yield from _between(shape or ANY, old.get(name, ABSENT), new.get(name, ABSENT), (name,), tags_at(schema))


class _Judge:
    """What a difference does to its resource, by schema and handler."""

    def __init__(
        self, schema: TypeSchema | None, old: Props, new: Props, handler: Handler | None, changed: frozenset[str]
    ) -> None:
        self._schema = schema
        self._old = old
        self._new = new
        self._handler = handler
        self._changed = changed

    def effect(self, path: Pointer, after: Any) -> Effect:
        """The strongest that applies."""
        schema = self._schema
        if schema is None:
            return Effect.UPDATE
        if not schema.has_update:
            return Effect.MAY_REPLACE if has_unknown(after) else Effect.REPLACE
        effects = {self._of_pointer(pointer) for pointer in schema.create_only if touches(pointer, path)}
        if Effect.REPLACE in effects:
            return Effect.REPLACE
        if Effect.MAY_REPLACE in effects:
            return Effect.MAY_REPLACE
        if any(touches(pointer, path) for pointer in schema.conditional):
            return self._conditional()
        return Effect.UPDATE

    def _of_pointer(self, pointer: Pointer) -> Effect:
        """What a create-only place asks for: nothing if it is the same, whatever around it changed."""
        if _is_unknown_at(self._new, pointer):
            return Effect.MAY_REPLACE
        before, after = (sort_key(self._at(side, pointer)) for side in (self._old, self._new))
        return Effect.UPDATE if before == after else Effect.REPLACE

    def _at(self, properties: Props, pointer: Pointer) -> list[Any]:
        assert self._schema is not None
        shape = self._schema.shape_at(pointer) or ANY
        is_tags = pointer == self._schema.tag_property
        found = [meaning(shape, value, is_tags=is_tags) for value in places(properties, pointer)]
        return sorted(found, key=sort_key) if ANY_ITEM in pointer else found

    def _conditional(self) -> Effect:
        if self._handler is None or any(has_unknown(self._new.get(name)) for name in self._changed):
            return Effect.MAY_REPLACE
        match self._handler.replaces(self._old, self._new, self._changed):
            case True:
                return Effect.REPLACE
            case False:
                return Effect.UPDATE
            case None:
                return Effect.MAY_REPLACE


def _between(shape: Shape, old: Any, new: Any, path: Pointer, at_tags: Pointer) -> Iterator[Difference]:
    is_tags = path == at_tags
    if is_same(shape, old, new, is_tags=is_tags):
        return
    if is_tags and isinstance(tags := tag_map(new), dict) and isinstance(before := tag_map(old), dict):
        yield from _members(Shape(Kind.MAP), before, tags, path, at_tags)
    elif shape.kind is Kind.DOCUMENT and isinstance(parsed(old), dict) and isinstance(parsed(new), dict):
        read = parsed if has_unknown(parsed(new)) else canonical
        yield from _members(ANY, read(old), read(new), path, at_tags)
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from _members(shape, old, new, path, at_tags)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new) and shape.kind is not Kind.SET:
        for at, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _between(shape.item, one, other, (*path, str(at)), at_tags)
    else:
        yield path, old, new


def _members(
    shape: Shape, old: Mapping[str, Any], new: Mapping[str, Any], path: Pointer, at_tags: Pointer
) -> Iterator[Difference]:
    for name in _all_names(old, new):
        inner = shape.member(name) or ANY
        yield from _between(inner, old.get(name, ABSENT), new.get(name, ABSENT), (*path, name), at_tags)


def _all_names(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return [*old, *(name for name in new if name not in old)]


def _is_unknown_at(value: Any, pointer: Pointer) -> bool:
    """Whether what a pointer names is not wholly known: the value, a part of it, or something around it."""
    if value is UNKNOWN:
        return True
    if not pointer:
        return has_unknown(value)
    head, rest = pointer[0], pointer[1:]
    if isinstance(value, list):
        return any(_is_unknown_at(item, rest if head == ANY_ITEM else pointer) for item in value)
    if isinstance(value, dict):
        inner = list(value.values()) if head == ANY_ITEM else [value[head]] if head in value else []
        return any(_is_unknown_at(item, rest) for item in inner)
    return False


def _without_named(schema: TypeSchema | None, old: Props, new: Props, recorded: ResourceRecord | None) -> Props:
    """`old`, with what the template now names although AWS has it already: a generated name given as it is."""
    if schema is None or recorded is None:
        return old
    names = {pointer[0] for pointer in schema.create_only if len(pointer) == 1}
    found = {name: new[name] for name in names & new.keys() - old.keys() if _has_already(recorded, name, new[name])}
    return {**old, **found}


def _has_already(recorded: ResourceRecord, name: str, value: Any) -> bool:
    if has_unknown(value):
        return False
    there = [source[name] for source in (recorded.observed or {}, recorded.attributes) if name in source]
    return sort_key(value) in {sort_key(one) for one in [*there, recorded.physical_id]}
