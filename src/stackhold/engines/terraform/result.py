"""The result document: what a run of the runner came to, in at most 4096 bytes of JSON.

It is the run's record where there is no store, and has to fit a container's termination message. What does not fit is
dropped, the least important first; it always parses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stackhold.engines.terraform.diagnostics import Changes
    from stackhold.engines.terraform.planfile import DriftSummary, PlanSummary

RESULT_VERSION: Final = 1
RESULT_LIMIT: Final = 4096


class FailureKind(StrEnum):
    """Why a run did not succeed."""

    IMAGE_LAYOUT = "image-layout"
    STEP = "step"
    INTERRUPTED = "interrupted"
    BLOCKED = "blocked"
    PLAN_CHANGED = "plan-changed"


@dataclass(frozen=True, slots=True)
class Image:
    """Where module and providers came from."""

    ref: str = ""
    providers_mirror: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeUsed:
    """Which runtime carried the steps out."""

    command: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class StepDone:
    """One step that was taken. `exit` is negative for a signal."""

    name: str
    exit: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong. `tail` is a curated summary of at most 512 bytes."""

    kind: FailureKind
    step: str = ""
    tail: str = ""


@dataclass(frozen=True, slots=True)
class ResultDocument:
    """All of it. What is None was not done, or was dropped to make it fit."""

    op: str
    image: Image | None = None
    runtime: RuntimeUsed | None = None
    steps: tuple[StepDone, ...] = ()
    drift: DriftSummary | None = None
    error: Failure | None = None
    changes: Changes | None = None
    plan: PlanSummary | None = None


def encode(document: ResultDocument) -> bytes:
    """The document as JSON, at most RESULT_LIMIT bytes whatever is in it."""
    raise NotImplementedError


def decode(data: bytes) -> ResultDocument:
    """The document that `encode` wrote. Raises InputError for anything else."""
    raise NotImplementedError
