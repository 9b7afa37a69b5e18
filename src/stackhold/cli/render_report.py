"""How a run ended, as text and as JSON.

The reporter has shown warnings and operations as they came; here stand the outcome, what failed, what is still there,
the outputs, and the safe next step.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stackhold.cli.paint import PLAIN, Paint
from stackhold.cli.printable import lines_text, one_line
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import words
from stackhold.model.run import Outcome, StopCause

if TYPE_CHECKING:
    from stackhold.model.values import JsonMap
    from stackhold.runs.report import RunReport

_DONE_WORDS = {
    "create": "created",
    "update": "updated",
    "replace": "replaced",
    "delete": "deleted",
    "retain": "kept",
    "record": "recorded",
    "record only": "recorded",
    "wait": "settled",
    "go back": "undone",
    "restore": "restored",
    "put back": "put back",
    "create again": "created again",
    "look for": "looked for",
    "already undone": "undone already",
    "orphan": "left alone",
    "not tried": "not started",
}
_STOPPED = {
    StopCause.SIGINT: "stopped by SIGINT",
    StopCause.SIGTERM: "stopped by SIGTERM",
    StopCause.CANCEL: "stopped because stackhold cancel asked for it",
    StopCause.DEADLINE: "the deadline passed",
}
_FATES = {
    "deleted": "deleted again",
    "restored": "its recorded properties are back",
    "kept": "kept",
    "left to its owner": "left to its owner",
    "untouched": "it is as it was",
    "created again": "created again",
    "left": "could not be undone, it stays as it is",
}
_AGAIN = {
    "deleted": "deleted again",
    "restored": "restored",
    "kept": "kept by its policy",
    "left to its owner": "left to its owner",
    "created again": "created again",
    "left": "left as it is",
}
"""What became of something that was done, after what was done."""


def report_text(report: RunReport, *, took_ms: int, paint: Paint = PLAIN) -> str:
    """The end of a run that went well, for stdout: outcome, counts, outputs."""
    identity = report.identity
    name = paint("bold", f"{identity.stack} ({identity.region})")
    if report.is_empty:
        lines = [f"{name}: {_nothing(report)}"]
    else:
        style = "green" if report.exit_code is ExitCode.DONE else "red"
        undone, counts = _went_back(report)
        ended = paint(style, report.outcome.value) + undone
        lines = [f"{name}: {identity.operation} {ended} in {words(took_ms)}{counts or _counts(report)}"]
    outputs = report.record.outputs if report.record is not None and identity.operation != "rollback" else {}
    if outputs and report.exit_code is ExitCode.DONE:
        lines += ["", "Outputs", *(one_line(f"  {key} = {_value(value)}") for key, value in outputs.items())]
    return lines_text(lines, paint=paint)


def trouble_text(report: RunReport, *, undo_command: str = "") -> str:
    """What went wrong, for stderr; empty when nothing did. `undo_command` is the rollback of this very stack."""
    if report.exit_code is ExitCode.DONE:
        return ""
    identity = report.identity
    reason = report.error or (_STOPPED.get(report.cause, "") if report.cause else "") or report.outcome.value
    lines = [f"stackhold: {identity.operation} of {identity.stack} ({identity.region}): {reason}"]
    lines += [f"  {failure['logicalId']}: {failure['error']!s}" for failure in _failures(report)]
    lines += _undone_lines(report)
    lines += _unknown_lines(report)
    if report.unsaved:
        lines.append("These exist and are in no record:")
        lines += [f"  {each}" for each in report.unsaved]
    lines += (report.hint or _next_step(report, undo_command)).split("\n")
    return lines_text(line for line in lines if line)


def report_document(report: RunReport, *, plan: JsonMap | None) -> JsonMap:
    """The end of a run for programs."""
    identity = report.identity
    record = report.record
    summary = report.summary
    document: dict[str, Any] = {
        "operation": identity.operation,
        "stack": identity.stack,
        "region": identity.region,
        "runId": identity.run_id,
        "outcome": report.outcome.value,
        "exitCode": int(report.exit_code),
        "changed": report.changed,
        "isEmpty": report.is_empty,
        "waitedMs": report.waited_ms,
        "plan": plan,
        "counts": summary.get("counts", {}),
        "resources": summary.get("resources", []),
        "failures": summary.get("failures", []),
        "outputs": dict(record.outputs) if record is not None else {},
        "serial": record.serial if record is not None else None,
        "generation": report.generation or (record.generation if record is not None else None),
        "warnings": list(report.warnings),
    }
    if report.cause is not None:
        document["cause"] = report.cause.value
    if report.holder:
        document["holder"] = report.holder
    if report.unsaved:
        document["unsaved"] = list(report.unsaved)
    if report.exit_code is not ExitCode.DONE:
        hint = {"hint": report.hint} if report.hint else {}
        document["error"] = {"kind": "RunFailed", "message": report.error or report.outcome.value, **hint}
    return document


def _nothing(report: RunReport) -> str:
    """That there was nothing to do."""
    operation = report.identity.operation
    if operation == "rollback":
        return "nothing to roll back: no run has left a rollback journal"
    return f"nothing to {operation}; record and {'template' if operation == 'deploy' else 'stack'} agree"


def _counts(report: RunReport) -> str:
    counts = report.summary.get("counts")
    if not isinstance(counts, dict) or not counts:
        return ""
    return ": " + ", ".join(f"{number} {_DONE_WORDS.get(str(word), word)}" for word, number in counts.items())


def _went_back(report: RunReport) -> tuple[str, str]:
    """For a run that went back: that it did, and counts of what was done and then undone."""
    entries = [each for each in _resources(report) if each.get("wentBack")]
    if not entries:
        return "", ""
    counts: dict[str, int] = {}
    for each in _resources(report):
        outcome, operation = str(each.get("outcome")), str(each.get("operation"))
        done = _DONE_WORDS.get(operation, operation) if outcome == "done" else _DONE_WORDS.get(outcome, outcome)
        again = _AGAIN.get(str(each.get("wentBack")), "") if outcome == "done" else ""
        said = f"{done} and {again}" if again else done
        counts[said] = counts.get(said, 0) + 1
    said = ", ".join(f"{number} {what}" for what, number in counts.items())
    partly = "partly " if any(each["wentBack"] == "left" for each in entries) else ""
    return f" and was {partly}undone", f": {said}"


def _undone_in_full(report: RunReport) -> str:
    """That what a run did was undone, and what a policy kept although."""
    fates = [str(each["wentBack"]) for each in _resources(report) if each.get("wentBack")]
    if not fates:
        return ""
    kept = fates.count("kept")
    noun = "resource" if kept == 1 else "resources"
    but = f", but for {kept} {noun} that a policy kept" if kept else ""
    return f"What this run did was undone{but}. "


def _failures(report: RunReport) -> list[dict[str, Any]]:
    """Those that the first line does not name already."""
    found = report.summary.get("failures")
    failures = [each for each in found if isinstance(each, dict)] if isinstance(found, list | tuple) else []
    return [each for each in failures if f"{each.get('logicalId')}: {each.get('error')}" != report.error]


def _next_step(report: RunReport, undo_command: str) -> str:
    """The safe next step, where the run itself names none."""
    if not report.changed or report.is_complete:
        return ""
    operation = report.identity.operation
    again = f"run the same {operation} again."
    if report.outcome is not Outcome.LOCK_LOST and (report.unsaved or not report.is_recorded):
        look = ", look at these" if report.unsaved else ""
        return f"Some of what the run did could not be saved. Mend the cause{look}, and {again}"
    if report.outcome in (Outcome.INTERRUPTED, Outcome.DEADLINE_EXCEEDED) or report.exit_code is ExitCode.PARTLY:
        if operation == "rollback":
            return (
                "What was undone is recorded. Run the same rollback again to go on from there; --orphan ID leaves a "
                "resource as it is."
            )
        went_on = f"What was done is recorded. Run the same {operation} again to go on from there."
        return went_on + _or_undo(report, "it", undo_command)
    if report.outcome is Outcome.FAILED:
        undo = _or_undo(report, "what was left half done", undo_command)
        return f"{_undone_in_full(report)}Mend the cause{_names_to_free(report)} and {again}{undo}"
    return ""


def _names_to_free(report: RunReport) -> str:
    """What stays without a record under the name that its template gives, so that the same deploy would be refused."""
    names = [str(each.get("logicalId")) for each in _resources(report) if each.get("isNameTaken")]
    return f", delete or rename what stays and has its name taken ({', '.join(names)})," if names else ""


def _or_undo(report: RunReport, what: str, undo_command: str) -> str:
    """The command that takes back what is in the journal; empty where there is nothing, or no such command."""
    if report.identity.operation != "deploy" or not report.is_journalled or not undo_command:
        return ""
    return f" Or undo {what} with: {undo_command}"


def _resources(report: RunReport) -> list[dict[str, Any]]:
    found = report.summary.get("resources")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list | tuple) else []


def _unknown_lines(report: RunReport) -> list[str]:
    """What was in flight when the run gave up."""
    lines = []
    for each in _resources(report):
        if each.get("outcome") == "unknown":
            identity = each.get("physicalId") or each.get("name")
            of = f" of {identity!s}" if identity else ""
            lines.append(f"  {each.get('logicalId')}  {each.get('operation')}{of}")
    return ["Not known whether these were done:", *lines] if lines else []


def _undone_lines(report: RunReport) -> list[str]:
    """What became of each resource that the run had touched, when it went back."""
    lines = []
    for each in _resources(report):
        fate, reason = each.get("wentBack"), each.get("reason")
        if fate or reason:
            note = f": {reason!s}" if reason else ""
            identity = f" ({each['physicalId']!s})" if each.get("physicalId") else ""
            became = _FATES.get(str(fate), str(fate or "left as it is"))
            if fate == "untouched" and each.get("operation") == "create":
                became = "it never came to be"
            lines.append(f"  {each.get('logicalId')}{identity}  {each.get('operation')}: {became}{note}")
    return ["What became of each resource:", *lines] if lines else []


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
