"""Names that the template gives and that somebody still has when the resource is made.

Old resources go only after everything else has succeeded, so a name is free only once the run that deletes its
bearer is over. What would meet its name half-way is told before the first call, with who has it and until when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.refusals import explicit_name
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stackhold.engines.cloudformation.plan import ResourceChange
    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.model.record import PendingDelete, ResourceRecord

Bearing = tuple[str, str, str]
"""Type, name, and where the name is unique."""

_MAKING: Final = frozenset({Action.CREATE, Action.REPLACE, Action.MAY_REPLACE})


@dataclass(frozen=True, slots=True)
class _Bearer:
    """Who has a name at first."""

    logical_id: LogicalId
    says: str
    """Of the name: `which is Orders's name until …`."""
    hint: str
    pending: PendingDelete | None = None


def refused_names(
    changes: Mapping[LogicalId, ResourceChange],
    resolved: Mapping[LogicalId, Props],
    pending: Iterable[PendingDelete],
    *,
    native: Native,
    is_gone: Callable[[PendingDelete], bool],
) -> Iterator[tuple[LogicalId, InputError]]:
    """The resources that cannot get their name in this run, each with why and the way out.

    `is_gone` is asked of old resources alone whose name is wanted: whether the cloud has them no more.
    """
    bearers = _bearers(changes, resolved, pending, native)
    made: dict[Bearing, LogicalId] = {}
    for change in changes.values():
        bearing = _new_bearing(change, resolved, native)
        if bearing is None:
            continue
        does = f"{change.logical_id} ({change.type}) would be created as {bearing[1]}"
        if bearing in made:
            yield (
                change.logical_id,
                InputError(f"{does}, and so would {made[bearing]}", hint="Give one of them another name."),
            )
            continue
        made[bearing] = change.logical_id
        for bearer in bearers.get(bearing, ()):
            is_itself = bearer.pending is None and bearer.logical_id == change.logical_id
            if not is_itself and not (bearer.pending and is_gone(bearer.pending)):
                yield change.logical_id, InputError(f"{does}, {bearer.says}", hint=bearer.hint)
                break


def is_same_one(one: ResourceRecord, other: ResourceRecord, *, scope: Iterable[str] = ()) -> bool:
    """Whether two records are of one and the same resource of the cloud; `scope` as a handler has it."""
    return (one.type, one.physical_id) == (other.type, other.physical_id) and all(
        one.properties.get(name) == other.properties.get(name) for name in scope
    )


def _new_bearing(change: ResourceChange, resolved: Mapping[LogicalId, Props], native: Native) -> Bearing | None:
    """The name that a resource gets in this run and does not have yet; None without a name that is known."""
    if change.action not in _MAKING:
        return None
    bearing = _bearing(change.type, resolved.get(change.logical_id, {}), native)
    has_it = change.recorded is not None and not change.is_gone and bearing in _recorded(change.recorded, native)
    return None if has_it else bearing


def _bearers(
    changes: Mapping[LogicalId, ResourceChange],
    resolved: Mapping[LogicalId, Props],
    pending: Iterable[PendingDelete],
    native: Native,
) -> dict[Bearing, list[_Bearer]]:
    found: dict[Bearing, list[_Bearer]] = {}
    for change in changes.values():
        if change.recorded is not None and not change.is_gone:
            new = _bearing(change.type, resolved.get(change.logical_id, {}), native)
            for bearing in _recorded(change.recorded, native):
                bearer = _bearer(change, keeps_it=bearing == new)
                found.setdefault(bearing, []).append(bearer)
    for waiting in pending:
        for bearing in _recorded(waiting.resource, native):
            found.setdefault(bearing, []).append(_waiting(waiting))
    return found


def _bearer(change: ResourceChange, *, keeps_it: bool) -> _Bearer:
    name = change.logical_id
    if keeps_it:
        return _Bearer(name, f"which is {name}'s name", "Give one of them another name.")
    if change.action is Action.RETAIN or (change.action in _MAKING and change.keeps_old):
        return _Bearer(
            name,
            f"which stays the name of the resource that {name} was: its policy {change.keeps_old} keeps it",
            "Choose another name, or delete that one yourself once it is out of the record.",
        )
    if change.action is Action.DELETE:
        return _Bearer(
            name,
            f"which is {name}'s name until that is deleted, at the end of the run",
            f"Keep the logical id {name}, or give the new resource another name.",
        )
    if change.action in _MAKING:
        return _Bearer(
            name,
            f"which is {name}'s name until its old one is deleted, at the end of the run",
            f"Deploy twice: first {name} under its new name, then what takes its old one. To swap two names, give one "
            "of the two a third name first.",
        )
    return _Bearer(name, f"which is {name}'s name", "Give one of them another name.")


def _waiting(waiting: PendingDelete) -> _Bearer:
    reason = f" ({waiting.reason})" if waiting.reason else ""
    return _Bearer(
        waiting.logical_id,
        f"which is still the name of an old {waiting.logical_id} that an earlier run could not delete{reason}",
        "Deploy once under another name, or as before: the end of each deploy tries the deletion again. Or delete "
        f"{waiting.resource.physical_id} yourself and repeat this.",
        waiting,
    )


def _recorded(resource: ResourceRecord, native: Native) -> set[Bearing]:
    """What a recorded resource is called: as the template had it, and as AWS has it."""
    found = {_bearing(resource.type, resource.properties, native)}
    where = _where(resource.type, resource.properties, native)
    if where is not None:
        found.add((resource.type, resource.physical_id, where))
    return {bearing for bearing in found if bearing is not None}


def _bearing(type_name: TypeName, properties: Mapping[str, Any], native: Native) -> Bearing | None:
    name = explicit_name(type_name, properties, native=native)
    where = _where(type_name, properties, native)
    return None if name is None or where is None else (type_name, name, where)


def _where(type_name: TypeName, properties: Mapping[str, Any], native: Native) -> str | None:
    """The parents within which a name is unique; None when they are not known yet."""
    handler = native(type_name)
    if handler is None or handler.name_rule is None:
        return ""
    parents = [properties.get(name, handler.defaults.get(name)) for name in handler.where]
    return None if has_unknown(parents) else repr(parents)
