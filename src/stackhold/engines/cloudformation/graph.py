"""The order of resources: who needs whom, and that nobody needs themselves.

An edge goes from a resource to each resource that it names in its properties or metadata, or under `DependsOn`.
Pure; nothing here starts anything.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.template.resolve import reference_paths, references
from stackhold.errors import Bug, TemplateError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackhold.engines.cloudformation.template.desired import DesiredResource, DesiredStack, Edges
    from stackhold.model.ids import LogicalId


def edges(desired: DesiredStack) -> Edges:
    """For each resource those that it depends on. Raises `TemplateError` naming one shortest cycle, if there is one."""
    found = {logical_id: _needs(resource) for logical_id, resource in desired.resources.items()}
    cycle = shortest_cycle(found)
    if cycle:
        raise _cycle_error(desired, cycle)
    return found


def topological(edges: Edges) -> list[LogicalId]:
    """Every resource after all that it depends on; otherwise in the order given. Needs that are not keys are ignored.

    Raises `Bug` on a cycle: `edges` has refused those.
    """
    place = {logical_id: number for number, logical_id in enumerate(edges)}
    missing = {logical_id: sum(need in place for need in needs) for logical_id, needs in edges.items()}
    dependents: dict[LogicalId, list[LogicalId]] = {logical_id: [] for logical_id in edges}
    for logical_id, needs in edges.items():
        for need in needs:
            if need in place:
                dependents[need].append(logical_id)
    ready = [place[logical_id] for logical_id, count in missing.items() if count == 0]
    heapq.heapify(ready)
    names = list(edges)
    ordered: list[LogicalId] = []
    while ready:
        logical_id = names[heapq.heappop(ready)]
        ordered.append(logical_id)
        for dependent in dependents[logical_id]:
            missing[dependent] -= 1
            if missing[dependent] == 0:
                heapq.heappush(ready, place[dependent])
    if len(ordered) < len(names):
        raise Bug("a cycle of resources reached the ordering")
    return ordered


def shortest_cycle(edges: Edges) -> tuple[LogicalId, ...]:
    """One cycle of the fewest resources, in the order of need; empty when there is none."""
    suspects = _in_cycles(edges)
    best: tuple[LogicalId, ...] = ()
    for start in suspects:
        found = _cycle_through(start, edges, suspects)
        if found and (not best or len(found) < len(best)):
            best = found
        if len(best) == 1:
            break
    return best


def without_cycles(
    edges: Mapping[LogicalId, Collection[LogicalId]],
) -> tuple[dict[LogicalId, set[LogicalId]], list[tuple[LogicalId, ...]]]:
    """The same graph with one need less in every cycle, and the cycles that were broken so.

    For graphs that nobody has refused: a record that was edited by hand can hold anything.
    """
    left = {name: set(needs) - {name} for name, needs in edges.items()}
    broken: list[tuple[LogicalId, ...]] = []
    while cycle := shortest_cycle({name: frozenset(needs) for name, needs in left.items()}):
        left[cycle[-1]].discard(cycle[0])
        broken.append(cycle)
    return left, broken


def _needs(resource: DesiredResource) -> frozenset[LogicalId]:
    named = {target for target, _ in references(resource.properties) | references(resource.metadata)}
    return frozenset(named | set(resource.depends_on))


def _in_cycles(edges: Edges) -> dict[LogicalId, None]:
    """Peel off, again and again, what needs nothing that is left: the rest holds every cycle."""
    left = {logical_id: {need for need in needs if need in edges} for logical_id, needs in edges.items()}
    dependents: dict[LogicalId, list[LogicalId]] = {logical_id: [] for logical_id in edges}
    for logical_id, needs in left.items():
        for need in needs:
            dependents[need].append(logical_id)
    free = deque(logical_id for logical_id, needs in left.items() if not needs)
    while free:
        done = free.popleft()
        del left[done]
        for dependent in dependents[done]:
            if dependent in left:
                left[dependent].discard(done)
                if not left[dependent]:
                    free.append(dependent)
    return dict.fromkeys(left)


def _cycle_through(start: LogicalId, edges: Edges, suspects: dict[LogicalId, None]) -> tuple[LogicalId, ...]:
    """The shortest way from a resource back to itself, breadth first."""
    came_from: dict[LogicalId, LogicalId] = {}
    queue = deque([start])
    while queue:
        current = queue.popleft()
        for need in sorted(edges[current]):
            if need == start:
                way = [current]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if need in suspects and need not in came_from:
                came_from[need] = current
                queue.append(need)
    return ()


def _cycle_error(desired: DesiredStack, cycle: tuple[LogicalId, ...]) -> TemplateError:
    first = desired.resources[cycle[0]]
    steps = [
        f"{current} ({_where(desired.resources[current], following)})"
        for current, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
    ]
    return TemplateError(
        f"resources depend on each other in a circle: {' -> '.join([*steps, cycle[0]])}",
        file=desired.file,
        line=first.line,
        logical_id=first.logical_id,
    )


def _where(resource: DesiredResource, target: LogicalId) -> str:
    """Where a resource names another: the first path, properties before metadata before DependsOn."""
    for part, value in (("Properties", resource.properties), ("Metadata", resource.metadata)):
        for path, named, _ in reference_paths(value, part):
            if named == target:
                return path
    return "DependsOn"
