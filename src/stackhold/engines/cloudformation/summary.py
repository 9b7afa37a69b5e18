"""What a run says of itself at its end: counts by outcome, an entry per resource, and the failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.attempt import reason_of
from stackhold.engines.cloudformation.plan import Action

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stackhold.engines.cloudformation.attempt import Attempt
    from stackhold.engines.cloudformation.cleanup import Removed
    from stackhold.engines.cloudformation.plan import Plan
    from stackhold.model.ids import LogicalId

_CLEAN_UP: Final = frozenset({Action.DELETE, Action.RETAIN})


def summary_of(resources: dict[LogicalId, dict[str, Any]], removed: Removed | None) -> dict[str, object]:
    """Counts by outcome, an entry per resource, and the failures, for the last event and `--json`."""
    counts: dict[str, int] = {}
    entries: list[dict[str, Any]] = [{"logicalId": name, **entry} for name, entry in resources.items()]
    if removed is not None:
        entries += _removed_entries(removed)
    for entry in entries:
        outcome = str(entry["outcome"]) if entry["outcome"] != "done" else str(entry["operation"])
        counts[outcome] = counts.get(outcome, 0) + 1
    failures = [{"logicalId": entry["logicalId"], "error": entry["error"]} for entry in entries if entry.get("error")]
    return {"counts": counts, "resources": entries, "failures": failures}


def _removed_entries(removed: Removed) -> Iterable[dict[str, Any]]:
    for attempt in removed.attempts:
        yield {"logicalId": attempt.logical_id, **told(attempt)}
    for kept in removed.kept:
        yield {
            "logicalId": kept.logical_id,
            "type": kept.resource.type,
            "operation": "retain",
            "outcome": "done",
            "physicalId": kept.resource.physical_id,
        }
    for key, reason in removed.left.items():
        entry = {"logicalId": key[0], "operation": "delete", "physicalId": key[1]}
        yield (
            {**entry, "outcome": "not tried"}
            if key in removed.untouched
            else {**entry, "outcome": "left", "error": reason}
        )


def told(attempt: Attempt) -> dict[str, Any]:
    """One operation and how it ended."""
    entry: dict[str, Any] = {
        "type": attempt.type,
        "operation": attempt.operation,
        "outcome": "failed" if attempt.error else ("done" if attempt.ended else "unknown"),
        "durationMs": max(attempt.ended - attempt.began, 0),
    }
    if attempt.physical_id:
        entry["physicalId"] = attempt.physical_id
    elif attempt.name:
        entry["name"] = attempt.name
    if attempt.after is not None and attempt.after.is_settling:
        entry["settling"] = True
    if attempt.error:
        entry["error"] = reason_of(attempt.error)
    return entry


def still_there(removed: Removed) -> str:
    """One line for a clean-up that could not delete everything."""
    number = len(removed.left)
    return f"{counted(number, 'resource')} {'is' if number == 1 else 'are'} still there"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 resource`, `2 resources`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def not_tried(plan: Plan, not_started: Collection[LogicalId]) -> dict[LogicalId, dict[str, Any]]:
    """What a stopped run has not begun: operations that wait for others, and the whole clean-up."""
    return {
        name: {"type": change.type, "operation": change.action.value, "outcome": "not tried"}
        for name, change in plan.changes.items()
        if (name in not_started and change.action is not Action.KEEP) or change.action in _CLEAN_UP
    }
