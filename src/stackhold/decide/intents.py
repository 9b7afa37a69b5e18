"""Which entries of a run file live on. All pure.

A run file lists one intent per physical identity. What an earlier run left is looked for by the next one; what that
leaves unresolved is carried on by every later run, until it is certain that nothing of it can come any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from stackhold.model.run import IntentKind, IntentState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stackhold.model.ids import LogicalId, PhysicalId, RunId
    from stackhold.model.instant import Instant, Millis
    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intent, RunFile

Identity = tuple[object, ...]
Marked: TypeAlias = "tuple[LogicalId, PhysicalId | None]"
"""What a mark speaks of: all entries of a logical id, or the one for a resource."""


def identity_of(intent: Intent) -> Identity:
    """What an entry stands for: one resource that exists, or one that a create makes under one name and token."""
    if intent.kind is IntentKind.CREATE:
        made = intent.intended.replacement if intent.intended else 0
        return intent.kind, intent.logical_id, intent.type, intent.run_id, made
    return intent.kind, intent.logical_id, intent.type, intent.physical_id


def carried_on(leftover: RunFile | None, *, own_run: RunId, seen_at: Instant) -> tuple[Intent, ...]:
    """What a successor must carry on from a run file that was left over, as long as nobody has looked.

    An entry of this very run is none: it was written by an earlier try to begin, and nothing was sent for it.
    """
    if leftover is None:
        return ()
    return tuple(_seen(intent, seen_at) for intent in left_by(leftover) if intent.run_id != own_run)


def left_by(leftover: RunFile) -> tuple[Intent, ...]:
    """The entries of a run file that are not resolved."""
    return tuple(intent for intent in leftover.intents if intent.state is not IntentState.DONE)


def still_open(
    left: Iterable[Intent],
    *,
    seen: Collection[Intent],
    unknown: Collection[Intent],
    looked_at: Instant,
    ttl: Millis,
    is_after_expiry: bool,
) -> tuple[Intent, ...]:
    """What must be carried on after everything that was left was looked for.

    `seen` are those whose effect is there: their request has landed. A request whose effect is not seen may still
    land, until one ttl after this was first found with a free lock; after an expiry that time has passed. One that
    was missed before and is there now stays as long: two runs may have sent it. What cannot be looked for (`unknown`)
    stays until it can.
    """
    seen_now, unknown_now = set(map(identity_of, seen)), set(map(identity_of, unknown))
    found: list[Intent] = []
    for intent in left:
        is_first = intent.first_seen_at is None and not (intent.intended and intent.intended.is_again)
        since = intent.first_seen_at if intent.first_seen_at is not None else looked_at
        may_land = not is_after_expiry and looked_at - since < ttl
        is_seen = identity_of(intent) in seen_now and (is_first or intent.kind is not IntentKind.CREATE)
        if identity_of(intent) in unknown_now or (may_land and not is_seen):
            found.append(_seen(intent, looked_at))
    return tuple(found)


def unresolved(
    own: Iterable[Intent], states: Mapping[Marked, IntentState], carried: Iterable[Intent]
) -> tuple[Intent, ...]:
    """What must stay in the run file when a run ends: its own intents that are not done, and all that it carried.

    An own one stands for what it sends once more: it is the later of the two.
    """
    marked = (replace(intent, state=_state_of(intent, states)) for intent in own)
    left = tuple(intent for intent in marked if intent.state is not IntentState.DONE)
    again = set(map(identity_of, left))
    return (*left, *(intent for intent in carried if identity_of(intent) not in again))


def outlived(carried: Iterable[Intent], record: StateRecord | None) -> tuple[Intent, ...]:
    """What stays carried when a run ends: not what was meant for a resource that is recorded no longer."""
    if record is None:
        there = set()
    else:
        resources = [*record.resources.values(), *(pending.resource for pending in record.pending_deletes)]
        there = {(resource.type, resource.physical_id) for resource in resources}
    return tuple(
        intent
        for intent in carried
        if intent.kind is IntentKind.CREATE or intent.physical_id is None or (intent.type, intent.physical_id) in there
    )


def _state_of(intent: Intent, states: Mapping[Marked, IntentState]) -> IntentState:
    of_all = states.get((intent.logical_id, None), intent.state)
    return states.get((intent.logical_id, intent.physical_id), of_all)


def _seen(intent: Intent, at: Instant) -> Intent:
    return intent if intent.first_seen_at is not None else replace(intent, first_seen_at=at)
