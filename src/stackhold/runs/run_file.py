"""Writes `run.json` before a run acts and takes it away when every entry is resolved.

Only the run that holds the lock writes or deletes it, by compare-and-swap. What an earlier run left unresolved is
carried on into ours, and stays when we are done.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stackhold.decide.intents import carried_on, unresolved
from stackhold.model.codec import decode_run_file, encode_run_file
from stackhold.model.run import RunFile
from stackhold.ports.store import Absent, Stored, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.decide.intents import Marked
    from stackhold.model.ids import LockId, LogicalId, PhysicalId
    from stackhold.model.instant import Instant
    from stackhold.model.run import Intent, IntentState, RunIdentity
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Work
    from stackhold.ports.store import Store, Version
    from stackhold.runs.layout import Keys


class RunFileKeeper:
    """The `run.json` of one run."""

    def __init__(
        self,
        *,
        store: Store,
        keys: Keys,
        clock: Clock,
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
        self._carried: tuple[Intent, ...] = ()
        self._own: tuple[Intent, ...] = ()
        self._states: dict[Marked, IntentState] = {}
        self._guard = threading.Lock()

    def found(self, answer: Stored | Absent) -> None:
        """What a read showed. Raises `RecordUnreadable`."""
        if isinstance(answer, Absent):
            self._version, self._leftover, self._carried = None, None, ()
            return
        self._leftover = decode_run_file(answer.data, key=self._keys.run_file)
        self._version = answer.version
        self._serial = max(self._serial, self._leftover.serial)
        self._carried = carried_on(self._leftover, own_run=self._identity.run_id, seen_at=answer.now)

    @property
    def is_left_over(self) -> bool:
        """Whether an earlier run left one behind."""
        return self._leftover is not None and self._leftover.run_id != self._identity.run_id

    @property
    def carried(self) -> tuple[Intent, ...]:
        """What earlier runs left unresolved."""
        return self._carried

    def write(self, work: Work, *, generation: int, started_at: Instant) -> Written | Stored | Absent:
        """Write our own over what was found; anything but `Written` is a foreign write. Raises `StoreError`."""
        self._serial += 1
        self._own = tuple(work.intents)
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
        )
        return self._send(self._file)

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """How far our intents for a resource have come, or the one for that very resource. The last word counts."""
        with self._guard:
            if physical_id is None:
                for key in [key for key in self._states if key[0] == logical_id]:
                    del self._states[key]
            self._states[logical_id, physical_id] = state

    @property
    def left(self) -> tuple[Intent, ...]:
        """What stays unresolved when the run ends now."""
        with self._guard:
            states: Mapping[Marked, IntentState] = dict(self._states)
        return unresolved(self._own, states, self._carried)

    def settle(self) -> bool:
        """Delete it, or write what stays unresolved; False when another wrote it. Raises `StoreError`."""
        if self._file is None or self._version is None:
            return True
        left = self.left
        if not left:
            return self._delete()
        self._serial += 1
        kept = RunFile(
            run_id=self._file.run_id,
            lock_id=self._file.lock_id,
            serial=self._serial,
            operation=self._file.operation,
            owner=self._file.owner,
            started_at=self._file.started_at,
            generation=self._file.generation,
            intents=left,
            plan=self._file.plan,
        )
        return isinstance(self._send(kept), Written)

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
        assert self._version is not None
        found = resolve.delete(
            self._store, self._keys.run_file, expect=self._version, clock=self._clock, may_send=self._may_send
        )
        if found is None:
            self._version = None
        return found is None
