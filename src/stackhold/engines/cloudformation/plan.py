"""A plan: frozen instructions for one run, made by `plan_deploy` and `plan_destroy`, carried out by `execute`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.desired import DesiredOutput, DesiredResource
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, PhysicalId, TypeName
    from stackhold.model.record import PendingDelete, ResourceRecord


class Action(StrEnum):
    """What a plan does to one resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    """Create new, move dependents, delete old in the clean-up; the other way round where the type demands it."""
    MAY_REPLACE = "may replace"
    """A create-only property depends on something known only after apply; decided when it is known."""
    DELETE = "delete"
    RETAIN = "retain"
    """Removed from the template, kept in the cloud, dropped from the record."""
    RECORD = "record only"
    """Nothing to call: dependencies, policies or metadata changed."""
    WAIT = "wait"
    """Unchanged, but an earlier `--no-wait` run left it settling."""
    KEEP = "keep"
    """Nothing to do."""


class Effect(StrEnum):
    """What a changed property causes."""

    UPDATE = "update"
    REPLACE = "replace"
    MAY_REPLACE = "may replace"


class Route(StrEnum):
    """Who carries a resource out; the values are the record's `provisionedBy`."""

    NATIVE = "sdk"
    CLOUD_CONTROL = "cc-api"


ABSENT = type("Absent", (), {"__repr__": lambda self: "(absent)"})()
"""The value of a property that is not there. Compare with `is`."""


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One differing place. `path` is dotted from the property's name: `Tags.Env`, `Code.ZipFile`, `Targets.0.Arn`."""

    path: str
    old: Any
    new: Any
    effect: Effect
    cause: LogicalId | None = None
    """The resource whose replacement or update makes the new value differ or unknown."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """What happens to one resource."""

    logical_id: LogicalId
    type: TypeName
    action: Action
    route: Route
    desired: DesiredResource | None = None
    """None for deletes."""
    recorded: ResourceRecord | None = None
    """None for creates."""
    changes: tuple[PropertyChange, ...] = ()
    old_first: bool = False
    """A replacement that must delete the old one first (`replacementStrategy: delete_then_create`)."""
    keeps_old: str | None = None
    """For a replacement or delete: the policy that keeps the old one (`Retain`), or None."""
    is_stateful: bool = False
    is_gone: bool = False
    """A read found nothing there: what is recorded is replaced, and there is no old one to delete."""
    warnings: tuple[str, ...] = ()

    @property
    def physical_id(self) -> PhysicalId | None:
        """The recorded one."""
        return self.recorded.physical_id if self.recorded else None


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything one run will do, in no order but that of the edges."""

    changes: Mapping[LogicalId, ResourceChange]
    """One per resource of template and record, KEEP included."""
    needs: Mapping[LogicalId, frozenset[LogicalId]]
    """For creates, updates, replacements: what must be done before (edges of the template)."""
    old_needs: Mapping[LogicalId, frozenset[LogicalId]]
    """The record's dependencies: deletes go in their reverse order."""
    pending_deletes: tuple[PendingDelete, ...] = ()
    """Left over from earlier runs: tried again in the clean-up."""
    outputs: Mapping[str, DesiredOutput] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    output_values: Mapping[str, Any] = field(default_factory=dict)
    """What each output will be, as far as that is known while planning (UNKNOWN where not)."""
    exports: Mapping[str, Any] = field(default_factory=dict)
    """The value of each export whose name is known while planning (UNKNOWN where it is not)."""
    exports_known: bool = True
    """Whether every name and value of them is known."""
    outputs_changed: bool = False
    parameters_changed: bool = False
    warnings: tuple[str, ...] = ()
    resolved: Mapping[LogicalId, Props] = field(default_factory=dict)
    """Desired properties as far as known while planning (with UNKNOWN in them)."""
    stack_tags: Mapping[str, str] = field(default_factory=dict)
    """Those of every resource: the app's, and the deploy's own."""
    own_tags: Mapping[str, str] = field(default_factory=dict)
    """The deploy's own, given or kept from the last one; the record keeps them."""
    keeps_tags: bool = False
    """Whether they are the last deploy's, since none were given."""
    tags_changed: bool = False

    @property
    def is_empty(self) -> bool:
        """True when a run would do nothing, not even save the record."""
        return (
            not self.pending_deletes
            and not self.outputs_changed
            and not self.parameters_changed
            and not self.tags_changed
            and all(change.action is Action.KEEP for change in self.changes.values())
        )
