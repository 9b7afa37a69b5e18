"""A plan as text and as JSON: what happens to each resource, by which property, and what becomes of the old one.

Values that carry a secret by their name are shown as changed, never as text. Long values are cut in the text and whole
in the JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from stackhold.cli.paint import PLAIN, Paint
from stackhold.cli.printable import lines_text, one_line
from stackhold.engines.cloudformation.plan import ABSENT, Action, Effect, PropertyChange, Route
from stackhold.engines.cloudformation.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.plan import Plan, ResourceChange
    from stackhold.model.ids import Region, StackName
    from stackhold.model.record import StateRecord
    from stackhold.model.values import JsonMap

_CUT = 160
_SECRET = re.compile(r"password|secretstring|authtoken|privatekey|clientsecret|apikey", re.IGNORECASE)
_MARKS: Mapping[Action, tuple[str, str]] = {
    Action.CREATE: ("+", "green"),
    Action.UPDATE: ("~", "yellow"),
    Action.REPLACE: ("±", "red"),
    Action.MAY_REPLACE: ("±", "red"),
    Action.DELETE: ("-", "red"),
    Action.RETAIN: ("=", "cyan"),
    Action.RECORD: ("·", "dim"),
    Action.WAIT: ("…", "dim"),
}
_COUNTED = {
    Action.CREATE: "to create",
    Action.UPDATE: "to update",
    Action.REPLACE: "to replace",
    Action.MAY_REPLACE: "that may be replaced",
    Action.DELETE: "to delete",
    Action.RETAIN: "to keep and drop from the record",
    Action.RECORD: "to record",
    Action.WAIT: "to wait for",
    Action.KEEP: "unchanged",
}


def plan_text(
    plan: Plan, *, stack: StackName, region: Region, record: StateRecord | None = None, paint: Paint = PLAIN
) -> str:
    """A plan for people."""
    title = paint("bold", f"{stack} ({region})")
    if plan.is_empty:
        return f"{title}: nothing to change, {_count(len(plan.changes), 'resource')} as recorded\n"
    lines = [f"{title}: {counts_text(plan)}", ""]
    for change in _shown(plan):
        lines += _resource_lines(change, paint)
    lines += [
        f"  {paint('red', '-')} delete       {one_line(f'{left.logical_id}  {left.resource.type}')}  "
        "left over by an earlier run"
        for left in plan.pending_deletes
    ]
    lines += _stack_lines(plan, record)
    lines += [f"  {paint('yellow', 'warning')}: {one_line(text)}" for text in plan.warnings]
    return lines_text(lines, paint=paint) + "\n"


def counts_text(plan: Plan) -> str:
    """`2 to create, 1 to update, 45 unchanged`."""
    counts = Counter(change.action for change in plan.changes.values())
    counts[Action.DELETE] += len(plan.pending_deletes)
    said = [f"{counts[action]} {words}" for action, words in _COUNTED.items() if counts[action]]
    return ", ".join(said) or "no resources"


def plan_document(plan: Plan, *, stack: StackName, region: Region, record: StateRecord | None = None) -> JsonMap:
    """A plan for programs."""
    counts = Counter(change.action.value for change in plan.changes.values())
    outputs = _output_changes(plan, record)
    return {
        "stack": stack,
        "region": region,
        "isEmpty": plan.is_empty,
        "counts": dict(sorted(counts.items())),
        "resources": [_resource_document(change) for change in plan.changes.values() if change.action != Action.KEEP],
        "pendingDeletes": [
            {
                "logicalId": pending.logical_id,
                "type": pending.resource.type,
                "physicalId": pending.resource.physical_id,
                **({"reason": pending.reason} if pending.reason else {}),
            }
            for pending in plan.pending_deletes
        ],
        "parameters": _parameter_changes(plan, record),
        "tags": dict(plan.own_tags),
        "tagsChanged": plan.tags_changed,
        "outputsChanged": plan.outputs_changed,
        "outputs": [{"name": each.path, **({} if is_secret(each.path) else _sides(each))} for each in outputs],
        "warnings": [*plan.warnings, *(text for change in plan.changes.values() for text in change.warnings)],
    }


def risky(plan: Plan) -> tuple[ResourceChange, ...]:
    """The stateful resources whose data the plan loses or may lose, in the plan's order."""
    return tuple(
        change
        for change in plan.changes.values()
        if change.is_stateful
        and not change.keeps_old
        and change.action in (Action.REPLACE, Action.MAY_REPLACE, Action.DELETE)
    )


def _shown(plan: Plan) -> Iterable[ResourceChange]:
    order = list(_MARKS)
    changes = (change for change in plan.changes.values() if change.action in _MARKS)
    return sorted(changes, key=lambda change: order.index(change.action))


def _resource_lines(change: ResourceChange, paint: Paint) -> list[str]:
    mark, colour = _MARKS[change.action]
    notes = []
    if change.is_stateful and change.action in (Action.REPLACE, Action.MAY_REPLACE, Action.DELETE):
        notes.append("stateful")
    if change.route is Route.CLOUD_CONTROL:
        notes.append("through Cloud Control")
    note = "  " + paint("bold", f"[{', '.join(notes)}]") if notes else ""
    identity = f"  {one_line(change.physical_id)}" if change.physical_id and change.action is not Action.UPDATE else ""
    type_name = paint("dim", one_line(change.type))
    head = f"  {paint(colour, f'{mark} {change.action.value:<12}')} {one_line(change.logical_id)}  {type_name}"
    lines = [head + identity + note]
    lines += [f"      {change_line(each)}" for each in change.changes]
    fate = _fate(change)
    if fate:
        lines.append(f"      {fate}")
    lines += [f"      {paint('yellow', 'warning')}: {one_line(text)}" for text in change.warnings]
    return lines


