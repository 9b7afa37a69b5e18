"""What drift found, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.cli.paint import PLAIN, Paint
from stackhold.cli.printable import lines_text, one_line
from stackhold.cli.render_plan import is_secret, plain, value_text
from stackhold.engines.cloudformation.drift import DriftStatus
from stackhold.engines.cloudformation.plan import ABSENT

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.drift import DriftReport, ResourceDrift
    from stackhold.engines.cloudformation.observed import DriftDifference
    from stackhold.model.values import JsonMap

_MARKS = {
    DriftStatus.DRIFTED: ("~", "yellow"),
    DriftStatus.DELETED: ("-", "red"),
    DriftStatus.NOT_COMPARED: ("?", "dim"),
    DriftStatus.NOT_READ: ("!", "red"),
}


def drift_text(report: DriftReport, *, paint: Paint = PLAIN) -> str:
    """What differs, then what could not be read or compared."""
    title = paint("bold", f"{report.stack} ({report.region})")
    counts = [f"{report.count(status)} {status.value}" for status in DriftStatus if report.count(status)]
    said = ", ".join(counts) or "no resources"
    lines = [f"{title}: {_verdict(report, paint)}: {said}"]
    for status in (DriftStatus.DELETED, DriftStatus.DRIFTED, DriftStatus.NOT_READ, DriftStatus.NOT_COMPARED):
        for one in report.resources:
            if one.status is status:
                lines += _lines(one, paint)
    partly = [one for one in report.resources if one.not_compared]
    if partly:
        number = sum(len(one.not_compared) for one in partly)
        noun, were = ("property", "was") if number == 1 else ("properties", "were")
        lines.append(paint("dim", f"  {number} {noun} cannot be read back and {were} not compared (named with --json)"))
    return lines_text(lines, paint=paint)


def _verdict(report: DriftReport, paint: Paint) -> str:
    if report.is_complete:
        return "drift found" if report.is_drifted else "no drift"
    return paint("red", "INCOMPLETE") + (", drift found" if report.is_drifted else ", no drift in what could be read")


def drift_document(report: DriftReport) -> JsonMap:
    """Everything that was compared, for programs."""
    return {
        "stack": report.stack,
        "region": report.region,
        "isDrifted": report.is_drifted,
        "isComplete": report.is_complete,
        "counts": {status.value: report.count(status) for status in DriftStatus},
        "resources": [
            {
                "logicalId": one.logical_id,
                "type": one.type,
                "physicalId": one.physical_id,
                "status": one.status.value,
                "differences": [_difference(each) for each in one.differences],
                "notCompared": list(one.not_compared),
                **({"reason": one.reason} if one.reason else {}),
            }
            for one in report.resources
        ],
    }


def _lines(one: ResourceDrift, paint: Paint) -> list[str]:
    mark, style = _MARKS[one.status]
    type_name = paint("dim", one_line(one.type))
    head = f"  {paint(style, f'{mark} {one.status.value:<12}')} {one_line(one.logical_id)}  {type_name}"
    lines = [f"{head}  {one_line(one.physical_id)}"]
    for each in one.differences:
        if is_secret(each.path):
            lines.append(f"      {one_line(each.path)}: differs (not shown)")
        else:
            lines.append(f"      {one_line(each.path)}: {value_text(each.recorded)} → {value_text(each.observed)}")
    if one.reason:
        lines.append(f"      {one_line(one.reason)}")
    return lines


def _difference(each: DriftDifference) -> dict[str, Any]:
    sides: dict[str, Any] = {"path": each.path}
    if is_secret(each.path):
        return sides
    if each.recorded is not ABSENT:
        sides["recorded"] = plain(each.recorded)
    if each.observed is not ABSENT:
        sides["observed"] = plain(each.observed)
    return sides
