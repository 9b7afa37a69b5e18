"""What a step of the runtime came to: its exit code, its stream and its standard error to one verdict.

The exit code alone says little: 1 means a held lock, an interruption and a mistake alike, and 0 or 2 may come with an
error in the stream. Good is only a good exit code *and* a stream without an error.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from stackhold.engines.terraform.lock_info import LockInfo, parse_lock_info
from stackhold.engines.terraform.stream import (
    Changes,
    Diagnostic,
    Stream,
    StreamEvent,
    StreamSummary,
    Touch,
    Touched,
)

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
    """How `step` ended. `summary` is None for a step without a stream."""
    raise NotImplementedError


def read_validation(document: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of `validate -json`, whose output is one document; empty when it is not one."""
    raise NotImplementedError


def redacted(text: str, secrets: Sequence[str]) -> str:
    """`text` without any of `secrets`."""
    raise NotImplementedError


def error_summary(diagnostics: Sequence[Diagnostic], *, lock: LockInfo | None = None, stderr: str = "") -> str:
    """What went wrong, for people, in at most 512 bytes: summaries and places, never raw output.

    `stderr` counts only where there are no diagnostics: the lines in it that begin an error.
    """
    raise NotImplementedError
