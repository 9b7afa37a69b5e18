"""Compares a record with what AWS has, resource by resource, without a lock and without changing anything.

Resources of one type are read together where the API can. A read that is refused makes its resources "not read",
with the reason, stops nothing else, and leaves the report incomplete: nobody may take it for "no drift". What would
fail for every resource alike, such as credentials that are no good, is an error instead.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.belonging import refuse_elsewhere
from stackhold.engines.cloudformation.bench import route_of
from stackhold.engines.cloudformation.observed import DriftDifference, diff_observed
from stackhold.engines.cloudformation.plan import ABSENT, Route
from stackhold.engines.cloudformation.reading import HandlerOf, reading_context, refuse_other_region
from stackhold.engines.cloudformation.resources.handler import Handler
from stackhold.engines.cloudformation.walk import Crew, walk
from stackhold.errors import AwsError, CloudError, ResourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Seen
    from stackhold.engines.cloudformation.route import Native
    from stackhold.model.ids import LogicalId, PhysicalId, Region, StackName, TypeName
    from stackhold.model.record import ResourceRecord, StateRecord
    from stackhold.ports.aws import Aws


_NO_READ: Final = frozenset({"UnsupportedActionException", "TypeNotFoundException"})
"""How Cloud Control says that it cannot read a type."""


class DriftStatus(StrEnum):
    """What the comparison of one resource found."""

    IN_SYNC = "in sync"
    DRIFTED = "drifted"
    DELETED = "deleted"
    NOT_COMPARED = "not compared"
    """AWS has no read for its type."""
    NOT_READ = "not read"
    """The read was refused, or not answered."""


@dataclass(frozen=True, slots=True)
class ResourceDrift:
    """One resource."""

    logical_id: LogicalId
    type: TypeName
    physical_id: PhysicalId
    status: DriftStatus
    differences: tuple[DriftDifference, ...] = ()
    not_compared: tuple[str, ...] = ()
    """Dotted paths of what AWS never shows, or shows in another form."""
    reason: str = ""
    """Why it was not compared, or not read."""


@dataclass(frozen=True, slots=True)
class DriftReport:
    """One stack, resources in the record's order."""

    stack: StackName
    region: Region
    resources: tuple[ResourceDrift, ...]

    @property
    def is_drifted(self) -> bool:
        """Whether AWS differs anywhere."""
        return any(one.status in {DriftStatus.DRIFTED, DriftStatus.DELETED} for one in self.resources)

    @property
    def is_complete(self) -> bool:
        """Whether everything was read that can be."""
        return all(one.status is not DriftStatus.NOT_READ for one in self.resources)

    def count(self, status: DriftStatus) -> int:
        """How many resources were found so."""
        return sum(one.status is status for one in self.resources)


_Part = tuple["TypeName", Route, tuple["LogicalId", ...]]


def drift_stack(record: StateRecord, aws: Aws, *, native: Native, concurrency: int = 32) -> DriftReport:
    """Read everything that is recorded and say where AWS differs. Raises what keeps every read from being answered."""
    refuse_other_region(aws, record.region)
    refuse_elsewhere(aws, record, account=aws.account())
    comparison = _Comparison(record, aws, native)
    crew = Crew(concurrency)
    walked = walk(
        {part: () for part in comparison.parts()}, comparison.read, crew=crew, stopping=lambda: None, goes_on=True
    )
    crew.dismiss()
    for part, error in walked.failed.items():
        if _concerns_all(error, is_any_read=bool(comparison.found)):
            raise error
        comparison.fail(part, error)
    found = comparison.found
    return DriftReport(record.stack, record.region, tuple(found[name] for name in record.resources))


def _concerns_all(error: Exception, *, is_any_read: bool) -> bool:
    """Whether a failed read says nothing about its resource: a bug, no usable credentials, or nobody there at all."""
    if isinstance(error, AwsError):
        return error.refuses_credentials
    if isinstance(error, ResourceFailed):
        return False
    return not isinstance(error, CloudError) or not is_any_read


def _is_unreadable(error: Exception) -> bool:
    """Whether AWS has no read for the type."""
    return isinstance(error, AwsError) and error.code in _NO_READ


class _Comparison:
    def __init__(self, record: StateRecord, aws: Aws, native: Native) -> None:
        self._resources: Mapping[LogicalId, ResourceRecord] = record.resources
        self._stack = (*record.resources.values(), *(pending.resource for pending in record.pending_deletes))
        self._native = native
        self._handler_of = HandlerOf(native)
        self._context = functools.cache(lambda: reading_context(aws, stack=record.stack, region=record.region))
        self.found: dict[LogicalId, ResourceDrift] = {}

    def parts(self) -> list[_Part]:
        """What is read together: a whole type where there is a bulk read, else one resource."""
        groups: dict[tuple[TypeName, Route], list[LogicalId]] = {}
        for name, resource in self._resources.items():
            groups.setdefault((resource.type, route_of(resource)), []).append(name)
        parts: list[_Part] = []
        for (type_name, route), names in groups.items():
            if type(self._handler_of(type_name, route)).read_many is not Handler.read_many:
                parts.append((type_name, route, tuple(names)))
            else:
                parts += [(type_name, route, (name,)) for name in names]
        return parts

    def read(self, part: _Part, release: Callable[[], None]) -> None:
        """Read one part and compare each of its resources."""
        type_name, route, names = part
        handler = self._handler_of(type_name, route)
        wanted = {self._resources[name].physical_id: dict(self._resources[name].properties) for name in names}
        seen = handler.read_many(self._context(), wanted)
        compared = {name: self._compare(name, handler, seen) for name in names}
        self.found.update(compared)

    def fail(self, part: _Part, error: Exception) -> None:
        """Its resources could not be read."""
        status = DriftStatus.NOT_COMPARED if _is_unreadable(error) else DriftStatus.NOT_READ
        for name in part[2]:
            self.found[name] = self._drift(name, status, reason=str(error))

    def _compare(self, name: LogicalId, handler: Handler, seen: Mapping[PhysicalId, Seen]) -> ResourceDrift:
        resource = self._resources[name]
        there = seen.get(resource.physical_id)
        if there is None:
            return self._drift(name, DriftStatus.DELETED)
        compared = diff_observed(
            resource.type, resource.properties, resource.observed, there.properties, handler=handler
        )
        foreign = handler.foreign(self._context(), resource.physical_id, dict(resource.properties), stack=self._stack)
        differences = (
            *compared.differences,
            *(DriftDifference(path, ABSENT, value) for path, value in foreign.items()),
        )
        return self._drift(
            name,
            DriftStatus.DRIFTED if differences else DriftStatus.IN_SYNC,
            differences=differences,
            not_compared=compared.not_compared,
        )

    def _drift(self, name: LogicalId, status: DriftStatus, **more: Any) -> ResourceDrift:
        resource = self._resources[name]
        return ResourceDrift(name, resource.type, resource.physical_id, status, **more)
