"""In which order a rollback goes: what was deleted is made anew, then everything goes back, dependents first. All pure.

Each resource has up to two parts. What is made anew comes before whatever refers to it, as in a deploy. All else goes
in reverse: a resource is restored or deleted only after those that depend on it, so that every state on the way has
been there before.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.rollback_plan import Way
from stackhold.engines.cloudformation.walk import near_needs, turned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing
    from stackhold.model.ids import LogicalId
    from stackhold.model.record import ResourceRecord, StateRecord


class Part(Enum):
    """What of a resource's way back is done at once."""

    MAKE = "make"
    """Its former self is made anew."""
    BACK = "back"
    """All the rest."""


Step = tuple["LogicalId", Part]
Needs = dict["LogicalId", set["LogicalId"]]


def order_of(plan: RollbackPlan) -> dict[Step, set[Step]]:
    """For each step those that must be done before it. There is no cycle."""
    undoings = plan.undoings
    if plan.record is None:
        return {}
    needs_now = near_needs(undoings.keys(), _needs_now(plan.record, undoings))
    needed_before = near_needs(undoings.keys(), _needs_before(plan.record, undoings))
    rank = {name: number for number, name in enumerate(undoings)}
    dependents = _acyclic(turned(needs_now), rank)
    makes = {name for name, undoing in undoings.items() if undoing.makes_first}
    making = _acyclic({name: needed_before[name] & makes for name in makes}, rank)
    remade_for = turned({name: needed_before[name] for name in undoings})
    steps: dict[Step, set[Step]] = {(name, Part.MAKE): {(need, Part.MAKE) for need in making[name]} for name in makes}
    for name, undoing in undoings.items():
        if undoing.makes_first and not undoing.removals:
            continue
        before = makes & {name, *needed_before[name], *remade_for[name]}
        steps[name, Part.BACK] = {(other, Part.MAKE) for other in before} | {
            (other, Part.BACK) for other in dependents[name] if _holds_back(undoings[other])
        }
    return steps


def _holds_back(undoing: Undoing) -> bool:
    """Whether what a resource needs must wait for it: not for one that is left alone on request, nor for one of which
    nobody knows whether it is there."""
    if undoing.makes_first and not undoing.removals:
        return False
    return undoing.way is not Way.ORPHAN and (undoing.now is not None or bool(undoing.removals))


def _needs_now(record: StateRecord, undoings: Mapping[LogicalId, Undoing]) -> Needs:
    """What each resource depends on as it is, what is still to be deleted included."""
    needs = _needs((name, resource) for name, resource in record.resources.items())
    for pending in record.pending_deletes:
        needs.setdefault(pending.logical_id, set()).update(pending.resource.dependencies or ())
    for name, undoing in undoings.items():
        needs.setdefault(name, set()).update(need for item in undoing.removals for need in item.dependencies or ())
    return needs


def _needs_before(record: StateRecord, undoings: Mapping[LogicalId, Undoing]) -> Needs:
    """What each resource depended on before."""
    needs = _needs((name, resource) for name, resource in record.resources.items() if name not in undoings)
    needs.update(_needs((name, undoing.before) for name, undoing in undoings.items() if undoing.before is not None))
    return needs


def _needs(resources: Iterable[tuple[LogicalId, ResourceRecord]]) -> Needs:
    return {name: set(resource.dependencies or ()) - {name} for name, resource in resources}


def _acyclic(needs: Mapping[LogicalId, set[LogicalId]], rank: Mapping[LogicalId, int]) -> Needs:
    """The same graph; where a record of two templates makes a cycle, what was done last goes first."""
    left = {name: set(before) & needs.keys() - {name} for name, before in needs.items()}
    kept = {name: set(before) for name, before in left.items()}
    needed_by = turned(left)
    ready = [name for name, before in left.items() if not before]
    while left:
        if not ready:
            name = max(left, key=lambda one: rank[one])
            kept[name] -= left[name]
            ready.append(name)
        name = ready.pop()
        left.pop(name)
        for dependent in needed_by[name]:
            before = left.get(dependent)
            if before and name in before:
                before.discard(name)
                if not before:
                    ready.append(dependent)
    return kept
