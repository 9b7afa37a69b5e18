"""Property values between template and cloud: plain data, with expressions and unknowns in between.

A template's evaluation (parameters, conditions, mappings, pseudo parameters) leaves plain JSON in which only
what needs another resource is still an expression. `resolve` turns an expression into data once the
resources it names are known; while planning, what is not known yet becomes `UNKNOWN` in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from stackhold.model.ids import LogicalId

Props = dict[str, Any]
"""A resource's properties by name. Fully resolved wherever a handler sees them."""


class Unknown:
    """The one value that is known only after apply. Compare with `is`."""

    _only: Unknown | None = None

    def __new__(cls) -> Unknown:
        """There is one."""
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        """As plans show it."""
        return "(known after apply)"


UNKNOWN: Final = Unknown()


@dataclass(frozen=True, slots=True)
class RefTo:
    """`Ref` to a resource."""

    logical_id: LogicalId


@dataclass(frozen=True, slots=True)
class AttrOf:
    """`Fn::GetAtt`."""

    logical_id: LogicalId
    attribute: str


@dataclass(frozen=True, slots=True)
class JoinOf:
    """`Fn::Join`, and `Fn::Sub` with an empty delimiter. `parts`: a list of values, or an expression that gives one."""

    delimiter: str
    parts: Any


@dataclass(frozen=True, slots=True)
class SelectOf:
    """`Fn::Select`."""

    index: Any
    items: Any


@dataclass(frozen=True, slots=True)
class SplitOf:
    """`Fn::Split`."""

    delimiter: str
    text: Any


@dataclass(frozen=True, slots=True)
class Base64Of:
    """`Fn::Base64`."""

    text: Any


Expression = RefTo | AttrOf | JoinOf | SelectOf | SplitOf | Base64Of
Lookup = Callable[[LogicalId, str | None], Any]
"""Gives a resource's `Ref` value (attribute None) or an attribute; may give `UNKNOWN`."""
