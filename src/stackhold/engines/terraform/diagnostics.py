"""What a step of the runtime came to: its exit code, its stream and its standard error to one verdict.

The exit code alone says little: 1 means a held lock, an interruption and a mistake alike, and 0 or 2 may come with an
error in the stream. Good is only a good exit code *and* a stream without an error. What goes into messages is made of
summaries and places; never of details and output, which may hold values.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.lock_info import LockInfo, parse_lock_info, plain_lines
from stackhold.engines.terraform.stream import Stream
from stackhold.engines.terraform.stream_entry import read_diagnostic
from stackhold.engines.terraform.stream_summary import (
    LOCK_SUMMARY,
    Changes,
    Diagnostic,
    StreamEvent,
    StreamSummary,
    Touch,
    Touched,
)
from stackhold.model.instant import date_time
from stackhold.model.user_info import without_user_info

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.engines.terraform.steps import Step

__all__ = [
    "Changes",
    "Diagnostic",
    "LockInfo",
    "Stream",
    "StreamEvent",
    "StreamSummary",
    "Touch",
    "Touched",
    "Verdict",
    "error_summary",
    "judge",
    "parse_lock_info",
    "read_validation",
    "redacted",
]

SUMMARY_LIMIT: Final = 512
_HIDDEN: Final = "(hidden)"
_SECRET_LENGTH: Final = 4
_INTERRUPTED: Final = ("Interrupt received.", "execution halted", "canceled by an interrupt signal")
_INTERRUPTING: Final = (-2, -15)
_NOTHING_TO_UNLOCK: Final = re.compile(r"LocalState not locked|already unlocked|\bNoSuchKey\b|does not match")
_BEGINS_ERROR: Final = re.compile(r"^(?:Error: |(?=Failed to unlock state: ))(.+)$")
_CRASHES: Final = ("panic: ", "fatal error: ")
_PLACE: Final = re.compile(r"^  on (.+?) line (\d+)")
_PREAMBLE: Final = "described below."


class Verdict(StrEnum):
    """How a step ended."""

    OK = "ok"
    CHANGES = "changes"
    """Good, and the plan found something to do."""
    LOCKED = "locked"
    """Somebody holds the state lock."""
    INTERRUPTED = "interrupted"
    FAILED = "failed"


def judge(step: Step, *, exit_code: int, summary: StreamSummary | None, stderr: str) -> Verdict:
    """How `step` ended. `summary` is None for a step without a stream.

    A step that was told to stop may be complete nonetheless, so good comes first. After that an interruption comes
    before a held lock: a step that is stopped while it waits for the lock says both.
    """
    is_good = exit_code == 0 or (exit_code == 2 and step.finds_changes)
    if is_good and (summary is None or not summary.has_error):
        return Verdict.CHANGES if exit_code == 2 else Verdict.OK
    if step.name == "force-unlock" and _NOTHING_TO_UNLOCK.search(_unwrapped(stderr)):
        return Verdict.OK
    if exit_code in _INTERRUPTING or _is_interrupted(summary, stderr):
        return Verdict.INTERRUPTED
    if held_lock(summary, stderr) is not None:
        return Verdict.LOCKED
    return Verdict.FAILED


def held_lock(summary: StreamSummary | None, stderr: str) -> LockInfo | None:
    """The lock that kept a step from its own; None when something else did."""
    if summary is not None and summary.is_lock_error:
        return summary.lock
    return parse_lock_info(stderr) if LOCK_SUMMARY in _unwrapped(stderr) else None


def read_validation(document: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of `validate -json`, whose output is one document; empty when it is not one."""
    try:
        found = json.loads(document[max(document.find("{"), 0) :])
    except (ValueError, RecursionError):
        return ()
    entries = found.get("diagnostics") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        return ()
    return tuple(each for each in map(read_diagnostic, entries) if each is not None)


def redacted(text: str, secrets: Sequence[str]) -> str:
    """`text` without any of `secrets`, as they are and as they stand in JSON, and without the credentials in URLs.

    A secret that is shorter than four characters is none.
    """
    text = without_user_info(text)
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1]) if len(form) >= _SECRET_LENGTH}
    if not forms:
        return text
    return re.sub("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)), _HIDDEN, text)


def error_summary(diagnostics: Sequence[Diagnostic], *, lock: LockInfo | None = None, stderr: str = "") -> str:
    """What went wrong, for people, in at most 512 bytes: summaries and places, never raw output.

    `stderr` counts only where there are no errors among the diagnostics: the lines in it that begin an error.
    """
    errors = [each for each in diagnostics if each.severity == "error"] or _errors_in(stderr)
    telling = [each for each in errors if each.summary not in _INTERRUPTED] or errors
    lines = list(dict.fromkeys(_one_line(each) for each in telling))
    if lock is not None:
        lines = [_held(lock), *(line for line in lines if line != LOCK_SUMMARY)]
    return cut("\n".join(lines), SUMMARY_LIMIT)


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` bytes of UTF-8, whole characters only; what is left out shows as an ellipsis."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    return data[: max(limit - 3, 0)].decode(errors="ignore") + "…"


def _is_interrupted(summary: StreamSummary | None, stderr: str) -> bool:
    if summary is not None and summary.is_interrupted:
        return True
    text = _unwrapped(stderr)
    return any(mark in text for mark in _INTERRUPTED)


def _unwrapped(stderr: str) -> str:
    """The runtimes break lines for a terminal; a text is looked for across them."""
    return " ".join(plain_lines(stderr))


def _errors_in(stderr: str) -> list[Diagnostic]:
    """The errors that text for people begins, each with where it points."""
    found: list[Diagnostic] = []
    is_open = False
    for line in plain_lines(stderr):
        begins, place = _BEGINS_ERROR.match(line), _PLACE.match(line)
        if line.startswith(_CRASHES):
            return [Diagnostic("error", "the runtime crashed")]
        if begins:
            found.append(Diagnostic("error", begins[1]))
        elif is_open and line:
            found[-1] = Diagnostic("error", f"{found[-1].summary} {line}")
        elif place and found and not found[-1].where:
            found[-1] = Diagnostic("error", found[-1].summary, where=f"{place[1]}:{place[2]}")
        is_open = bool(begins) or (is_open and bool(line))
    return [each for each in found if not each.summary.endswith(_PREAMBLE)] or found


def _one_line(error: Diagnostic) -> str:
    summary = " ".join(error.summary.split()) or "an error without a text"
    return ": ".join(part for part in (error.where, error.address, summary) if part)


def _held(lock: LockInfo) -> str:
    since = "" if lock.created is None else f" since {date_time(lock.created)}"
    parts = (f"the state lock is held by {lock.who or 'somebody'}{since}", lock.operation, f"ID {lock.id}")
    return " ".join("; ".join(part for part in parts if part).split())
