"""What a Terraform operation found and did, as text and as its result document."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackhold.cli.printable import lines_text
from stackhold.engines.terraform import result
from stackhold.engines.terraform.steps import Operation
from stackhold.engines.terraform.stream_summary import LOCK_SUMMARY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackhold.engines.terraform.diagnostics import Diagnostic
    from stackhold.engines.terraform.planfile import PlannedChange, PlanSummary
    from stackhold.engines.terraform.report import RunnerReport
    from stackhold.model.values import JsonMap

_MOST_SHOWN = 200
_NOTHING = {
    Operation.PLAN: "No changes: the infrastructure is what the module says.",
    Operation.APPLY: "No changes: the infrastructure is what the module says.",
    Operation.DESTROY: "Nothing to destroy: the state has no resources.",
}
_LONGEST_VALUE = 2000
_MARKS = {
    "create": "+",
    "update": "~",
    "replace": "-/+",
    "delete": "-",
    "import": "<-",
    "move": "->",
    "forget": ".",
    "read": "<=",
}


def plan_text(plan: PlanSummary, shown: str = "") -> str:
    """A plan as the runtime shows it, in short where it does not, and the hash that names it."""
    in_short = [*_changes(plan.resources), f"Plan: {_counts(plan)}."]
    return lines_text([*(shown.strip("\n").splitlines() or in_short), f"Hash: {plan.hash}"])


def end_text(report: RunnerReport, operation: Operation) -> str:
    """What is to be said beside the end of the run: drift, no changes, and what no state knows."""
    return lines_text(_end_lines(report, operation))


def trouble_text(report: RunnerReport) -> str:
    """The errors and warnings of all steps as the runtime gives them, each once.

    But for its words on a held lock, which advise to do without locks: who holds it is said by the failure.
    """
    lines: list[str] = []
    is_locked = report.failure is not None and report.failure.lock is not None
    for each in dict.fromkeys(report.diagnostics):
        if not (is_locked and each.summary == LOCK_SUMMARY):
            lines += _diagnostic(each)
    if report.failure is not None and not lines and report.stderr:
        lines += report.stderr.strip().splitlines()
    return lines_text(lines).rstrip("\n")


def result_document(report: RunnerReport, operation: Operation, command: Sequence[str]) -> JsonMap:
    """The result document, as a Job leaves it; but what is only not applied yet is no drift here."""
    if report.drift is not None:
        report = replace(report, drift=replace(report.drift, detected=bool(report.drifted)))
    document: dict[str, Any] = json.loads(result.encode(result_of(report, operation, command)))
    return document


def result_of(
    report: RunnerReport, operation: Operation, command: Sequence[str], *, image: result.Image | None = None
) -> result.ResultDocument:
    """A report as the result document's values."""
    failure = report.failure
    return result.ResultDocument(
        op=operation.value,
        image=image,
        runtime=result.RuntimeUsed(" ".join(command), report.version),
        steps=tuple(result.StepDone(each.name, each.exit, (each.ms + 500) // 1000) for each in report.steps),
        drift=report.drift,
        error=None
        if failure is None
        else result.Failure(result.FailureKind(failure.kind), failure.step, failure.tail or failure.message),
        changes=report.changes,
        plan=report.plan,
    )


def _end_lines(report: RunnerReport, operation: Operation) -> Iterator[str]:
    if report.failure is None and report.plan is None and operation in _NOTHING:
        yield _NOTHING[operation]
    if operation is Operation.FORCE_UNLOCK and report.failure is None:
        yield "The state lock is gone." if report.steps[-1].exit == 0 else "The state was not locked any more."
    if report.drift is not None:
        yield from _drift_lines(report)
    if report.unrecorded:
        yield "An earlier run was killed before the state knew of these:"
        for each in report.unrecorded:
            yield from f"  {each.sentence(_product(report), by_block=report.keeps_state)}".splitlines()
    if operation is Operation.APPLY and report.outputs and report.failure is None:
        yield from ("Outputs", *(f"  {name} = {_value(value)}" for name, value in report.outputs))


def _value(value: str | None) -> str:
    if value is None:
        return "(sensitive)"
    return value if len(value) <= _LONGEST_VALUE else value[:_LONGEST_VALUE] + "…"


def _product(report: RunnerReport) -> str:
    return "tofu" if report.product == "opentofu" else "terraform"


def _drift_lines(report: RunnerReport) -> Iterator[str]:
    """What has changed behind the state's back, and apart from it what the module asks for and nobody has applied."""
    if report.drifted:
        yield "Drift: these are not what the state said, which says so now"
        yield from _changes(report.drifted)
    else:
        yield "No drift: what there is is what the state says."
    if report.plan is not None and report.plan.has_changes:
        yield f"An apply would do: {_counts(report.plan)}"


def _changes(changes: Sequence[PlannedChange]) -> list[str]:
    shown = [f"  {_MARKS.get(each.action, '?'):<3} {each.action:<8} {each.address}" for each in changes[:_MOST_SHOWN]]
    more = len(changes) - _MOST_SHOWN
    return [*shown, f"  … and {more} more"] if more > 0 else shown


def _counts(plan: PlanSummary) -> str:
    counts = {
        "to import": plan.import_,
        "to create": plan.create,
        "to update": plan.update,
        "to replace": plan.replace,
        "to delete": plan.delete,
        "to move": plan.move,
        "to forget": plan.forget,
        f"output{'' if plan.output_changes == 1 else 's'} to change": plan.output_changes,
    }
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number) or "nothing to do"


def _diagnostic(each: Diagnostic) -> list[str]:
    place = ", ".join(part for part in (each.address, each.where) if part)
    lines = [f"{each.severity}: {each.summary}" + (f" ({place})" if place else "")]
    return [*lines, *(f"  {line}" for line in each.detail.splitlines() if line.strip())]
