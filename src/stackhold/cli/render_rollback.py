"""A rollback's plan as text and as JSON: how each resource goes back, and what is lost by it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stackhold.cli.paint import PLAIN, Paint
from stackhold.cli.printable import lines_text, one_line
from stackhold.cli.render_plan import change_document, change_line
from stackhold.engines.cloudformation.rollback_plan import Way
from stackhold.model.instant import iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing
    from stackhold.model.ids import Region, StackName
    from stackhold.model.values import JsonMap

_MARKS: Mapping[Way, tuple[str, str]] = {
    Way.DELETE: ("-", "red"),
    Way.RESTORE: ("~", "yellow"),
    Way.PUT_BACK: ("±", "yellow"),
    Way.CREATE_AGAIN: ("+", "red"),
    Way.LOOK_FOR: ("?", "yellow"),
    Way.RETAIN: ("=", "cyan"),
    Way.ORPHAN: ("=", "cyan"),
    Way.LEAVE: ("!", "red"),
}
_COUNTED = {
    Way.DELETE: "to delete",
    Way.RESTORE: "to restore",
    Way.PUT_BACK: "to put back",
    Way.CREATE_AGAIN: "to create again",
    Way.LOOK_FOR: "to look for",
    Way.RETAIN: "to keep and drop from the record",
    Way.ORPHAN: "to leave alone",
    Way.LEAVE: "that cannot be undone now",
    Way.FORGET: "undone already",
}


def rollback_text(plan: RollbackPlan, *, stack: StackName, region: Region, paint: Paint = PLAIN) -> str:
    """A rollback's plan for people."""
    lines = [f"{paint('bold', f'{stack} ({region})')}: {_counts_text(plan)}", ""]
    lines += [
        f"  undoes {one_line(segment.run_id)} ({one_line(segment.reason)}, {iso(segment.timestamp)})"
        for segment in plan.segments
    ]
    order = list(_MARKS)
    shown = sorted((one for one in plan.undoings.values() if one.way in _MARKS), key=lambda one: order.index(one.way))
    for undoing in shown:
        lines += _lines(undoing, paint)
    return lines_text(lines, paint=paint) + "\n"


def rollback_document(plan: RollbackPlan, *, stack: StackName, region: Region) -> JsonMap:
    """A rollback's plan for programs."""
    counts = Counter(undoing.way.value for undoing in plan.undoings.values())
    return {
        "stack": stack,
        "region": region,
        "counts": dict(sorted(counts.items())),
        "runs": [
            {"runId": segment.run_id, "reason": segment.reason, "timestamp": segment.timestamp}
            for segment in plan.segments
        ],
        "resources": [_document(undoing) for undoing in plan.undoings.values()],
    }


def losing(plan: RollbackPlan) -> tuple[str, ...]:
    """The logical ids whose data goes."""
    return tuple(undoing.logical_id for undoing in plan.undoings.values() if undoing.loses)


def _counts_text(plan: RollbackPlan) -> str:
    counts = Counter(undoing.way for undoing in plan.undoings.values())
    said = [f"{counts[way]} {words}" for way, words in _COUNTED.items() if counts[way]]
    return ", ".join(said) or "nothing is left to undo"


def _lines(undoing: Undoing, paint: Paint) -> list[str]:
    mark, colour = _MARKS[undoing.way]
    identity = f"  {one_line(undoing.physical_id)}" if undoing.physical_id else ""
    note = "  " + paint("bold", "[stateful]") if undoing.loses or undoing.held_data else ""
    head = paint(colour, f"{mark} {undoing.way.value:<12}")
    lines = [f"  {head} {one_line(undoing.logical_id)}  {paint('dim', one_line(undoing.type))}{identity}{note}"]
    lines += [f"      {change_line(change)}" for change in undoing.changes]
    fate = _fate(undoing)
    return [*lines, f"      {one_line(fate)}"] if fate else lines


def _fate(undoing: Undoing) -> str:
    """What a reader must know of it beyond its name."""
    before = undoing.before.physical_id if undoing.before else ""
    match undoing.way:
        case Way.PUT_BACK:
            gone = " and ".join(item.physical_id for item in undoing.removals)
            return f"{before} is back" + (f", and {gone} is deleted" if gone else "")
        case Way.CREATE_AGAIN if undoing.there is not None:
            return f"{before} is recorded again if it is still there; else it is made anew{_loss(undoing)}"
        case Way.CREATE_AGAIN if undoing.held_data:
            return f"{before} is gone; it is made anew{_loss(undoing)}"
        case Way.RETAIN:
            return "it is kept: DeletionPolicy Retain"
        case Way.LEAVE:
            return undoing.reason
    return ""


def _loss(undoing: Undoing) -> str:
    return ", without what it held" if undoing.held_data else ""


def _document(undoing: Undoing) -> JsonMap:
    return {
        "logicalId": undoing.logical_id,
        "type": undoing.type,
        "action": undoing.way.value,
        **({"physicalId": undoing.physical_id} if undoing.physical_id else {}),
        **({"formerPhysicalId": undoing.before.physical_id} if undoing.before else {}),
        "deletes": [item.physical_id for item in undoing.removals],
        "stateful": bool(undoing.loses),
        **({"heldData": True} if undoing.held_data else {}),
        "changes": [change_document(change) for change in undoing.changes],
        **({"reason": undoing.reason} if undoing.reason else {}),
    }
