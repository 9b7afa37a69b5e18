"""What is known of each resource while a run works: the values that references resolve to.

Starts from the record; every operation puts its outcome here before those that need it start. An attribute that
no answer has told yet is read once, when somebody asks for it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.errors import ResourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Handler, Seen
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.model.record import ResourceRecord

_MISSING = object()


class Known:
    """The resources as they are now, by logical id. Thread-safe."""

    def __init__(
        self,
        records: Mapping[LogicalId, ResourceRecord],
        *,
        handler_of: Callable[[ResourceRecord], Handler],
        read: Callable[[ResourceRecord], Seen | None],
    ) -> None:
        """`read` asks AWS for one resource; it is called at most once per resource and state."""
        self._records = dict(records)
        self._handler_of = handler_of
        self._read = read
        self._more: dict[LogicalId, Mapping[str, Any]] = {}
        self._lock = threading.Lock()

    def record(self, logical_id: LogicalId) -> ResourceRecord | None:
        """The resource as it is recorded now."""
        with self._lock:
            return self._records.get(logical_id)

    def put(self, logical_id: LogicalId, record: ResourceRecord) -> None:
        """It is now so."""
        with self._lock:
            self._records[logical_id] = record
            self._more.pop(logical_id, None)

    def drop(self, logical_id: LogicalId) -> None:
        """It is no more."""
        with self._lock:
            self._records.pop(logical_id, None)
            self._more.pop(logical_id, None)

    def lookup(self, logical_id: LogicalId, attribute: str | None) -> Any:
        """A `Lookup`: the `Ref` value (attribute None) or an attribute. Raises `ResourceFailed` when AWS has no such
        attribute, `UNKNOWN` is given for a resource that does not exist yet."""
        record = self.record(logical_id)
        if record is None:
            return UNKNOWN
        if attribute is None:
            properties = dict(record.properties)
            return self._handler_of(record).ref(record.physical_id, properties, record.attributes)
        value = _find(record.attributes, attribute)
        if value is not _MISSING:
            return value
        return attribute_of(self._read_more(logical_id, record), attribute, logical_id, record.type)

    def _read_more(self, logical_id: LogicalId, record: ResourceRecord) -> Mapping[str, Any]:
        with self._lock:
            more = self._more.get(logical_id)
        if more is None:
            seen = self._read(record)
            more = {**seen.properties, **seen.attributes} if seen else {}
            with self._lock:
                self._more[logical_id] = more
        return more


def attribute_of(attributes: Mapping[str, Any], path: str, logical_id: LogicalId, type_name: TypeName) -> Any:
    """The value under a name with dots, whether it is kept flat or nested. Raises `ResourceFailed` without one."""
    value = _find(attributes, path)
    if value is _MISSING:
        raise ResourceFailed(
            f"{logical_id} ({type_name}) has no attribute {path}: a read of the resource was asked for it, and its "
            "answer did not have it"
        )
    return value


def _find(attributes: Mapping[str, Any], path: str) -> Any:
    if path in attributes:
        return attributes[path]
    head, dot, rest = path.partition(".")
    inner = attributes.get(head) if dot else None
    return _find(inner, rest) if isinstance(inner, dict) else _MISSING
