"""Adds a run's segment to the rollback journal, or removes the journal when the stack has settled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.errors import StoreUnanswered
from stackhold.model.codec import decode_journal, encode_journal
from stackhold.model.journal import Journal
from stackhold.ports.store import Absent, Stored, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from stackhold.model.journal import JournalSegment
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_TRIES = 8


class JournalKeeper:
    """The journal of one stack, from the version that the run read."""

    def __init__(self, *, store: Store, keys: Keys, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._found: Stored | Absent | None = None
        self._journal: Journal | None = None

    def found(self, answer: Stored | Absent) -> None:
        """What a read showed. Raises `RecordUnreadable` and `RecordTooNew`."""
        self._found = answer
        self._journal = None
        if isinstance(answer, Stored):
            self._journal = decode_journal(answer.data, key=self._keys.journal)

    def append(self, segment: JournalSegment) -> None:
        """Put a segment at the end. Raises `StoreError`."""
        for _ in range(_TRIES):
            before = self._journal or Journal(self._keys.stack, self._keys.region)
            data = encode_journal(replace(before, segments=(*before.segments, segment)))
            expect = self._found.version if isinstance(self._found, Stored) else None
            answer = resolve.write(self._store, self._keys.journal, data, expect=expect, clock=self._clock)
            if isinstance(answer, Written):
                return
            self.found(answer)
        raise StoreUnanswered(f"{self._keys.journal} could not be written: it keeps changing", key=self._keys.journal)

    def clear(self) -> None:
        """Remove an older journal: the stack agrees with what was asked. Raises `StoreError`."""
        if isinstance(self._found, Stored):
            resolve.delete(self._store, self._keys.journal, expect=self._found.version, clock=self._clock)
            self._found, self._journal = None, None
