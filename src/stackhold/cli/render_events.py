"""Runs and their events as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.cli.printable import lines_text
from stackhold.cli.render_state import table
from stackhold.cli.run_view import event_line
from stackhold.model.codec import encode_run_log
from stackhold.model.instant import date_time, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.ids import RunId
    from stackhold.model.run_log import RunLog
    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A run whose log is there and cannot be read."""

    run_id: RunId
    reason: str


def runs_text(runs: Sequence[RunLog | UnreadableRun]) -> str:
    """A line per run, oldest first, and below them why some cannot be read."""
    rows = [["STARTED", "RUN", "OPERATION", "OUTCOME", "TOOK", "OWNER"]]
    for log in runs:
        if isinstance(log, UnreadableRun):
            rows.append(["-", log.run_id, "-", "unreadable", "-", "-"])
            continue
        outcome = log.outcome.value if log.outcome is not None else "no end"
        took = words(log.ended_at - log.started_at) if log.ended_at is not None else "-"
        started = date_time(log.started_at)
        identity = log.identity
        rows.append([started, identity.run_id, identity.operation, outcome, took, identity.owner])
    reasons = [f"unreadable: {run.reason}" for run in runs if isinstance(run, UnreadableRun)]
    return table(rows) + (lines_text(["", *reasons]) if reasons else "")


def run_text(log: RunLog) -> str:
    """One run in full."""
    return lines_text([*head_lines(log), *event_lines(log, 0), *end_lines(log)])


def head_lines(log: RunLog) -> list[str]:
    """Who ran what, and under which clocks."""
    identity = log.identity
    waited = f", waited {words(log.waited_ms)}" if log.waited_ms else ""
    return [
        f"{identity.operation} of {identity.stack} ({identity.region}) by {identity.owner}",
        f"run {identity.run_id}, {identity.engine}, stackhold {identity.tool_version}",
        f"deadline {words(log.deadline_ms)}; lock wait {log.lock_wait}{waited}",
    ]


def event_lines(log: RunLog, start: int) -> list[str]:
    """A line per event from the one at `start`."""
    lines = (event_line(event, is_verbose=True) for event in log.events[start:])
    return [line for line in lines if line is not None]


def end_lines(log: RunLog, *, is_killed: bool = False) -> list[str]:
    """How it ended, if it did."""
    if log.ended_at is None:
        return ["ended without a word: it was killed, or lost its store"] if is_killed else ["no end is recorded"]
    outcome = log.outcome.value if log.outcome is not None else "ended"
    code = f", exit code {log.exit_code}" if log.exit_code is not None else ""
    error = [log.error] if log.error else []
    return [f"{outcome} after {words(log.ended_at - log.started_at)}{code}", *error]


def listed_document(run: RunLog | UnreadableRun) -> JsonMap:
    """One run of a list for programs."""
    if isinstance(run, UnreadableRun):
        return {"runId": run.run_id, "unreadable": run.reason}
    return run_document(run)


def run_document(log: RunLog) -> JsonMap:
    """One run for programs: its log as it is stored."""
    import json

    document: JsonMap = json.loads(encode_run_log(log))
    return document
