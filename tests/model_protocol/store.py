"""A writer's client of the model's store: every request waits until the world carries it out, well or badly.

A request takes two turns: it is carried out in the first and answered in the second; between them anything may
happen. What goes wrong with it is its fate, chosen by whoever plays. The contents are those of a real adapter or of
`MemoryStore`; ages are counted by the store's simulated clock.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.errors import StoreConflict, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.model.instant import Instant
from stackhold.ports.store import Absent, Stored, StoreFacts, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model_protocol.referee import Referee
    from tests.model_protocol.writers import Writer

    from stackhold.ports.store import Entry, Store, Version
    from stackhold.testing.turns import Stage


class Fate(Enum):
    """What becomes of a request."""

    DONE = "done"
    ANSWER = "answer"
    """It was carried out; its answer arrives."""
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    LATE = "late"
    """Unanswered, and carried out at some later time."""
    TWICE = "twice"
    """Done, and a copy of it arrives later."""
    MET_ITSELF = "met itself"
    """Done, but a repetition on the way was answered instead: a conflict."""
    BUSY = "busy"
    """Answered with a conflict although nothing stands against it."""
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Change:
    """A write or delete that may be carried out later."""

    writer: Writer
    key: str
    data: bytes | None
    expect: Version | None
    knew: bool = False
    """Whether its sender knew then that its lock was lost."""


@dataclass(slots=True, eq=False)
class Request:
    """A request on its way, as players put it to the stage."""

    method: str
    key: str
    writer: Writer
    change: Change | None = None
    fate: Fate = Fate.DONE
    is_answer: bool = False
    arrives_at: int = 0
    """Not before."""


@dataclass(slots=True)
class Depot:
    """The contents that all clients share."""

    stage: Stage
    inner: Store
    referee: Referee
    facts: StoreFacts
    skew_ms: int = 0
    """How far the store's clock is ahead of true time."""
    wall: Callable[[], int] | None = None
    """The clock of a directory's machine, instead of the store's own."""
    whole_seconds: bool = True
    modified: dict[str, int] = field(default_factory=dict)
    late: list[Change] = field(default_factory=list)

    def now(self) -> Instant:
        """The store's time."""
        at = self.wall() if self.wall is not None else self.stage.now + self.skew_ms
        return Instant(at // 1000 * 1000 if self.whole_seconds else at)

    def read(self, writer: Writer, key: str) -> Stored | Absent:
        """What is there."""
        found = self.inner.read(key)
        self.referee.read(writer, key)
        if key == self.referee.keys.lock:
            writer.has_late_lock = False
        if isinstance(found, Absent):
            return Absent(self.now())
        return replace(found, modified=Instant(self.modified[key]), now=self.now())

    def change(self, change: Change, *, is_late: bool = False) -> Written:
        """Carry a write or delete out; raises `StoreConflict`."""
        if change.data is None:
            assert change.expect is not None
            self.inner.delete(change.key, expect=change.expect)
            written = Written(change.expect, self.now())
            self.modified.pop(change.key, None)
        else:
            written = self.inner.write(change.key, change.data, expect=change.expect)
            self.modified[change.key] = self.now()
        self.referee.wrote(
            change.writer, change.key, change.data, now=self.stage.now, is_late=is_late, knew=change.knew
        )
        return Written(written.version, self.now())

    def force(self, writer: Writer, key: str, data: bytes | None) -> None:
        """Write or delete without a condition, as other tools do."""
        found = self.inner.read(key)
        expect = found.version if isinstance(found, Stored) else None
        if data is not None or expect is not None:
            self.change(Change(writer, key, data, expect))

    def land(self, index: int) -> None:
        """Carry a late request out, if its condition still holds."""
        late = self.late.pop(index)
        with contextlib.suppress(StoreConflict):
            self.change(late, is_late=True)
            if late.key == self.referee.keys.lock:
                late.writer.has_late_lock = True


class ModelStore:
    """A `Store` for one writer."""

    def __init__(self, depot: Depot, writer: Writer) -> None:
        self._depot = depot
        self._writer = writer

    @property
    def facts(self) -> StoreFacts:
        """What it is called."""
        return self._depot.facts

    def read(self, key: str) -> Stored | Absent:
        """Read, in two turns."""
        fate = self._send("read", key)
        self._raise_if_down(fate, key)
        found = self._depot.read(self._writer, key)
        self._receive("read", key)
        if fate is not Fate.DONE:
            raise StoreUnreachable(f"no answer to a read of {key}", key=key)
        if key == self._depot.referee.keys.lock:
            self._depot.referee.told(self._writer, found.data if isinstance(found, Stored) else None)
        return found

    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:
        """Write, in two turns."""
        return self._change("write", Change(self._writer, key, bytes(data), expect, self._writer.was_told))

    def delete(self, key: str, *, expect: Version) -> None:
        """Delete, in two turns."""
        self._change("delete", Change(self._writer, key, None, expect, self._writer.was_told))

    def list(self, prefix: str) -> Iterator[Entry]:
        """List, in two turns."""
        self._raise_if_down(self._send("list", prefix), prefix)
        found = list(self._depot.inner.list(prefix))
        self._receive("list", prefix)
        return iter(found)

    def prepare(self) -> None:
        """Nothing to prove."""

    def _change(self, method: str, change: Change) -> Written:
        fate = self._send(method, change.key, change)
        self._raise_if_down(fate, change.key)
        outcome: Written | StoreConflict | None = None
        match fate:
            case Fate.REQUEST_LOST:
                pass
            case Fate.LATE:
                self._depot.late.append(change)
            case Fate.BUSY:
                outcome = StoreConflict(f"{change.key} is busy", key=change.key)
            case _:
                outcome = self._carried_out(change, fate)
        self._receive(method, change.key)
        if outcome is None or fate is Fate.ANSWER_LOST:
            raise StoreUnanswered(f"no answer about {change.key}", key=change.key)
        if isinstance(outcome, StoreConflict):
            raise outcome
        return outcome

    def _carried_out(self, change: Change, fate: Fate) -> Written | StoreConflict:
        try:
            written = self._depot.change(change)
        except StoreConflict as conflict:
            return conflict
        if fate is Fate.TWICE:
            self._depot.late.append(change)
        if fate is Fate.MET_ITSELF:
            return StoreConflict(f"{change.key} is not the version that was named", key=change.key)
        return written

    def _send(self, method: str, key: str, change: Change | None = None) -> Fate:
        request = Request(method, key, self._writer, change)
        self._depot.stage.send(request)
        return request.fate

    def _receive(self, method: str, key: str) -> None:
        self._depot.stage.send(Request(method, key, self._writer, fate=Fate.ANSWER, is_answer=True))

    def _raise_if_down(self, fate: Fate, key: str) -> None:
        if fate is Fate.UNREACHABLE:
            raise StoreUnreachable("the store cannot be reached", key=key)
        if fate is Fate.REFUSED:
            raise StoreRefused(f"access to {key} is denied", key=key)


if TYPE_CHECKING:
    _: type[Store] = ModelStore
