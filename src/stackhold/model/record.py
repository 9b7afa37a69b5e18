"""The state record: what we believe exists. Format version 8, shared with cdkd.

Everything is kept: a field that we do not know stays in `extra`, at its level. A record is a value; a change
makes a new one. `serial`, `lock_id` and `generation` make every write differ from every other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, StackName, TypeName
    from stackhold.model.values import JsonMap

FORMAT_VERSION = 8


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """One recorded resource. `properties` are resolved values; an absent optional field is `None`."""

    physical_id: PhysicalId
    type: TypeName
    properties: JsonMap
    attributes: JsonMap = field(default_factory=dict)
    dependencies: tuple[LogicalId, ...] | None = None
    deletion_policy: str | None = None
    update_replace_policy: str | None = None
    provisioned_by: str | None = "sdk"
    """`sdk` for a native handler, `cc-api` for Cloud Control."""
    observed: JsonMap | None = None
    """The baseline: what AWS had after the deploy (JSON: observedProperties). `None` when not captured."""
    is_settling: bool = False
    """True after a `--no-wait` run left it coming up; the next deploy waits for it (JSON: settling)."""
    adopted_as: str | None = None
    """Set when a later run found this resource, which no record had: the digest of what its create was sent with,
    empty when unknown (JSON: adopted). The next deploy makes every call after the create again and clears it."""
    extra: JsonMap = field(default_factory=dict)

    @property
    def is_adopted(self) -> bool:
        """Whether it was found and not yet brought to what a template asks."""
        return self.adopted_as is not None


@dataclass(frozen=True, slots=True)
class PendingDelete:
    """A resource that a replacement or removal left behind and a clean-up must still delete."""

    logical_id: LogicalId
    resource: ResourceRecord
    reason: str = ""
    """Why the last try failed, for people."""


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One stack in one region."""

    stack: StackName
    region: Region
    resources: Mapping[LogicalId, ResourceRecord] = field(default_factory=dict)
    outputs: JsonMap = field(default_factory=dict)
    last_modified: Instant = Instant(0)
    version: int = FORMAT_VERSION
    generation: int | None = None
    """The run counter (spec 2): which run came later. It grants no authority."""
    lock_id: LockId | None = None
    serial: int = 0
    lineage: str | None = None
    """Made at the first deploy; two lineages never compare."""
    stack_id: str | None = None
    """The value of `AWS::StackId`, fixed at the first deploy."""
    parameters: JsonMap | None = None
    """The effective template parameters of the last deploy."""
    tags: JsonMap | None = None
    """The tags that the last deploy was told to give every resource; `None` when there were none."""
    pending_deletes: tuple[PendingDelete, ...] = ()
    extra: JsonMap = field(default_factory=dict)

    def with_resource(self, logical_id: LogicalId, resource: ResourceRecord) -> StateRecord:
        """The same record with this resource set."""
        return replace(self, resources={**self.resources, logical_id: resource})

    def without_resource(self, logical_id: LogicalId) -> StateRecord:
        """The same record without this resource; a missing one is no error."""
        return replace(self, resources={k: v for k, v in self.resources.items() if k != logical_id})


@dataclass(frozen=True, slots=True)
class SetResource:
    """Change: this resource is now so."""

    logical_id: LogicalId
    resource: ResourceRecord


@dataclass(frozen=True, slots=True)
class DropResource:
    """Change: this resource is recorded no longer."""

    logical_id: LogicalId


@dataclass(frozen=True, slots=True)
class AddPendingDelete:
    """Change: this old resource waits for the clean-up. Same logical and physical id: the reason is replaced."""

    pending: PendingDelete


@dataclass(frozen=True, slots=True)
class DropPendingDelete:
    """Change: this old resource is gone, or kept on purpose."""

    logical_id: LogicalId
    physical_id: PhysicalId


@dataclass(frozen=True, slots=True)
class SetStack:
    """Change of what belongs to the stack as a whole; `None` leaves a field as it is."""

    outputs: JsonMap | None = None
    parameters: JsonMap | None = None
    stack_id: str | None = None
    lineage: str | None = None
    tags: JsonMap | None = None


RecordChange = SetResource | DropResource | AddPendingDelete | DropPendingDelete | SetStack
"""What a run does to the record. Saves are lists of these, applied to the last confirmed version (spec 2)."""