def change_line(change: PropertyChange) -> str:
    """One differing place on one line; what is named like a secret without its values."""
    if is_secret(change.path):
        said = f"{one_line(change.path)}: changed (not shown)"
    else:
        said = f"{one_line(change.path)}: {value_text(change.old)} → {value_text(change.new)}"
    if change.effect is Effect.REPLACE:
        said += "  (causes the replacement)"
    elif change.effect is Effect.MAY_REPLACE:
        said += "  (may cause a replacement)"
    return said + (f"  (from {one_line(change.cause)})" if change.cause else "")


def _fate(change: ResourceChange) -> str:
    """What becomes of the old resource."""
    if change.action in (Action.REPLACE, Action.MAY_REPLACE):
        if change.keeps_old:
            return f"the old one is kept: UpdateReplacePolicy {one_line(change.keeps_old)}"
        return "the old one is deleted first" if change.old_first else "the old one is deleted in the clean-up"
    if change.action is Action.RETAIN or (change.action is Action.DELETE and change.keeps_old):
        return f"it is kept: DeletionPolicy {one_line(change.keeps_old or 'Retain')}"
    return ""


def _stack_lines(plan: Plan, record: StateRecord | None) -> list[str]:
    lines = [
        f"  parameter {one_line(change['name'])}: {value_text(change['old'])} → {value_text(change['new'])}"
        for change in _parameter_changes(plan, record)
    ]
    if plan.tags_changed:
        before = dict(record.tags or {}) if record else {}
        lines.append(f"  tags: {_tags_text(before)} → {_tags_text(plan.own_tags)}")
    elif plan.keeps_tags:
        lines.append(f"  tags kept from the last deploy: {_tags_text(plan.own_tags)}")
    lines += [f"  output {change_line(change)}" for change in _output_changes(plan, record)]
    return ["", *lines] if lines else []


def _tags_text(tags: JsonMap) -> str:
    return ", ".join(one_line(f"{name}={value}") for name, value in tags.items()) or "(none)"


def _output_changes(plan: Plan, record: StateRecord | None) -> list[PropertyChange]:
    """Outputs that will differ, or may since a resource in them is made or changed."""
    before, after = dict(record.outputs) if record else {}, plan.output_values
    pairs = [(name, before.get(name, ABSENT), after.get(name, ABSENT)) for name in dict.fromkeys([*after, *before])]
    return [PropertyChange(name, old, new, Effect.UPDATE) for name, old, new in pairs if old != new]


def _parameter_changes(plan: Plan, record: StateRecord | None) -> list[dict[str, Any]]:
    if not plan.parameters_changed:
        return []
    before = dict(record.parameters or {}) if record else {}
    names = [*plan.parameters, *(name for name in before if name not in plan.parameters)]
    pairs = [(name, before.get(name), plan.parameters.get(name)) for name in names]
    return [{"name": name, "old": old, "new": new} for name, old, new in pairs if old != new]


def _resource_document(change: ResourceChange) -> JsonMap:
    return {
        "logicalId": change.logical_id,
        "type": change.type,
        "action": change.action.value,
        "route": change.route.value,
        **({"physicalId": change.physical_id} if change.physical_id else {}),
        "stateful": change.is_stateful,
        **({"oldFirst": True} if change.old_first else {}),
        **({"keepsOld": change.keeps_old} if change.keeps_old else {}),
        "changes": [change_document(each) for each in change.changes],
        **({"warnings": list(change.warnings)} if change.warnings else {}),
    }


def change_document(change: PropertyChange) -> JsonMap:
    """One differing place for programs."""
    return {
        "path": change.path,
        **({} if is_secret(change.path) else _sides(change)),
        "effect": change.effect.value,
        **({"cause": change.cause} if change.cause else {}),
    }


def _sides(change: PropertyChange) -> dict[str, Any]:
    """Old and new; an absent side has no key, an unknown one has its own flag."""
    sides: dict[str, Any] = {}
    if change.old is not ABSENT:
        sides["old"] = plain(change.old)
    if has_unknown(change.new):
        sides["newIsKnownAfterApply"] = True
    if change.new is not ABSENT and change.new is not UNKNOWN:
        sides["new"] = plain(change.new)
    return sides


def value_text(value: object) -> str:
    """A value on one line, cut when long."""
    if value is ABSENT or value is None:
        return "(absent)"
    if value is UNKNOWN:
        return repr(UNKNOWN)
    text = one_line(json.dumps(plain(value), ensure_ascii=False, sort_keys=False, default=str))
    return text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"


def plain(value: object) -> object:
    """JSON's own types, an unknown part as its text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value) if value is UNKNOWN or value is ABSENT else value


def has_unknown(value: object) -> bool:
    """Whether some part of it is known only after apply."""
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def is_secret(path: str) -> bool:
    """Whether a property's name says that its value is a secret."""
    return bool(_SECRET.search(path.replace(".", "")))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
