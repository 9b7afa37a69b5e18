"""A plan in short: the physical identities it touches, for `run.json`; its steps and counts, for people and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.names import ownership_tags, physical_name, token_for
from stackhold.engines.cloudformation.plan import Action, Plan, ResourceChange
from stackhold.engines.cloudformation.refusals import explicit_name
from stackhold.model.run import Intent, IntentKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId, Region, TypeName
    from stackhold.model.run import RunIdentity

_MAKING = frozenset({Action.CREATE, Action.REPLACE, Action.MAY_REPLACE})
_SILENT = frozenset({Action.KEEP})


def intents_for(
    plan: Plan, identity: RunIdentity, *, account: str, region: Region, native: Native
) -> tuple[Intent, ...]:
    """One intent per physical identity that may come to be, change or go.

    A replacement has two: the new one with name, token and tags, and the old one. One that only may replace has the
    old one as an update, since most often it is.
    """
    found: list[Intent] = []
    for change in plan.changes.values():
        if change.action in _MAKING:
            properties = plan.resolved.get(change.logical_id, {})
            found.append(
                create_intent(
                    change.logical_id,
                    change.type,
                    properties,
                    identity,
                    account=account,
                    region=region,
                    native=native,
                )
            )
        if (kind := _kind_for_old(change)) is not None:
            found.append(
                Intent(
                    logical_id=change.logical_id,
                    type=change.recorded.type if change.recorded else change.type,
                    kind=kind,
                    run_id=identity.run_id,
                    physical_id=change.physical_id,
                )
            )
    for pending in plan.pending_deletes:
        resource = pending.resource
        found.append(
            Intent(
                logical_id=pending.logical_id,
                type=resource.type,
                kind=IntentKind.DELETE,
                run_id=identity.run_id,
                physical_id=resource.physical_id,
            )
        )
    return tuple(found)


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


def create_intent(
    logical_id: LogicalId,
    type_name: TypeName,
    properties: Props,
    identity: RunIdentity,
    *,
    account: str,
    region: Region,
    native: Native,
) -> Intent:
    """The intent of a create: the name, token and tags that it will be sent with."""
    place: dict[str, Any] = {
        "account": account,
        "region": region,
        "stack": identity.stack,
        "logical_id": logical_id,
        "run_id": identity.run_id,
    }
    return Intent(
        logical_id=logical_id,
        type=type_name,
        kind=IntentKind.CREATE,
        run_id=identity.run_id,
        name=_name(type_name, properties, place, native=native),
        token=token_for(**place),
        tags=ownership_tags(identity.stack, region, identity.run_id, logical_id),
    )


def _name(type_name: TypeName, properties: Props, place: Mapping[str, Any], *, native: Native) -> str | None:
    """The name a create will carry; None where there is none, or it is known only after apply."""
    handler = native(type_name)
    rule = handler.name_rule if handler else None
    if rule is None or rule.property in properties:
        return explicit_name(type_name, properties, native=native)
    return physical_name(rule, properties, **place)


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
