"""Which entries of a run file live on. All pure.

A run file lists one intent per physical identity. What an earlier run left unresolved is carried on by every later
one; only a confirmed resolution removes an entry.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.model.run import IntentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.model.ids import LogicalId, RunId
    from stackhold.model.instant import Instant
    from stackhold.model.run import Intent, RunFile


def carried_on(leftover: RunFile | None, *, own_run: RunId, seen_at: Instant) -> tuple[Intent, ...]:
    """What a successor must carry on from a run file that was left over.

    An entry of this very run is none: it was written by an earlier try to begin, and nothing was sent for it.
    """
    if leftover is None:
        return ()
    return tuple(
        replace(intent, first_seen_at=intent.first_seen_at or seen_at)
        for intent in leftover.intents
        if intent.state is not IntentState.DONE and intent.run_id != own_run
    )


def unresolved(
    own: Iterable[Intent], states: Mapping[LogicalId, IntentState], carried: Iterable[Intent]
) -> tuple[Intent, ...]:
    """What must stay in the run file when a run ends: its own intents that are not done, and all that it carried."""
    marked = (replace(intent, state=states.get(intent.logical_id, intent.state)) for intent in own)
    return (*(intent for intent in marked if intent.state is not IntentState.DONE), *carried)
