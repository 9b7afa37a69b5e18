"""Property values in the types that their schema asks for, and the errors that only a schema can see.

Templates write numbers and booleans as text as often as not; what is compared and sent has the schema's type.
Expressions and values known only after apply pass through untouched: they are coerced once they are known. A type
without a schema is taken as it is. What is in a record was accepted once, so it is coerced without complaint.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.schema import Kind, Pointer, Shape, schema_for
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.values import UNKNOWN, Expression, Props, Unknown
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.engines.cloudformation.schema import TypeSchema
    from stackhold.model.ids import LogicalId, TypeName

_LONGEST: Final = 300
"""How many characters of a text may be a number: more are none that a service takes."""
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WORDS: Final = {
    Kind.STRING: "text",
    Kind.INTEGER: "an integer",
    Kind.NUMBER: "a number",
    Kind.BOOLEAN: "true or false",
    Kind.LIST: "a list",
    Kind.SET: "a list",
    Kind.OBJECT: "a map",
    Kind.MAP: "a map",
}


class PropertyError(InputError):
    """What is wrong with a resource's properties. `property` is the outermost name of the first that is wrong."""

    def __init__(self, message: str, *, of: str) -> None:
        """`of` begins with the place of what is wrong: `Tags.0.Key must be text`."""
        super().__init__(message)
        self.property = of.partition(" ")[0].partition(".")[0]


def coerce(type_name: TypeName, properties: Props, *, logical_id: LogicalId) -> Props:
    """The properties of a template in their schema's types; raises one `InputError` for all that cannot be.

    Wrong are: a property that the type does not have, one that it needs and lacks, one that only AWS sets, and a
    value of another kind.
    """
    schema = schema_for(type_name)
    if schema is None:
        return dict(properties)
    wrong: list[str] = []
    coerced = _object(schema.properties, properties, (), wrong)
    wrong += [f"{name} is required and missing" for name in sorted(schema.required - properties.keys())]
    wrong += [f"{name} is set by AWS and cannot be given" for name in _read_only(schema, properties)]
    if wrong:
        raise PropertyError(f"{logical_id} ({type_name}): " + "; ".join(wrong), of=wrong[0])
    return coerced


def coerce_recorded(type_name: TypeName, properties: Props) -> Props:
    """The properties of a record, or of AWS's answer, in their schema's types as far as that works."""
    schema = schema_for(type_name)
    return dict(properties) if schema is None else _object(schema.properties, properties, (), [])


def _value(shape: Shape, value: Any, path: Pointer, wrong: list[str]) -> Any:
    """One value; what cannot be coerced is returned as it is, with an entry in `wrong`."""
    if isinstance(value, Expression | Unknown) or shape.kind in (Kind.ANY, Kind.DOCUMENT):
        return value
    match shape.kind:
        case Kind.OBJECT if isinstance(value, dict):
            return _object(shape, value, path, wrong)
        case Kind.MAP if isinstance(value, dict):
            return {name: _value(shape.item, inner, (*path, name), wrong) for name, inner in value.items()}
        case Kind.LIST | Kind.SET if isinstance(value, list):
            return [_value(shape.item, inner, (*path, str(at)), wrong) for at, inner in enumerate(value)]
        case Kind.MAP if isinstance(value, str) and shape.item.kind is Kind.ANY:
            return value
        case _:
            scalar = _scalar(shape.kind, value)
            if scalar is UNKNOWN:
                wrong.append(f"{'.'.join(path)} must be {_WORDS[shape.kind]}")
                return value
            return scalar


def _object(shape: Shape, value: Props, path: Pointer, wrong: list[str]) -> Props:
    made: Props = {}
    for name, inner in value.items():
        member = shape.member(name)
        if member is None:
            if not shape.is_open:
                wrong.append(_unknown_property(shape, name, path))
            made[name] = inner
        else:
            made[name] = _value(member, inner, (*path, name), wrong)
    return made


def _scalar(kind: Kind, value: Any) -> Any:
    """A scalar in the type asked for; `UNKNOWN` when it cannot be."""
    if not isinstance(value, str | int | float):
        return UNKNOWN
    match kind:
        case Kind.STRING:
            return str(value).lower() if isinstance(value, bool) else str(value)
        case Kind.BOOLEAN:
            return _boolean(value)
        case Kind.INTEGER | Kind.NUMBER if not isinstance(value, bool):
            return _number(value, whole=kind is Kind.INTEGER)
        case _:
            return UNKNOWN


def _boolean(value: str | float) -> Any:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(str(value).lower(), UNKNOWN)


def _number(value: str | float, *, whole: bool) -> Any:
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            return UNKNOWN
        if _INTEGER.fullmatch(text):
            return int(text)
        value = float(text)
        if not isfinite(value):
            return UNKNOWN
    if isinstance(value, float) and whole:
        return int(value) if value.is_integer() else UNKNOWN
    return value


def _unknown_property(shape: Shape, name: str, path: Pointer) -> str:
    near = did_you_mean(name, shape.names)
    meant = f"; {near[0].lower()}{near[1:]}" if near else ""
    return f"{'.'.join((*path, name))} is no property of it{meant}"


def _read_only(schema: TypeSchema, properties: Props) -> Iterator[str]:
    """The places of a template that only AWS may set. Some schemas list one that may be given at creation too."""
    settable = {*schema.create_only, *schema.write_only, *((name,) for name in schema.required)}
    for pointer in schema.read_only:
        if pointer not in settable and any(True for _ in places(properties, pointer)):
            yield ".".join(pointer)


def places(value: Any, pointer: Pointer) -> Iterator[Any]:
    """Every value that a pointer of a schema names."""
    if not pointer:
        yield value
        return
    head, rest = pointer[0], pointer[1:]
    if isinstance(value, list):
        for item in value:
            yield from places(item, rest if head == "*" else pointer)
    elif isinstance(value, dict):
        for inner in value.values() if head == "*" else [value[head]] if head in value else []:
            yield from places(inner, rest)
