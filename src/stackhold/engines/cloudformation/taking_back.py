"""Takes a replaced resource back that is still there, when the template asks for just that one again.

A replacement that was cut short leaves the old resource, waiting for its deletion, beside the new one. A template that
has gone back since asks for the old one: to make a third would meet its name. So the two change places. Pure.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.diff import diff_properties
from stackhold.engines.cloudformation.plan import Action, Effect, Route
from stackhold.model.record import AddPendingDelete, DropPendingDelete, PendingDelete, SetResource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.engines.cloudformation.plan import Plan, ResourceChange
    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.record import RecordChange, ResourceRecord, StateRecord

_STAYS = frozenset({Effect.UPDATE})


def taken_back(plan: Plan, record: StateRecord, *, native: Native) -> tuple[RecordChange, ...]:
    """What the record must say first, for the old ones of this plan's replacements that are what is asked for.

    They are brought to what is asked as resources that were found: their deletion may have begun.
    """
    found: list[RecordChange] = []
    for change in plan.changes.values():
        if change.action is not Action.REPLACE or change.recorded is None:
            continue
        old = _what_fits(change, plan.resolved.get(change.logical_id, {}), record, native)
        if old is not None:
            waits = PendingDelete(change.logical_id, change.recorded, "the one that it replaced is asked for again")
            found += [
                SetResource(change.logical_id, dataclasses.replace(old, adopted_as="")),
                DropPendingDelete(change.logical_id, old.physical_id),
                AddPendingDelete(waits),
            ]
    return tuple(found)


def _what_fits(change: ResourceChange, properties: Props, record: StateRecord, native: Native) -> ResourceRecord | None:
    handler = native(change.type) if change.route is Route.NATIVE else None
    for old in _waiting(change, record):
        found = diff_properties(change.type, dict(old.properties), properties, handler=handler, recorded=old)
        if {one.effect for one in found} <= _STAYS:
            return old
    return None


def _waiting(change: ResourceChange, record: StateRecord) -> Iterable[ResourceRecord]:
    """The old ones of this resource, the latest first."""
    return (
        pending.resource
        for pending in reversed(record.pending_deletes)
        if pending.logical_id == change.logical_id and pending.resource.type == change.type
    )
