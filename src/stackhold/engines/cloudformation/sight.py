"""What references give while planning: the record's values where they will hold, `UNKNOWN` where they may not.

Created and replaced resources are unknown altogether; one updated in place only in its volatile attributes and in
those named like a property that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.plan import Action, Route
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.model.ids import LogicalId
from stackhold.model.record import ResourceRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.plan import ResourceChange
    from stackhold.engines.cloudformation.route import Native

Attribute = Callable[[LogicalId, ResourceRecord, str], Any]
"""Reads an attribute that a record lacks; may give `UNKNOWN`."""
_MISSING: Final = object()
_STAYING: Final = frozenset({Action.UPDATE, Action.RECORD, Action.WAIT, Action.KEEP})


class Sight:
    """A `Lookup` over the changes planned so far."""

    def __init__(self, changes: Mapping[LogicalId, ResourceChange], *, attribute: Attribute, native: Native) -> None:
        """`changes` may grow: it is looked into at every lookup."""
        self._changes = changes
        self._attribute = attribute
        self._native = native
        self._read: dict[tuple[LogicalId, str], Any] = {}

    def lookup(self, logical_id: LogicalId, attribute: str | None) -> Any:
        """The value of a reference as far as it is known."""
        change = self._changes.get(logical_id)
        recorded = change.recorded if change else None
        if change is None or recorded is None or change.action not in _STAYING:
            return UNKNOWN
        handler = self._native(recorded.type) if change.route is Route.NATIVE else None
        if attribute is None:
            if handler is None:
                return recorded.physical_id
            return handler.ref(recorded.physical_id, dict(recorded.properties), recorded.attributes)
        volatile = handler.volatile_attributes if handler else frozenset[str]()
        if change.action is Action.UPDATE and (attribute in volatile or _is_changing(change, attribute)):
            return UNKNOWN
        value = _find(recorded.attributes, attribute)
        return self._live(logical_id, recorded, attribute) if value is _MISSING else value

    def _live(self, logical_id: LogicalId, recorded: ResourceRecord, attribute: str) -> Any:
        key = (logical_id, attribute)
        if key not in self._read:
            self._read[key] = self._attribute(logical_id, recorded, attribute)
        return self._read[key]


def _is_changing(change: ResourceChange, attribute: str) -> bool:
    head = attribute.split(".", 1)[0]
    return any(one.path.split(".", 1)[0] == head for one in change.changes)


def _find(attributes: Mapping[str, Any], path: str) -> Any:
    """The value under a dotted name, kept flat or nested."""
    if path in attributes:
        return attributes[path]
    head, dot, rest = path.partition(".")
    inner = attributes.get(head) if dot else None
    return _find(inner, rest) if isinstance(inner, dict) else _MISSING
