"""What a run that was killed may have left behind in a backend, and what proves that a lock there is that run's. Pure.

A runtime that is killed leaves its state lock for ever. It may be cleared only when the dead run's own notes prove it:
the same backend, the same holder, and a time of creation between the start of that run's step and the first event of
that step that only the holder of the lock can print. Everybody else's lock is reported, never cleared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from stackhold.engines.terraform.diagnostics import Touched
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class StepNote:
    """What a run writes down in `run.json` before a step that takes the state lock."""

    run_id: str
    step: str
    started_at: Instant
    """By the clock of the host, which is also what the runtime puts into its lock."""
    holder: str
    """`user@hostname`, as the runtime names it."""
    backend: str
    """A digest that tells one place of a state from another; empty when it is not known."""
    directory: str
    """The module."""
    workdir: str
    """Where the streams of the run are, on that host."""

    @property
    def is_beginning(self) -> bool:
        """Whether the run had not come to take the state lock."""
        return not self.step

    def document(self) -> JsonMap:
        """As it is stored."""
        return {
            "runId": self.run_id,
            "step": self.step,
            "startedAt": self.started_at,
            "holder": self.holder,
            "backend": self.backend,
            "directory": self.directory,
            "workdir": self.workdir,
        }


def beginning(run_id: str, *, holder: str, workdir: str) -> StepNote:
    """What a run writes down before its first step of any kind."""
    return StepNote(run_id, step="", started_at=Instant(0), holder=holder, backend="", directory="", workdir=workdir)


def note_from(document: JsonMap) -> StepNote | None:
    """Read a note; None for anything that is none."""
    started_at = document.get("startedAt")
    texts = [document.get(name) for name in ("runId", "step", "holder", "backend", "directory", "workdir")]
    if not isinstance(started_at, int) or not all(isinstance(text, str) for text in texts):
        return None
    run_id, step, holder, backend, directory, workdir = map(str, texts)
    return StepNote(run_id, step, Instant(started_at), holder, backend, directory, workdir)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a dead run's last step."""

    note: StepNote
    first_past_lock: Instant | None = None
    """When its stream first showed that it held the lock; None when it never did, or when the stream is not here."""
    touched: tuple[Touched, ...] = ()
    """What its streams say of the resources that it changed."""
    emergency_state: bytes | None = None
    """A whole state that its runtime could write nowhere but into its stream."""
    is_running: bool = False
    """Whether a process of that run is alive on this host."""


def proves(evidence: Evidence, lock: LockInfo, *, backend: str) -> bool:
    """Whether this lock is certainly the dead run's."""
    note = evidence.note
    if evidence.is_running or evidence.first_past_lock is None or lock.created is None:
        return False
    if not note.backend or note.backend != backend or lock.who != note.holder:
        return False
    return note.started_at <= lock.created <= evidence.first_past_lock


def why_not(evidence: Evidence, lock: LockInfo, *, backend: str) -> str:
    """Why a lock is not cleared, for people."""
    note = evidence.note
    if evidence.is_running:
        return "a process of that run is still at work on this host"
    if note.is_beginning:
        return "that run had not come to take the lock"
    if not note.backend or note.backend != backend:
        return "that run worked on another backend"
    if lock.who != note.holder:
        return f"that run was {note.holder}, and the lock is of {lock.who or 'somebody unnamed'}"
    if evidence.first_past_lock is None:
        return "nothing shows that that run had the lock"
    return "the lock was not made while that run took its lock"
