"""From a type of the API to the schema that the API server holds its objects to.

The result is a structural schema: every part has exactly one type, and nothing is allowed that is not written down,
except where any JSON is meant. There are no defaults: an absent field stays absent. Only what our types use is known
here; anything else is a mistake of ours and is refused while the schema is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from stackhold.errors import Bug
from stackhold.kube.api.shapes import INT32, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

Schema = dict[str, Any]
_VALIDATIONS = "x-kubernetes-validations"
_ANY = "x-kubernetes-preserve-unknown-fields"


def root_schema(kind: type[Shape]) -> Schema:
    """The schema of a whole object of a kind, with what every object has."""
    found = _of_shape(kind)
    found["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **found["properties"],
    }
    return found


def _of_shape(shape: type[Shape]) -> Schema:
    info = inspect.type_info(shape)
    if not isinstance(info, inspect.StructType):
        raise Bug(f"{shape.__name__} is no type of the API")
    found: Schema = {
        "description": _first_paragraph(shape),
        "type": "object",
        "properties": {field.encode_name: _of(field.type) for field in info.fields},
    }
    required = sorted(field.encode_name for field in info.fields if field.required)
    if required:
        found["required"] = required
    if shape.at_least:
        found["minProperties"] = shape.at_least
    if shape.rules:
        found[_VALIDATIONS] = [rule.document() for rule in shape.rules]
    return found


def _of(info: inspect.Type) -> Schema:
    match info:
        case inspect.Metadata():
            return _with_extra(_of(info.type), info.extra_json_schema or {})
        case inspect.UnionType():
            return _of_union([each for each in info.types if not isinstance(each, inspect.NoneType)])
        case inspect.StructType() if issubclass(info.cls, Shape):
            return _of_shape(info.cls)
        case inspect.LiteralType():
            return {"type": "string", "enum": list(info.values)}
        case inspect.VarTupleType():
            return _bounded({"type": "array", "items": _of(info.item_type)}, info, "Items")
        case inspect.DictType():
            return _bounded({"type": "object", **_of_values(info.value_type)}, info, "Properties")
        case inspect.AnyType():
            return {_ANY: True}
        case _:
            return _of_scalar(info)


def _of_scalar(info: inspect.Type) -> Schema:
    match info:
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return _of_int(info)
        case inspect.StrType():
            found = _bounded({"type": "string"}, info, "Length")
            return {**found, "pattern": info.pattern} if info.pattern else found
        case _:
            raise Bug(f"the API's schema cannot say {info}")


def _of_union(kinds: Sequence[inspect.Type]) -> Schema:
    """One type that may be absent, or a whole number or text."""
    if len(kinds) == 1:
        return _of(kinds[0])
    if {type(each) for each in kinds} == {inspect.IntType, inspect.StrType}:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    raise Bug(f"the API's schema cannot say that a value is one of {kinds}")


def _of_values(info: inspect.Type) -> Schema:
    """The values of a map: all of one type, or any JSON."""
    values = _of(info)
    return values if values == {_ANY: True} else {"additionalProperties": values}


def _of_int(info: inspect.IntType) -> Schema:
    found: Schema = {"type": "integer", "format": "int64" if info.le is None or info.le > INT32 else "int32"}
    if info.ge is not None:
        found["minimum"] = info.ge
    if info.le is not None and info.le < INT32:
        found["maximum"] = info.le
    return found


def _bounded(schema: Schema, info: inspect.VarTupleType | inspect.DictType | inspect.StrType, what: str) -> Schema:
    if info.min_length:
        schema[f"min{what}"] = info.min_length
    if info.max_length is not None:
        schema[f"max{what}"] = info.max_length
    return schema


def _with_extra(schema: Schema, extra: dict[str, Any]) -> Schema:
    """A place may add rules to those of the type that stands there; everything else of it replaces."""
    rules = [*schema.get(_VALIDATIONS, []), *extra.get(_VALIDATIONS, [])]
    return {**schema, **extra, **({_VALIDATIONS: rules} if rules else {})}


def _first_paragraph(shape: type[Shape]) -> str:
    """The type's docstring, which is written for the API's readers."""
    return " ".join((shape.__doc__ or "").strip().split("\n\n")[0].split())
