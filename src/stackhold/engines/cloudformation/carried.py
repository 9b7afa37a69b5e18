"""The drift baseline of a resource after an update: what an update did not change keeps what was known before.

Were everything taken anew, a change made by hand to a property that the template leaves open would become the
baseline with the next update of anything else on that resource, and drift would never show it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.coerce import coerce_recorded
from stackhold.engines.cloudformation.documents import sort_key
from stackhold.engines.cloudformation.plan import ABSENT

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.model.record import ResourceRecord
    from stackhold.model.values import JsonMap


def carried_baseline(
    before: ResourceRecord | None,
    after: ResourceRecord,
    observed: JsonMap | None,
    *,
    handler: Handler,
    moved: frozenset[str] = frozenset(),
) -> JsonMap | None:
    """The baseline of `after`, which was `before`, when AWS shows `observed` now; None when there is none yet.

    `observed` is None when nothing was read: what was changed then has no baseline. What was not in the baseline
    before is taken as it is, and so are `moved`, which AWS was seen to change along.
    """
    if before is None or before.observed is None or before.is_adopted or not _is_same_resource(before, after):
        return observed
    changed = _changed(before, after)
    changed |= moved | {name for cause in changed for name in handler.moves.get(cause, ())}
    kept = {name: value for name, value in before.observed.items() if name not in changed}
    return {**(observed or {}), **kept}


def _is_same_resource(before: ResourceRecord, after: ResourceRecord) -> bool:
    return (before.type, before.physical_id) == (after.type, after.physical_id)


def _changed(before: ResourceRecord, after: ResourceRecord) -> set[str]:
    """The properties that differ, or were added or removed."""
    old = coerce_recorded(before.type, dict(before.properties))
    new = coerce_recorded(after.type, dict(after.properties))
    return {name for name in {*old, *new} if sort_key(old.get(name, ABSENT)) != sort_key(new.get(name, ABSENT))}
