"""Saves changes to the record beside the work: at most one write in flight, the next carries everything since.

Every write replaces the version that was confirmed last. Whatever else is found there is a foreign write: only the
changes that are not saved yet are put on top of it. Writes are paced, so that bytes grow with the length of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackhold.decide import pacing
from stackhold.decide.record import (
    apply_changes,
    as_changes,
    contested,
    empty_record,
    has_same_resources,
    next_version,
    unsaved_ids,
    yielding,
)
from stackhold.errors import (
    RecordTooNew,
    RecordUnreadable,
    StoodDown,
    StoreError,
    StoreRefused,
    StoreUnanswered,
    StoreUnreachable,
)
from stackhold.model.codec import decode_record, encode_record
from stackhold.model.record import SetResource
from stackhold.model.run import StopCause
from stackhold.ports.store import Absent, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import RecordChange, StateRecord
    from stackhold.ports.store import Stored, Version
    from stackhold.runs.lock import Hold
    from stackhold.runs.parts import RunParts

_BIG = 256 * 1024
_FIRST_RETRY_MS = 200
_LONGEST_RETRY_MS = 5_000
_REBASES = 8
_PATIENCE_REFUSED_MS = 5_000
_PATIENCE_SILENT_MS = 180_000
_SLICE_S = 0.05


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A version of the record that the store confirmed. Both are None when there is no record."""

    record: StateRecord | None
    version: Version | None


