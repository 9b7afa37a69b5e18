"""Writes `run.json` before a run acts and takes it away when every entry is resolved.

Only the run that holds the lock writes or deletes it, by compare-and-swap. What an earlier run left is looked for;
what may still come after that is carried on into ours, and stays when we are done.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.decide.intents import carried_on, identity_of, left_by, outlived, still_open, unresolved
from stackhold.errors import Bug, RecordTooNew, RecordUnreadable, StoodDown
from stackhold.model.codec import decode_run_file, encode_run_file
from stackhold.model.codec.run_file import INTENT_FIELDS
from stackhold.model.instant import Instant
from stackhold.model.run import RunFile
from stackhold.ports.store import Absent, Stored, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.decide.intents import Marked
    from stackhold.model.ids import LockId, LogicalId, PhysicalId
    from stackhold.model.instant import Millis
    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intent, IntentState, RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Recovery, Work
    from stackhold.ports.store import Store, Version
    from stackhold.ports.threads import Threads
    from stackhold.runs.layout import Keys


class RunFileKeeper:
    """The `run.json` of one run."""

    def __init__(
        self,
        *,
        store: Store,
        keys: Keys,
        clock: Clock,
        threads: Threads,
        identity: RunIdentity,
        lock_id: LockId,
        may_send: Callable[[], bool],
    ) -> None:
        """`may_send` is asked directly before each write: no once it is known that the lock is not ours."""
        self._store = store
        self._keys = keys
        self._clock = clock
        self._identity = identity
        self._lock_id = lock_id
        self._may_send = may_send
        self._version: Version | None = None
        self._file: RunFile | None = None
        self._leftover: RunFile | None = None
        self._serial = 0
        self._looked_at: Version | None = None
        self._read_at = Instant(0)
        self._open: tuple[Intent, ...] = ()
        self._carried: tuple[Intent, ...] = ()
        self._own: tuple[Intent, ...] = ()
        self._states: dict[Marked, IntentState] = {}
        self._guard = threading.Lock()
        self._noting = threads.lock()

    def found(self, answer: Stored | Absent) -> None:
        """What a read showed. Raises `RecordUnreadable`."""
        self._read_at = answer.now
        if isinstance(answer, Absent):
            self._version, self._leftover, self._open = None, None, ()
            return
        self._leftover = decode_run_file(answer.data, key=self._keys.run_file)
        self._version = answer.version
        self._serial = max(self._serial, self._leftover.serial)
        if self.must_look:
            self._open = carried_on(self._leftover, own_run=self._identity.run_id, seen_at=answer.now)

    @property
    def is_left_over(self) -> bool:
        """Whether an earlier run left one behind."""
        return self._leftover is not None and self._leftover.run_id != self._identity.run_id

    @property
    def must_look(self) -> bool:
        """Whether an earlier run left one behind, and nobody has looked yet for what it lists."""
        return self.is_left_over and self._looked_at != self._version

    @property
    def left_over(self) -> RunFile | None:
        """What an earlier run left behind."""
        return self._leftover if self.is_left_over else None

    @property
    def carried(self) -> tuple[Intent, ...]:
        """What earlier runs left unresolved."""
        return self._open

    def looked(self, recovery: Recovery, *, ttl: Millis, is_after_expiry: bool) -> None:
        """What was left over was looked for: only what may still come is carried on."""
        assert self._leftover is not None
        self._looked_at = self._version
        self._open = still_open(
            left_by(self._leftover),
            seen=recovery.seen,
            unknown=recovery.unknown,
            looked_at=self._read_at,
            ttl=ttl,
            is_after_expiry=is_after_expiry,
        )

    def write(
        self, work: Work, *, generation: int, started_at: Instant, replaces: int = -1
    ) -> Written | Stored | Absent:
        """Write our own over what was found; anything but `Written` is a foreign write. Raises `StoreError`.

        `replaces` is the serial of the record that the run's stamp replaces.
        """
        self._serial += 1
        self._own = tuple(work.intents)
        again = set(map(identity_of, self._own))
        self._carried = tuple(intent for intent in self._open if identity_of(intent) not in again)
        self._file = RunFile(
            run_id=self._identity.run_id,
            lock_id=self._lock_id,
            serial=self._serial,
            operation=self._identity.operation,
            owner=self._identity.owner,
            started_at=started_at,
            generation=generation,
            intents=(*self._own, *self._carried),
            plan=tuple(work.steps),
            replaces=replaces,
        )
        return self._send(self._file)

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """How far our intents for a resource have come, or the one for that very resource. The last word counts."""
        with self._guard:
            if physical_id is None:
                for key in [key for key in self._states if key[0] == logical_id]:
                    del self._states[key]
            self._states[logical_id, physical_id] = state

    def note(self, logical_id: LogicalId, extra: JsonMap) -> None:
        """Keep this beside our own intents for a resource; returns when the file that says so is confirmed.

        Raises `StoodDown` when the file is not ours any more, and `StoreError`; the note then is in what comes next.
        """
        if taken := sorted(extra.keys() & INTENT_FIELDS):
            raise Bug(f"a note for {logical_id} would stand in place of {', '.join(taken)}")
        with self._noting:
            if self._file is None or all(intent.logical_id != logical_id for intent in self._own):
                raise Bug(f"a note for {logical_id}, for which this run has no intent")
            self._own = tuple(
                replace(intent, extra=dict(extra)) if intent.logical_id == logical_id else intent
                for intent in self._own
            )
            self._serial += 1
            self._file = replace(self._file, serial=self._serial, intents=(*self._own, *self._carried))
            answer = self._send(self._file)
            while self._is_landed(answer):
                answer = self._send(self._file)
            if not isinstance(answer, Written):
                raise StoodDown("the run file is not ours any more")

    @property
    def left(self) -> tuple[Intent, ...]:
        """What stays unresolved when the run ends now."""
        with self._guard:
            states: Mapping[Marked, IntentState] = dict(self._states)
        return unresolved(self._own, states, self._open)

    def settle(self, record: StateRecord | None = None, *, is_over: bool = False) -> bool:
        """Delete it, or write what stays unresolved; False when another wrote it. Raises `StoreError`.

        With `is_over`, `record` is the one that the run leaves: what was meant for resources that it has no longer is
        done.
        """
        if is_over:
            self._open = outlived(self._open, record)
        if self._version is None or (self._file is None and self._looked_at != self._version):
            return True
        left = self.left
        if not left:
            return self._delete()
        before = self._file or self._leftover
        assert before is not None
        self._serial += 1
        kept = replace(before, lock_id=self._lock_id, serial=self._serial, intents=left, replaces=None)
        answer = self._send(kept)
        while self._is_landed(answer):
            answer = self._send(kept)
        return isinstance(answer, Written)

    def _is_landed(self, found: Written | Stored | Absent | None) -> bool:
        """Whether it is a write of ours that was never answered: then that is what we replace now."""
        if not isinstance(found, Stored) or found.version == self._version:
            return False
        try:
            file = decode_run_file(found.data, key=self._keys.run_file)
        except (RecordUnreadable, RecordTooNew):
            return False
        if file.lock_id != self._lock_id or file.serial > self._serial:
            return False
        self._version = found.version
        return True

    def undo(self) -> None:
        """Nothing was done after all: our own entries go, what was carried stays. Raises `StoreError`."""
        self._own = ()
        self.settle()

    def _send(self, file: RunFile) -> Written | Stored | Absent:
        answer = resolve.write(
            self._store,
            self._keys.run_file,
            encode_run_file(file),
            expect=self._version,
            clock=self._clock,
            may_send=self._may_send,
        )
        if isinstance(answer, Written):
            self._version = answer.version
        return answer

    def _delete(self) -> bool:
        found: Stored | None = None
        while self._version is not None:
            found = resolve.delete(
                self._store, self._keys.run_file, expect=self._version, clock=self._clock, may_send=self._may_send
            )
            if found is None:
                self._version = None
            elif not self._is_landed(found):
                break
        return found is None
