"""When a run that was asked to stop gives up even what is in flight, and how its end is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import SECOND
from stackhold.model.run import Outcome, StopCause

if TYPE_CHECKING:
    from stackhold.model.instant import BootInstant

_LONGEST_MARGIN = 30 * SECOND
_LONGEST_LEAVING = 2 * SECOND

_ENDS: dict[StopCause, tuple[Outcome, ExitCode]] = {
    StopCause.SIGINT: (Outcome.INTERRUPTED, ExitCode.INTERRUPTED),
    StopCause.SIGTERM: (Outcome.INTERRUPTED, ExitCode.TERMINATED),
    StopCause.CANCEL: (Outcome.INTERRUPTED, ExitCode.TERMINATED),
    StopCause.DEADLINE: (Outcome.DEADLINE_EXCEEDED, ExitCode.DEADLINE),
    StopCause.LOCK_LOST: (Outcome.LOCK_LOST, ExitCode.FAILED),
    StopCause.STOOD_DOWN: (Outcome.LOCK_LOST, ExitCode.FAILED),
    StopCause.FOREIGN_WRITE: (Outcome.FAILED, ExitCode.FAILED),
}

_REASONS: dict[StopCause, str] = {
    StopCause.DEADLINE: "deadline",
    StopCause.SIGINT: "interrupted",
    StopCause.SIGTERM: "interrupted",
    StopCause.CANCEL: "interrupted",
}


def margin(grace_ms: int) -> int:
    """The end of the grace that belongs to saving and releasing: 30 s, or a quarter of a short grace."""
    return min(_LONGEST_MARGIN, grace_ms // 4)


def is_over(*, stopped_at: BootInstant | None, now: BootInstant, grace_ms: int) -> bool:
    """Whether the grace less its margin has passed since the stop."""
    return stopped_at is not None and now - stopped_at >= grace_ms - margin(grace_ms)


def leaves_after(grace_ms: int) -> int:
    """How long after a stop the process ends whatever still hangs: late in the margin, so that saving has its time."""
    return grace_ms - min(_LONGEST_LEAVING, margin(grace_ms) // 2)


def end_of(cause: StopCause | None, *, outcome: Outcome, exit_code: ExitCode) -> tuple[Outcome, ExitCode]:
    """How a run ends: what stopped it is put over what its work says of itself."""
    return (outcome, exit_code) if cause is None else _ENDS[cause]


def journal_reason(cause: StopCause | None, *, is_rollback: bool) -> str:
    """Why a run did not settle, in the journal's words."""
    if cause in _REASONS:
        return _REASONS[cause]
    return "rollback-partial" if is_rollback else "failed"