class Saver:
    """Keeps the record up to date with a run. Thread-safe."""

    def __init__(self, parts: RunParts, *, base: StateRecord, version: Version) -> None:
        """`base` is the record as stamped."""
        self._parts = parts
        self._generation = base.generation or 0
        self._confirmed = Confirmed(base, version)
        self._serial = base.serial
        self._pending: list[RecordChange] = []
        self._in_flight: tuple[RecordChange, ...] = ()
        self._asked = 0
        self._done = 0
        self._theirs: dict[LogicalId, PhysicalId | None] = {}
        """Logical ids under which others recorded their own resources meanwhile, with what is ours there."""
        self._vanished: list[RecordChange] = []
        """What was saved in a record that is gone, and all that was changed since."""
        self._failure = ""
        self._is_closing = False
        self._closing_at = 0
        self._state = parts.threads.condition()
        self._hurry = parts.threads.event()
        self._thread = parts.threads.start(self._loop, name="stackhold-saver")

    @property
    def confirmed(self) -> Confirmed:
        """The record as the store last confirmed it."""
        return self._confirmed

    @property
    def failure(self) -> str:
        """Why the last save was given up; empty while all is well."""
        return self._failure

    @property
    def unsaved(self) -> tuple[str, ...]:
        """Physical ids that are in no record: their save was given up, or the record that held them is gone."""
        with self._state:
            changes = (*self._vanished, *self._in_flight, *self._pending)
            return unsaved_ids(changes, recorded=self._confirmed.record)

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        """Take changes. With `confirmed`, return when they are saved; raises `StoodDown` when that cannot be."""
        with self._state:
            self._pending.extend(changes)
            self._asked += len(changes)
            ticket = self._asked
            self._state.notify_all()
        if not confirmed:
            return
        self._hurry.set()
        with self._state:
            while self._done < ticket:
                if self._is_lost:
                    raise StoodDown("the record is not saved: the lock is not ours any more")
                if self._failure:
                    raise StoodDown(f"the record could not be saved: {self._failure}")
                if self._parts.control.is_over:
                    raise StoodDown("the record is not saved, and there is no time left to wait for it")
                self._state.wait(_SLICE_S)

    def flush(self) -> bool:
        """Save all that is left and end the thread; True when everything is in a confirmed save."""
        with self._state:
            self._is_closing = True
            self._state.notify_all()
        self._hurry.set()
        self._thread.join()
        return not self._failure

    def delete(self) -> bool:
        """After `flush`: delete the record if it still is our last version and nothing is in it.

        False when another write came before, or left something in it that this run does not know.
        """
        version, record = self._confirmed.version, self._confirmed.record
        parts = self._parts
        if version is None:
            return True
        if record is not None and (record.resources or record.pending_deletes):
            return False
        found = resolve.delete(parts.store, parts.keys.record, expect=version, clock=parts.clock)
        if found is None:
            self._confirmed = Confirmed(None, None)
        return found is None

    def _loop(self) -> None:
        while True:
            with self._state:
                while not self._is_closing and (not self._pending or self._is_lost):
                    self._state.wait()
                if not self._pending:
                    return
                batch = self._in_flight = tuple(self._pending)
                self._pending.clear()
            size = self._write(batch)
            with self._state:
                if size is None:
                    self._state.notify_all()
                    return
                self._in_flight = ()
                self._done += len(batch)
                self._state.notify_all()
            if size < _BIG or self._is_closing:
                self._rest(pacing.pause_after(size, floor_ms=pacing.SAVE_FLOOR_MS))
            else:
                self._rest_fully(pacing.pause_after(size, floor_ms=pacing.SAVE_FLOOR_MS))

    @property
    def _is_lost(self) -> bool:
        """Whether the lock is lost: then only one more save is made, at the end, with everything."""
        fence = self._parts.control.fence
        return fence is not None and fence.is_lost

    def _rest(self, ms: int) -> None:
        """Pause, unless somebody waits for a save."""
        if self._hurry.wait(ms / 1000) and not self._is_closing:
            self._hurry.clear()

    def _rest_fully(self, ms: int) -> None:
        """Pause for a big record, even when somebody waits: many waiters then share one write."""
        with self._state:
            self._state.wait_for(lambda: self._is_closing, timeout=ms / 1000)

    def _write(self, batch: tuple[RecordChange, ...]) -> int | None:
        """Save a batch; its size, or None when it was given up (then `failure` says why)."""
        try:
            return self._save(batch)
        except StoreError as error:
            self._failure = error.message
        except Exception as error:
            self._failure = f"a mistake of our own while saving: {type(error).__name__}: {error}"
        return None

    def _save(self, batch: tuple[RecordChange, ...]) -> int | None:
        for _ in range(_REBASES):
            target = self._next(self._confirmed.record, batch)
            data = encode_record(target)
            answer = self._send(data)
            if isinstance(answer, Written):
                self._confirmed = Confirmed(target, answer.version)
                self._note(batch)
                if self._vanished:
                    self._vanished.extend(batch)
                return len(data)
            if not self._rebase(answer, target, batch):
                return None
        self._failure = "it kept being changed by others"
        return None

    def _next(self, base: StateRecord | None, batch: tuple[RecordChange, ...]) -> StateRecord:
        parts = self._parts
        before = base or empty_record(parts.keys.stack, parts.keys.region, lineage=parts.clock.nonce())
        self._serial = max(self._serial, before.serial)
        record = next_version(
            replace(apply_changes(before, yielding(batch, to=self._theirs)), serial=self._serial),
            lock_id=parts.lock.id,
            generation=self._generation,
            now=parts.lock.corrected_now(),
        )
        self._serial = record.serial
        return record

    def _send(self, data: bytes) -> Written | Stored | Absent:
        """Write over the confirmed version; outages are sat out for as long as the lock or the grace allows."""
        parts = self._parts
        pause = _FIRST_RETRY_MS
        while True:
            try:
                return resolve.write(
                    parts.store, parts.keys.record, data, expect=self._confirmed.version, clock=parts.clock
                )
            except (StoreUnreachable, StoreUnanswered, StoreRefused) as error:
                if self._must_give_up(error, at=parts.clock.boot() + pause):
                    raise
            parts.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY_MS)

    def _look_at_lock(self) -> Hold:
        """Who holds the lock now; outages are sat out as for a save."""
        parts = self._parts
        pause = _FIRST_RETRY_MS
        while True:
            try:
                return parts.lock.look()
            except StoreError as error:
                if self._must_give_up(error, at=parts.clock.boot() + pause):
                    raise
            parts.clock.sleep(pause)
            pause = min(pause * 2, _LONGEST_RETRY_MS)

    def _must_give_up(self, error: StoreError, *, at: int) -> bool:
        """Whether a failing save is not tried again: the lock is lost, or time is up.

        While the work goes on, only the fence ends the trying. At the end a store that says no gets a few seconds,
        and one that says nothing a few minutes.
        """
        if self._is_lost or at >= self._parts.control.save_until:
            return True
        if not self._is_closing:
            return False
        self._closing_at = self._closing_at or at
        patience = _PATIENCE_REFUSED_MS if isinstance(error, StoreRefused) else _PATIENCE_SILENT_MS
        return at - self._closing_at >= patience

    def _rebase(self, found: Stored | Absent, target: StateRecord, batch: tuple[RecordChange, ...]) -> bool:
        """Another write came between: learn whether we may go on, and from what. False: give up."""
        parts = self._parts
        hold = self._look_at_lock()
        if not hold.is_ours:
            if parts.control.fence is not None:
                parts.control.fence.lose(hold.holder)
            self._failure = "the lock was lost and the record is another's now"
            if isinstance(found, Absent):
                self._failure = "the lock was lost and the record is gone"
                self._forget()
            return False
        before = self._confirmed.record
        if isinstance(found, Absent):
            parts.control.stop(StopCause.FOREIGN_WRITE)
            parts.log.warn(
                f"{parts.keys.record} was deleted by someone else; what this run saved before is gone from it"
            )
            self._forget()
            return True
        try:
            theirs = decode_record(found.data, key=parts.keys.record)
        except (RecordUnreadable, RecordTooNew) as error:
            parts.control.stop(StopCause.FOREIGN_WRITE)
            self._failure = f"someone else wrote the record: {error.message}"
            return False
        if theirs.lock_id == target.lock_id and theirs.serial == target.serial:
            before = target
        if not has_same_resources(theirs, before):
            parts.control.stop(StopCause.FOREIGN_WRITE)
            parts.log.warn(f"{parts.keys.record} was changed by someone else; nothing new is started")
        self._yield(theirs, batch)
        self._confirmed = Confirmed(theirs, found.version)
        return True

    def _forget(self) -> None:
        """The record is gone: nothing is confirmed any more, and what it held is in none."""
        record = self._confirmed.record
        if record is not None:
            self._vanished.extend(as_changes(record))
        self._confirmed = Confirmed(None, None)

    def _note(self, batch: tuple[RecordChange, ...]) -> None:
        """Remember what of ours now waits beside a resource of others."""
        for change in batch:
            if isinstance(change, SetResource) and change.logical_id in self._theirs:
                self._theirs[change.logical_id] = change.resource.physical_id

    def _yield(self, theirs: StateRecord, batch: tuple[RecordChange, ...]) -> None:
        """Where others recorded resources of their own, ours wait for their deletion beside them."""
        known = self._confirmed.record
        for name in sorted(contested(theirs, base=known, changes=batch)):
            ours = known.resources.get(name) if known is not None else None
            self._theirs.setdefault(name, ours.physical_id if ours is not None else None)
