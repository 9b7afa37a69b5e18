"""Records and locks as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stackhold.cli.printable import lines_text, one_line
from stackhold.model.instant import date_time, words
from stackhold.runs.lock_messages import ago, holder_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackhold.model.instant import Instant
    from stackhold.model.record import StateRecord
    from stackhold.model.values import JsonMap
    from stackhold.runs.inspect import LockView, StackView


def list_text(views: Sequence[StackView], *, is_long: bool, now: Instant, url: str) -> str:
    """A line per stack; with `is_long` its lock too."""
    if not views:
        return f"No stacks in {url}."
    head = ["STACK", "REGION", "RESOURCES", "LAST CHANGE"]
    rows = [head + (["LOCK"] if is_long else [])]
    for view in views:
        resources = "?" if view.resources is None else str(view.resources)
        place = f"tf workspace {view.keys.region}" if view.keys.is_terraform else view.keys.region
        row = [view.keys.stack, place, resources, _changed_cell(view, now)]
        rows.append(row + ([_lock_cell(view)] if is_long else []))
    return table(rows)


def list_document(views: Iterable[StackView], *, is_long: bool) -> JsonMap:
    """The list for programs."""
    return {"stacks": [_stack_document(view, is_long=is_long) for view in views]}


def show_text(view: StackView, *, now: Instant) -> str:
    """One stack: lock, outputs, resources."""
    lines = [f"{view.keys.stack} ({view.keys.region})"]
    lines += lock_lines(view.lock)
    if view.record is None:
        return lines_text([*lines, "  no record: nothing was deployed, or nothing is left"])
    record = view.record.record
    if record is None:
        return lines_text([*lines, f"  record   not readable: {view.record.unreadable}"])
    age = now - record.last_modified
    lines.append(f"  record   serial {record.serial}, changed {date_time(record.last_modified)} ({ago(max(0, age))})")
    if record.outputs:
        lines += ["", "Outputs", *(f"  {name} = {_value(value)}" for name, value in record.outputs.items())]
    if record.resources:
        lines += ["", "Resources", *(f"  {line}" for line in resources_text(record).split("\n"))]
    if record.pending_deletes:
        lines += ["", "Still to be deleted"]
        lines += [
            f"  {pending.logical_id}  {pending.resource.type}  {pending.resource.physical_id}"
            + (f"  {pending.reason}" if pending.reason else "")
            for pending in record.pending_deletes
        ]
    return lines_text(lines)


def show_document(view: StackView) -> JsonMap:
    """The objects as they are stored: nothing is lost, whatever wrote them."""
    return {
        "state": json.loads(view.record.data) if view.record is not None else None,
        "lock": _raw_lock(view.lock),
        "children": [],
    }


def resources_text(record: StateRecord) -> str:
    """A line per resource, by logical id: the record has them in the order in which they were made."""
    rows = [["LOGICAL ID", "TYPE", "PHYSICAL ID"]]
    for logical_id, resource in sorted(record.resources.items()):
        note = " (settling)" if resource.is_settling else ""
        rows.append([logical_id, resource.type, resource.physical_id + note])
    return table(rows) if record.resources else "No resources."


def resources_document(record: StateRecord) -> JsonMap:
    """The resources for programs, by logical id."""
    return {
        "stack": record.stack,
        "region": record.region,
        "resources": [
            {
                "logicalId": logical_id,
                "type": resource.type,
                "physicalId": resource.physical_id,
                "provisionedBy": resource.provisioned_by,
                **({"settling": True} if resource.is_settling else {}),
            }
            for logical_id, resource in sorted(record.resources.items())
        ],
        "pendingDeletes": [
            {
                "logicalId": pending.logical_id,
                "type": pending.resource.type,
                "physicalId": pending.resource.physical_id,
            }
            for pending in record.pending_deletes
        ],
    }


def info_text(facts: JsonMap) -> str:
    """Which store and region are meant, what said so, and how much is in that store."""
    region = f"{facts['region']}  (from {facts['regionSetBy']})" if facts["region"] else "none is named"
    lines = {
        "store": f"{facts['store']}  (from {facts['setBy']})",
        "prefix": facts["prefix"],
        "region": region,
        "stacks": _stacks_words(facts),
        "resources": facts["resources"],
        "locks": facts["locks"],
        "unreadable": facts["unreadable"],
    }
    return lines_text(f"{name:<12}{value}" for name, value in lines.items())


def _stacks_words(facts: JsonMap) -> str:
    terraform = f", {facts['terraformStacks']} of them Terraform's" if facts["terraformStacks"] else ""
    return f"{facts['stacks']}{terraform}"


def lock_lines(view: LockView | None) -> list[str]:
    """Who holds the lock, indented; one line when nobody does."""
    if view is None:
        return ["  lock     free"]
    lines = holder_lines(
        view.lock, silent_ms=view.silent_ms, now=view.now, unreadable=view.unreadable, pid_gone=view.pid_gone
    )
    stale = ["  stale    the next run takes it over"] if view.is_stale else []
    return [*(f"  {line}" for line in lines), *stale]


def lock_document(view: LockView | None) -> JsonMap | None:
    """A lock for programs: its facts and its age by the store's time."""
    if view is None:
        return None
    facts: dict[str, object] = {"silentMs": view.silent_ms, "isStale": view.is_stale}
    if view.expires_in_ms is not None:
        facts["expiresInMs"] = view.expires_in_ms
    if view.lock is None:
        return {"unreadable": view.unreadable, **facts}
    return {
        "owner": view.lock.owner,
        "operation": view.lock.operation,
        "timestamp": view.lock.timestamp,
        "expiresAt": view.lock.expires_at,
        "ageMs": max(0, view.now - view.lock.timestamp),
        "isProcessGone": view.pid_gone is not None,
        **facts,
    }


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, the last one as it is; a row is one line whatever is in it."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _changed_cell(view: StackView, now: Instant) -> str:
    if view.record is None:
        return "-"
    record = view.record.record
    return "not readable" if record is None else ago(max(0, now - record.last_modified))


def _lock_cell(view: StackView) -> str:
    lock = view.lock
    if lock is None:
        return "-"
    if lock.lock is None:
        return "held; the lock is not readable"
    since = words(max(0, lock.now - lock.lock.timestamp))
    gone = " (process gone)" if lock.pid_gone is not None else ""
    parts = [f"{lock.lock.owner}{gone}, {lock.lock.operation}, for {since}"]
    if lock.is_stale:
        parts.append("stale")
    elif lock.expires_in_ms is not None:
        left = lock.expires_in_ms
        parts.append(f"expires in {words(left)} if silent" if left > 0 else f"past its expiry for {words(-left)}")
    return ", ".join(parts)


def _stack_document(view: StackView, *, is_long: bool) -> JsonMap:
    keys, record = view.keys, view.record
    document: dict[str, object] = {
        "stack": keys.stack,
        "region": keys.region,
        "kind": "terraform" if keys.is_terraform else "cloudformation",
        **({"workspace": keys.region} if keys.is_terraform else {}),
        "isLocked": view.is_locked,
        "resources": view.resources,
        "lastModified": record.record.last_modified if record is not None and record.record is not None else None,
        **({"unreadable": record.unreadable} if record is not None and record.record is None else {}),
    }
    if is_long:
        document["lock"] = lock_document(view.lock)
    return document


def _raw_lock(view: LockView | None) -> object:
    if view is None:
        return None
    if view.lock is None:
        return {"unreadable": view.unreadable}
    return json.loads(view.data)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
