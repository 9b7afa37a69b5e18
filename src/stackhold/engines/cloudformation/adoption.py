"""What a resource that was found again still needs: every call after its create once more.

Its record holds what a read showed, not what was sent. So a property that no read shows counts as sent where only a
create can set it; and when the template asks for the very create that had been sent, nothing that the read spells
differently may replace it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.places import digest_of
from stackhold.engines.cloudformation.plan import Action, Effect, Route
from stackhold.engines.cloudformation.resources.handler import Made
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.engines.cloudformation.template.resolve import references

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.plan import PropertyChange, ResourceChange
    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Want
    from stackhold.engines.cloudformation.template.desired import DesiredResource
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.record import ResourceRecord

FOUND_AGAIN = "found again after a run that did not settle: every call after its create is made once more"


def compared(recorded: ResourceRecord, properties: Props) -> Props:
    """What the wanted properties are compared with: the recorded ones, and for an adopted resource as sent what only a
    create can set and no read shows."""
    if not recorded.is_adopted:
        return dict(recorded.properties)
    schema = schema_for(recorded.type)
    pointers = (*schema.create_only, *schema.conditional) if schema else ()
    unseen = {pointer[0] for pointer in pointers} & properties.keys() - recorded.properties.keys()
    return {**recorded.properties, **{name: properties[name] for name in unseen}}


def judged(
    changes: tuple[PropertyChange, ...],
    recorded: ResourceRecord,
    desired: DesiredResource,
    stack_tags: Mapping[str, str],
) -> tuple[PropertyChange, ...]:
    """The differences of an adopted resource: none replaces it that its very create, sent once more, would not show."""
    if not recorded.is_adopted or recorded.adopted_as != digest_of(desired.type, desired.properties, stack_tags):
        return changes
    return tuple(
        one
        if references(desired.properties.get(one.path.split(".", 1)[0]))
        else dataclasses.replace(one, effect=Effect.UPDATE)
        for one in changes
    )


def at_least_updated(action: Action, recorded: ResourceRecord) -> Action:
    """An adopted resource that stays is brought to what is asked, even if a read shows no difference."""
    stays = action in {Action.KEEP, Action.RECORD, Action.WAIT}
    return Action.UPDATE if recorded.is_adopted and stays else action


def bring(handler: Handler, ctx: Context, change: ResourceChange, want: Want) -> Made:
    """Make every call after the create once more; before that, undo what the read showed and nobody asks for.

    Cloud Control's create is one request that has everything.
    """
    recorded = change.recorded
    assert recorded is not None
    old = compared(recorded, want.properties)
    physical_id = recorded.physical_id
    if change.route is Route.CLOUD_CONTROL:
        return handler.update(ctx, physical_id, old, want) if change.changes else Made(physical_id, recorded.attributes)
    if change.changes:
        physical_id = handler.update(ctx, physical_id, old, want).physical_id
    return dataclasses.replace(handler.update(ctx, physical_id, {}, want), is_settled=False)
