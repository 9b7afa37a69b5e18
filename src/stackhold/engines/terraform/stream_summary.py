"""What a step's stream says: each event that is worth telling, and the whole once the step is over.

Only values; `stream.py` makes them. What is told of an event holds no values of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.model.instant import Instant

EventKind = Literal["planned", "drift", "started", "progress", "done", "failed", "diagnostic", "summary", "output"]
LOCK_SUMMARY: Final = "Error acquiring the state lock"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning. `where` is `file:line`, empty when it points nowhere. `detail` may hold values."""

    severity: str
    summary: str
    detail: str = ""
    address: str = ""
    where: str = ""


class Touch(StrEnum):
    """How far a step came with one resource."""

    STARTED = "started"
    """It may or may not have happened."""
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Touched:
    """One change of one resource: the last that the stream said of it."""

    address: str
    action: str
    """`create`, `update` or `delete`; a replacement is two of them."""
    touch: Touch
    id_key: str = ""
    id_value: str = ""
    at: Instant | None = None
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """What is worth telling while the step runs. Holds no values."""

    kind: EventKind
    message: str
    address: str = ""
    action: str = ""
    seconds: int = 0
    id_value: str = ""
    at: Instant | None = None
    severity: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a step did, or a plan would do, in counts."""

    add: int = 0
    change: int = 0
    destroy: int = 0
    import_: int = 0


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """What is known of a step from its stream, once it is over."""

    product: str = ""
    """`terraform`, `opentofu`, or empty."""
    version: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    lock: LockInfo | None = None
    """The lock in the way, when the step could not get it."""
    is_lock_error: bool = False
    """Whether getting the lock failed, for whatever reason: only with `lock` is it held by somebody."""
    is_interrupted: bool = False
    """Whether the runtime says that it was told to stop. It may have done everything nonetheless."""
    touched: tuple[Touched, ...] = ()
    planned: tuple[tuple[str, str], ...] = ()
    drifted: tuple[tuple[str, str], ...] = ()
    changes: Changes | None = None
    """None as well when the stream has an error: the runtimes' counts are then of no use."""
    first_past_lock: Instant | None = None
    """A moment at which the step certainly held the state lock: the earliest that the stream shows."""
    emergency_state: bytes | None = None
    """The whole state, when the runtime could write it nowhere else. Holds secrets."""
    other_lines: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str | None], ...] = ()
    """Values of outputs as JSON, None for what is sensitive. Only for who may see them: never into a record or log."""

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that are errors."""
        return tuple(each for each in self.diagnostics if each.severity == "error")

    @property
    def has_error(self) -> bool:
        """Whether any diagnostic is an error: then nothing that the step left may be used."""
        return any(each.severity == "error" for each in self.diagnostics)
