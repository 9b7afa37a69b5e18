"""What CloudFormation's resource schemas say of a type: which change replaces, what is read-only, how values look.

The data is the packaged `schemas.bin`, distilled from cfn-lint's files (MIT-0, Copyright Amazon.com, Inc. or its
affiliates) by `tools/distil_schemas.py`. Its layout: one line `stackhold-schemas-1 VERSION LENGTH LENGTH`; a deflated
index of `TYPE OFFSET LENGTH` lines; a deflated dictionary; then a deflated JSON entry per type, packed with that
dictionary. A type is read when it is first asked for. Nothing here knows a handler: what a native one adds to a
schema is passed in.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import Bug
from stackhold.model.ids import TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

Pointer = tuple[str, ...]
"""A place in the properties: names, and `*` for any item of a list."""
MAGIC: Final = "stackhold-schemas-1"
ANY_ITEM: Final = "*"
_DATA: Final = Path(__file__).with_name("schemas.bin")


class Kind(Enum):
    """What a value is."""

    STRING = "s"
    INTEGER = "i"
    NUMBER = "n"
    BOOLEAN = "b"
    DOCUMENT = "d"
    """A JSON document, given as an object or as its text."""
    MAP = "o"
    """Any keys; the values share a shape where one is known."""
    OBJECT = "p"
    """Named members."""
    LIST = "a"
    SET = "m"
    """A list whose order means nothing (`insertionOrder: false`)."""
    ANY = "*"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one value. Members and items are worked out when asked for: definitions may be recursive."""

    kind: Kind
    is_open: bool = True
    """Whether an object may have members that its schema does not name."""
    _inner: Any = None
    _definitions: Mapping[str, Any] | None = None

    @property
    def item(self) -> Shape:
        """The shape of a list's items, or of a map's values."""
        return ANY if self._inner is None else _shape(self._inner, self._definitions or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The members that an object's schema names."""
        return tuple(self._inner) if self.kind is Kind.OBJECT else ()

    def member(self, name: str) -> Shape | None:
        """The shape of one member; `None` when the schema does not name it."""
        if self.kind is not Kind.OBJECT:
            return self.item if self.kind is Kind.MAP else ANY
        raw = self._inner.get(name)
        return None if raw is None else _shape(raw, self._definitions or {})


ANY: Final = Shape(Kind.ANY)


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """What planning needs to know of one resource type."""

    type: TypeName
    create_only: tuple[Pointer, ...]
    """A change replaces the resource."""
    conditional: tuple[Pointer, ...]
    """A change may replace it; a native handler decides."""
    read_only: tuple[Pointer, ...]
    write_only: tuple[Pointer, ...]
    """Never read back."""
    primary_id: tuple[Pointer, ...]
    transforms: Mapping[Pointer, str]
    """How AWS rewrites a value (`case`, `tail` of an ARN, `cidr`, `unknown`, or several); for drift only."""
    has_handlers: bool
    """Whether Cloud Control can carry it out."""
    has_update: bool
    """Whether it can be changed at all; False only where handlers are known and none updates."""
    delete_first: bool
    """A replacement deletes the old one before it creates the new one."""
    tag_property: Pointer | None
    """Where its tags are; `None` when it takes none."""
    tags_updatable: bool
    tags_need_value: bool
    """Whether each tag of a list must have a value."""
    required: frozenset[str]
    attributes: frozenset[str]
    """What `Fn::GetAtt` may name, dotted: the read-only properties, and others that are known to work."""
    properties_are_attributes: bool
    """Whether every property is an attribute too."""
    properties: Shape
    """The whole of its properties, as an object."""
    defaults: Mapping[Pointer, Any]

    @property
    def taggable(self) -> bool:
        """Whether it takes tags."""
        return self.tag_property is not None

    def is_attribute(self, name: str) -> bool:
        """Whether `Fn::GetAtt` may name this: a read-only property, or a member of one."""
        if name in self.attributes:
            return True
        path = tuple(name.split("."))
        if not self.properties_are_attributes and not any(
            matches(pointer, path[: len(pointer)]) for pointer in self.read_only if len(pointer) < len(path)
        ):
            return False
        return self.shape_at(path) is not None

    def shape_at(self, path: Pointer) -> Shape | None:
        """The shape of the value at a path; `None` when the schema names no such place."""
        shape: Shape | None = self.properties
        for part in path:
            if shape is None:
                return None
            shape = shape.item if shape.kind in (Kind.LIST, Kind.SET) else shape.member(part)
        return shape


def schema_for(name: TypeName) -> TypeSchema | None:
    """The schema of a type; `None` for one that CloudFormation does not publish, such as a custom resource."""
    return _schema(name)


def schema_version() -> str:
    """The version of cfn-lint that the data comes from."""
    return _catalogue().version


def schema_types() -> tuple[TypeName, ...]:
    """Every type with a schema, sorted."""
    return tuple(TypeName(name) for name in _catalogue().index)


def raw_entry(name: TypeName) -> dict[str, Any] | None:
    """The packaged entry of a type as it was distilled, for the tool that compares it with its source."""
    catalogue = _catalogue()
    if name not in catalogue.index:
        return None
    offset, length = catalogue.index[name]
    entry: dict[str, Any] = json.loads(_inflate(catalogue.entries[offset : offset + length], catalogue.shared))
    return entry


def has_attribute(name: TypeName, attribute: str, *, native: frozenset[str] = frozenset()) -> bool:
    """Whether a type has an attribute: by its schema, or among those that its native handler gives.

    A type without a schema (a custom resource) answers with whatever attributes it likes.
    """
    schema = schema_for(name)
    return schema is None or attribute in native or schema.is_attribute(attribute)


def matches(pointer: Pointer, path: Pointer) -> bool:
    """Whether a pointer of a schema names exactly this place; list positions of the path match `*`."""
    return len(pointer) == len(path) and all(want in (ANY_ITEM, part) for want, part in zip(pointer, path, strict=True))


def touches(pointer: Pointer, path: Pointer) -> bool:
    """Whether a change at `path` changes what the pointer names: the place itself, one in it, or one around it."""
    shared = min(len(pointer), len(path))
    return matches(pointer[:shared], path[:shared])


@dataclass(frozen=True, slots=True)
class _Catalogue:
    version: str
    index: Mapping[str, tuple[int, int]]
    shared: bytes
    entries: bytes


@cache
def _catalogue() -> _Catalogue:
    data = _DATA.read_bytes()
    head, _, rest = data.partition(b"\n")
    magic, version, index_length, shared_length = head.decode().split(" ")
    if magic != MAGIC:
        raise Bug(f"{_DATA.name} has an unknown layout: {magic}")
    index_end, shared_end = int(index_length), int(index_length) + int(shared_length)
    index: dict[str, tuple[int, int]] = {}
    for line in _inflate(rest[:index_end]).decode().split("\n"):
        name, offset, length = line.split(" ")
        index[name] = (int(offset), int(length))
    return _Catalogue(version, index, _inflate(rest[index_end:shared_end]), rest[shared_end:])


def _inflate(data: bytes, shared: bytes = b"") -> bytes:
    return zlib.decompressobj(-15, zdict=shared).decompress(data)


@cache
def _schema(name: TypeName) -> TypeSchema | None:
    raw = raw_entry(name)
    if raw is None:
        return None
    tags = raw.get("tags", {})
    definitions = raw.get("definitions", {})
    others = raw.get("attributes", ())
    read_only = _pointers(raw, "read")
    return TypeSchema(
        type=name,
        create_only=_pointers(raw, "create"),
        conditional=_pointers(raw, "conditional"),
        read_only=read_only,
        write_only=_pointers(raw, "write"),
        primary_id=_pointers(raw, "id"),
        transforms={_pointer(text): form for text, form in raw.get("transform", {}).items()},
        has_handlers="handlers" in raw,
        has_update=raw.get("handlers") != 1,
        delete_first="deleteFirst" in raw,
        tag_property=_pointer(tags["property"]) if tags else None,
        tags_updatable=bool(tags.get("updatable")),
        tags_need_value=bool(tags.get("valued")),
        required=frozenset(raw.get("required", ())),
        attributes=frozenset(".".join(pointer) for pointer in read_only if ANY_ITEM not in pointer) | set(others),
        properties_are_attributes=others == "*",
        properties=Shape(Kind.OBJECT, "open" in raw, raw["properties"], definitions),
        defaults={_pointer(text): value for text, value in raw.get("defaults", {}).items()},
    )


def _pointers(raw: Mapping[str, Any], key: str) -> tuple[Pointer, ...]:
    return tuple(_pointer(text) for text in raw.get(key, ()))


def _pointer(text: str) -> Pointer:
    """`A/B/*/C` as a tuple. Some schemas repeat `properties` inside, or name list items with `items`."""
    return tuple(part for part in text.split("/") if part != "properties")


def _shape(raw: Any, definitions: Mapping[str, Any]) -> Shape:
    seen = 0
    while isinstance(raw, str) and raw.startswith("#"):
        raw = definitions.get(raw[1:], "*")
        seen += 1
        if seen > len(definitions):
            return ANY
    if isinstance(raw, str):
        return Shape(Kind(raw))
    if "p" in raw:
        return Shape(Kind.OBJECT, "open" in raw, raw["p"], definitions)
    if "v" in raw:
        return Shape(Kind.MAP, True, raw["v"], definitions)
    key = "m" if "m" in raw else "a"
    return Shape(Kind(key), True, raw[key], definitions)
