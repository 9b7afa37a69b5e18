"""A plan in short: the physical identities it touches, for `run.json`; its steps and counts, for people and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.names import Naming
from stackhold.engines.cloudformation.places import digest_of, place_of
from stackhold.engines.cloudformation.plan import Action, Effect, Plan, ResourceChange, Route
from stackhold.engines.cloudformation.reading import HandlerOf
from stackhold.engines.cloudformation.refusals import explicit_name
from stackhold.model.run import Intended, Intent, IntentKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.names import Earlier
    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, Region, RunId, TypeName
    from stackhold.model.record import ResourceRecord
    from stackhold.model.run import RunIdentity

_MAKING = frozenset({Action.CREATE, Action.REPLACE, Action.MAY_REPLACE})
_SILENT = frozenset({Action.KEEP})


def intents_for(
    plan: Plan,
    identity: RunIdentity,
    *,
    account: str,
    region: Region,
    native: Native,
    earlier: Mapping[LogicalId, Earlier] | None = None,
) -> tuple[Intent, ...]:
    """One intent per physical identity that may come to be, change or go.

    A replacement has two: the new one with name, token and tags, and the old one. One that only may replace has the
    old one as an update, since most often it is. Where the old one goes first, going back would make it again.
    """
    naming = Naming(account, region, identity.stack, identity.run_id, earlier or {})
    writer = _Writer(plan, naming, native)
    found: list[Intent] = []
    for change in plan.changes.values():
        if change.action in _MAKING:
            found.append(writer.create(change))
        if change.old_first and change.recorded is not None and not change.keeps_old:
            found.append(create_again_intent(change.logical_id, change.recorded, naming, native=native, replacement=1))
        if (kind := _kind_for_old(change)) is not None and change.recorded is not None:
            found.append(writer.of_old(change, change.recorded, kind))
    found += [writer.removal(pending.logical_id, pending.resource) for pending in plan.pending_deletes]
    return tuple(found)


def create_again_intent(
    logical_id: LogicalId, before: ResourceRecord, naming: Naming, *, native: Native, replacement: int = 0
) -> Intent:
    """The intent of making a resource anew as it is recorded."""
    properties = dict(before.properties)
    handler = _handler(before.type, before.provisioned_by, native)
    intended = Intended(
        route=before.provisioned_by,
        place=place_of(handler, properties, properties),
        properties=tuple(sorted(properties)),
        dependencies=before.dependencies,
        deletion_policy=before.deletion_policy,
        update_replace_policy=before.update_replace_policy,
        is_own_name=_is_own_name(handler, properties),
        replacement=replacement,
    )
    return _create(logical_id, before.type, properties, naming, intended, native=native)


def update_intent(
    logical_id: LogicalId, recorded: ResourceRecord, run_id: RunId, *, changed: Iterable[str], native: Native
) -> Intent:
    """The intent of changing these properties of a recorded resource."""
    properties = dict(recorded.properties)
    return Intent(
        logical_id=logical_id,
        type=recorded.type,
        kind=IntentKind.UPDATE,
        run_id=run_id,
        physical_id=recorded.physical_id,
        intended=Intended(
            route=recorded.provisioned_by,
            place=place_of(_handler(recorded.type, recorded.provisioned_by, native), properties, properties),
            properties=tuple(sorted(set(changed))),
        ),
    )


class _Writer:
    """The intents of one plan."""

    def __init__(self, plan: Plan, naming: Naming, native: Native) -> None:
        self._plan = plan
        self._naming = naming
        self._native = native

    def create(self, change: ResourceChange) -> Intent:
        """A new resource; in a replacement, beside the old one."""
        desired, recorded = change.desired, change.recorded
        raw = desired.properties if desired else {}
        resolved = self._plan.resolved.get(change.logical_id, {})
        handler = _handler(change.type, change.route.value, self._native)
        intended = Intended(
            route=change.route.value,
            place=place_of(handler, raw, resolved),
            properties=tuple(sorted(resolved)),
            dependencies=tuple(sorted(self._plan.needs.get(change.logical_id, ()))),
            deletion_policy=desired.deletion_policy if desired else None,
            update_replace_policy=desired.update_replace_policy if desired else None,
            is_own_name=_is_own_name(handler, resolved),
            replaces=recorded.physical_id if recorded else None,
            keeps_old=change.keeps_old is not None,
            old_first=change.old_first,
            digest=digest_of(change.type, raw, self._plan.stack_tags),
            is_again=change.logical_id in self._naming.earlier,
        )
        return _create(change.logical_id, change.type, resolved, self._naming, intended, native=self._native)

    def of_old(self, change: ResourceChange, recorded: ResourceRecord, kind: IntentKind) -> Intent:
        """What may happen to the recorded one."""
        if kind is IntentKind.DELETE:
            return self.removal(change.logical_id, recorded)
        names = [one.path.split(".", 1)[0] for one in change.changes if one.effect is not Effect.REPLACE]
        desired = change.desired.properties if change.desired else {}
        changed = names if names or not recorded.is_adopted else list(desired)
        run_id = self._naming.run_id
        return update_intent(change.logical_id, recorded, run_id, changed=changed, native=self._native)

    def removal(self, logical_id: LogicalId, resource: ResourceRecord) -> Intent:
        """A resource that goes."""
        return Intent(
            logical_id=logical_id,
            type=resource.type,
            kind=IntentKind.DELETE,
            run_id=self._naming.run_id,
            physical_id=resource.physical_id,
        )


def short_steps(plan: Plan) -> tuple[dict[str, Any], ...]:
    """What will be done, one entry per resource, without those that stay as they are."""
    steps = [_step(change.logical_id, change.type, change.action) for change in plan.changes.values()]
    leftovers = [_step(one.logical_id, one.resource.type, Action.DELETE) for one in plan.pending_deletes]
    return tuple(step for step in [*steps, *leftovers] if step["operation"] not in _SILENT)


def summarise(plan: Plan) -> dict[str, int]:
    """How many resources each action meets, every action named; leftovers of earlier runs count as deletes."""
    counts = {action.value: 0 for action in Action}
    for change in plan.changes.values():
        counts[change.action.value] += 1
    counts[Action.DELETE.value] += len(plan.pending_deletes)
    return counts


def _step(logical_id: str, type_name: str, action: Action) -> dict[str, Any]:
    return {"logicalId": logical_id, "type": type_name, "operation": action.value}


def _create(
    logical_id: LogicalId,
    type_name: TypeName,
    properties: Props,
    naming: Naming,
    intended: Intended,
    *,
    native: Native,
) -> Intent:
    """The name, token and tags that a create will be sent with."""
    made = intended.replacement
    return Intent(
        logical_id=logical_id,
        type=type_name,
        kind=IntentKind.CREATE,
        run_id=naming.run_of(logical_id, made),
        name=_name(logical_id, type_name, properties, naming, made, native=native),
        token=naming.token(logical_id, made),
        tags=naming.tags(logical_id, made),
        intended=intended,
    )


def _handler(type_name: TypeName, route: str | None, native: Native) -> Handler:
    return HandlerOf(native)(type_name, Route.CLOUD_CONTROL if route == Route.CLOUD_CONTROL.value else Route.NATIVE)


def _is_own_name(handler: Handler, properties: Props) -> bool:
    return handler.name_rule is not None and handler.name_rule.property not in properties


def _name(
    logical_id: LogicalId, type_name: TypeName, properties: Props, naming: Naming, made: int, *, native: Native
) -> str | None:
    """The name a create will carry; None where there is none, or it is known only after apply."""
    handler = native(type_name)
    rule = handler.name_rule if handler else None
    if rule is None or rule.property in properties:
        return explicit_name(type_name, properties, native=native)
    return naming.name(rule, properties, logical_id, made)


def _kind_for_old(change: ResourceChange) -> IntentKind | None:
    """What may happen to the recorded one."""
    match change.action:
        case Action.UPDATE | Action.MAY_REPLACE:
            return IntentKind.UPDATE
        case Action.DELETE:
            return IntentKind.DELETE
        case Action.REPLACE:
            return None if change.keeps_old else IntentKind.DELETE
        case _:
            return None
