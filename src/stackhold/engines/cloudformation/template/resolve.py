"""From expressions to data: what a property is, once the resources it names are known.

Evaluation has left expressions only where a resource is named. `resolve` asks `lookup` for each; what is not known
yet becomes `UNKNOWN`: the whole of a scalar that is made from it, one place in a list or map. Pure.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.values import (
    UNKNOWN,
    AttrOf,
    Base64Of,
    Expression,
    JoinOf,
    Lookup,
    RefTo,
    SelectOf,
    SplitOf,
)
from stackhold.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.ids import LogicalId


def is_expression(value: Any) -> bool:
    """Whether this very value stands for something that another resource has."""
    return isinstance(value, Expression)


def as_text(value: Any) -> str:
    """A scalar as functions and outputs use it: booleans in lower case. Raises `TemplateError` for lists and maps."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise TemplateError(f"{_kind(value)} cannot be put into text")


def resolve(value: Any, lookup: Lookup) -> Any:
    """Plain data for a value that may hold expressions.

    Raises `TemplateError` when a function meets a value that it cannot use, such as an index past the end.
    """
    if isinstance(value, dict):
        return {key: resolve(item, lookup) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve(item, lookup) for item in value]
    if isinstance(value, RefTo):
        return lookup(value.logical_id, None)
    if isinstance(value, AttrOf):
        return lookup(value.logical_id, value.attribute)
    if isinstance(value, JoinOf | SelectOf | SplitOf | Base64Of):
        return _apply(value, lookup)
    return value


def _apply(value: JoinOf | SelectOf | SplitOf | Base64Of, lookup: Lookup) -> Any:
    if isinstance(value, JoinOf):
        return join(value.delimiter, resolve(value.parts, lookup))
    if isinstance(value, SelectOf):
        return select(resolve(value.index, lookup), resolve(value.items, lookup))
    text = resolve(value.text, lookup)
    if text is UNKNOWN:
        return UNKNOWN
    return split(value.delimiter, text) if isinstance(value, SplitOf) else encode(text)


def join(delimiter: str, parts: Any) -> Any:
    """`Fn::Join` on data; `UNKNOWN` when a part is."""
    if parts is UNKNOWN:
        return UNKNOWN
    if not isinstance(parts, list):
        raise TemplateError(f"Fn::Join needs a list, not {_kind(parts)}")
    if any(part is UNKNOWN for part in parts):
        return UNKNOWN
    return delimiter.join(as_text(part) for part in parts)


def select(index: Any, items: Any) -> Any:
    """`Fn::Select` on data; `UNKNOWN` when the index or that item is."""
    if index is UNKNOWN or items is UNKNOWN:
        return UNKNOWN
    if not isinstance(items, list):
        raise TemplateError(f"Fn::Select needs a list, not {_kind(items)}")
    place = whole_number(index)
    if place is None:
        raise TemplateError(f"Fn::Select needs a whole number as index, not {index!r}")
    if place >= len(items):
        raise TemplateError(f"Fn::Select: index {place} is past the end of a list of {len(items)}")
    return items[place]


def whole_number(value: Any) -> int | None:
    """An index written as a number or as text; None when it is neither, or negative."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        return int(value)
    return None


def split(delimiter: str, text: Any) -> list[str]:
    """`Fn::Split` on data. Without a match one item; empty parts stay."""
    if isinstance(text, list | dict):
        raise TemplateError(f"Fn::Split needs text, not {_kind(text)}")
    return as_text(text).split(delimiter)


def encode(text: Any) -> str:
    """`Fn::Base64` on data."""
    return base64.b64encode(as_text(text).encode()).decode("ascii")


def references(value: Any) -> frozenset[tuple[LogicalId, str | None]]:
    """Every resource that a value names, with the attribute asked of it (None for `Ref`)."""
    return frozenset((target, attribute) for _, target, attribute in reference_paths(value))


def reference_paths(value: Any, path: str = "") -> Iterator[tuple[str, LogicalId, str | None]]:
    """The same with the dotted path at which each stands; functions add nothing to a path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from reference_paths(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from reference_paths(item, f"{path}.{place}" if path else str(place))
    elif isinstance(value, RefTo):
        yield path, value.logical_id, None
    elif isinstance(value, AttrOf):
        yield path, value.logical_id, value.attribute
    elif isinstance(value, JoinOf | SelectOf | SplitOf | Base64Of):
        for inner in _operands(value):
            yield from reference_paths(inner, path)


def _operands(value: JoinOf | SelectOf | SplitOf | Base64Of) -> list[Any]:
    if isinstance(value, JoinOf):
        return list(value.parts) if isinstance(value.parts, list) else [value.parts]
    if isinstance(value, SelectOf):
        items = list(value.items) if isinstance(value.items, list) else [value.items]
        return [value.index, *items]
    return [value.text]


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a map"
    return f"{value!r}"
