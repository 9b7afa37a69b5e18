"""What the runtime may ask of its state backend, and what each request is answered, without HTTP.

A request that comes again because its answer was lost gets the same answer. A writer that may not write any more is
answered 409, which halts it; answers of 500 and above are for outages alone, since the runtime tries those again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from stackhold.errors import InputError, StackholdError, StoodDown, StoreError

if TYPE_CHECKING:
    from stackhold.engines.terraform.state_keeper import StateKeeper

_KEPT_REFUSALS: Final = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered."""

    status: int
    body: bytes = b""


class _LockBody(msgspec.Struct):
    """What the runtime says of a lock; the rest of it is free text for people."""

    ID: str


@dataclass(frozen=True, slots=True)
class HeldLock:
    """The state lock, in the words of the runtime that took it."""

    id: str
    body: bytes


class Backend:
    """What each request means. Thread-safe."""

    def __init__(self, keeper: StateKeeper) -> None:
        self._keeper = keeper
        self._held: HeldLock | None = None
        self._refusals: list[str] = []
        self._guard = threading.Lock()

    @property
    def held(self) -> HeldLock | None:
        """The lock, None when the state is not locked."""
        return self._held

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why requests were refused, the latest last: the runtime itself only says with which number."""
        with self._guard:
            return tuple(self._refusals)

    def forget_lock(self) -> None:
        """The process that held the lock is gone for certain."""
        with self._guard:
            self._held = None

    def read(self) -> Answer:
        """The state; 204 when there is none yet."""
        try:
            data = self._keeper.current()
        except StackholdError as error:
            return self._failed("the state cannot be read", error)
        return Answer(204) if data is None else Answer(200, data)

    def write(self, lock_id: str, data: bytes) -> Answer:
        """Take a new state from the one who holds the lock."""
        held = self._held
        if held is None or not lock_id or held.id != lock_id:
            return self._refused(409, "a write was refused: it does not come from the holder of the state lock")
        try:
            self._keeper.put(data)
        except StackholdError as error:
            return self._failed("the state was not written", error)
        return Answer(200)

    def lock(self, body: bytes) -> Answer:
        """Take the lock; 423 with the holder's words while another has it."""
        lock_id = _id_of(body)
        if not lock_id:
            return self._refused(400, "a request for the state lock names no lock")
        with self._guard:
            if self._held is None:
                self._held = HeldLock(lock_id, body)
            held = self._held
        return Answer(200) if held.id == lock_id else Answer(423, held.body)

    def unlock(self, body: bytes) -> Answer:
        """Give back the lock that is named. One that is not held has been given back before."""
        lock_id = _id_of(body)
        with self._guard:
            held = self._held
            if held is not None and held.id == lock_id:
                self._held = None
        if held is None or held.id == lock_id:
            return Answer(200)
        return self._refused(409, "the state lock was not released: the request does not name it", held.body)

    def _failed(self, what: str, error: StackholdError) -> Answer:
        """How an error is said to the runtime: it tries again what is answered 500 and above."""
        match error:
            case StoodDown():
                status = 409
            case StoreError():
                status = 503
            case InputError():
                status = 422
            case _:
                status = 409
        return self._refused(status, f"{what}: {error.message}")

    def _refused(self, status: int, why: str, body: bytes | None = None) -> Answer:
        self.note(why)
        return Answer(status, why.encode() if body is None else body)

    def note(self, why: str) -> None:
        """Keep why a request was refused."""
        with self._guard:
            self._refusals = [*self._refusals, why][-_KEPT_REFUSALS:]


def _id_of(body: bytes) -> str:
    """The id of the lock that a request names; empty when it names none."""
    try:
        return msgspec.json.decode(body, type=_LockBody).ID if body.strip() else ""
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
