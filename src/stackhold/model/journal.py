"""The rollback journal: what runs that did not settle had done, newest segment last. Shape shared with cdkd."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
    from stackhold.model.instant import Instant
    from stackhold.model.values import JsonMap

JOURNAL_VERSION = 1
PREVIOUS_OUTPUTS = "previousOutputs"
PREVIOUS_PARAMETERS = "previousParameters"
PREVIOUS_TAGS = "previousTags"
"""Fields of a segment, in `extra`: the stack's outputs, parameters and tags before a run that changed them."""
LEFTOVER = "leftover"
"""A field of a DELETE, in its `extra`: true when the deleted was the old one of a replacement, or had been left over
by an earlier run, so that its logical id stood for another resource, or for none."""
RETAINED = "retained"
"""A field of a DELETE, in its `extra`: true when a policy kept the resource, and only the record let go of it."""


@dataclass(frozen=True, slots=True)
class JournalOperation:
    """One operation that was done. `change_type` is CREATE, UPDATE, REPLACE or DELETE."""

    logical_id: LogicalId
    change_type: str
    type: TypeName
    physical_id: PhysicalId
    properties: JsonMap | None = None
    """After the operation; `None` after a delete."""
    provisioned_by: str | None = None
    previous: JsonMap | None = None
    """The whole resource as recorded before, in the record's JSON shape (JSON: previousState)."""
    status: str | None = None
    """`None` when the operation was done; `failed` or `unknown` otherwise."""
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalSegment:
    """What one run did, in the order in which it was done."""

    run_id: RunId
    timestamp: Instant
    reason: str
    """interrupted, deadline, failed, or rollback-partial."""
    is_initial_deploy: bool
    operations: tuple[JournalOperation, ...]
    tool_version: str | None = None
    """JSON: stackholdVersion; cdkd's own cdkdVersion stays in `extra`."""
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Journal:
    """All segments since the stack last settled."""

    stack: StackName
    region: Region
    segments: tuple[JournalSegment, ...] = ()
    version: int = JOURNAL_VERSION
    extra: Mapping[str, object] = field(default_factory=dict)
