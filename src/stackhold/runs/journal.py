"""Adds a run's segment to the rollback journal, takes out what was undone, removes it when the stack has settled."""

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

    @property
    def journal(self) -> Journal | None:
        """As it was read; None when there is none."""
        return self._journal

    def append(self, segment: JournalSegment) -> None:
        """Put a segment at the end, unless the run has one already. Raises `StoreError`."""
        for _ in range(_TRIES):
            before = self._journal or Journal(self._keys.stack, self._keys.region)
            if any(known.run_id == segment.run_id for known in before.segments):
                return
            data = encode_journal(replace(before, segments=(*before.segments, segment)))
            expect = self._found.version if isinstance(self._found, Stored) else None
            answer = resolve.write(self._store, self._keys.journal, data, expect=expect, clock=self._clock)
            if isinstance(answer, Written):
                return
            self.found(answer)
        raise StoreUnanswered(f"{self._keys.journal} could not be written: it keeps changing", key=self._keys.journal)

    def rewrite(self, segments: tuple[JournalSegment, ...]) -> None:
        """Keep only these of the segments that were read, and whatever another run has added since; without any,
        remove the journal. Raises `StoreError`."""
        known = {segment.run_id for segment in self._journal.segments} if self._journal is not None else set()
        left = segments
        for _ in range(_TRIES):
            answer = self._put(left)
            if answer is None:
                return
            self.found(answer)
            others = self._journal.segments if self._journal is not None else ()
            left = (*segments, *(segment for segment in others if segment.run_id not in known))
        raise StoreUnanswered(f"{self._keys.journal} could not be written: it keeps changing", key=self._keys.journal)

    def _put(self, segments: tuple[JournalSegment, ...]) -> Stored | Absent | None:
        """Write or delete over the version that was read; another version when there is one now."""
        if not isinstance(self._found, Stored):
            return None
        if not segments:
            return resolve.delete(self._store, self._keys.journal, expect=self._found.version, clock=self._clock)
        assert self._journal is not None
        data = encode_journal(replace(self._journal, segments=segments))
        answer = resolve.write(self._store, self._keys.journal, data, expect=self._found.version, clock=self._clock)
        return None if isinstance(answer, Written) else answer

    def clear(self) -> None:
        """Remove an older journal: the stack agrees with what was asked. Raises `StoreError`."""
        if isinstance(self._found, Stored):
            resolve.delete(self._store, self._keys.journal, expect=self._found.version, clock=self._clock)
            self._found, self._journal = None, None
