"""The beginning of a run that holds its lock: what it read, and the stamp that makes every earlier writer fail.

The stamp replaces exactly the version that the plan was made from. It goes out beside `run.json`; both must succeed.
On a takeover, or when a run file was left over, the stamp comes first and the run file is read after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.decide.record import empty_record, next_generation, next_version
from stackhold.model.codec import encode_record
from stackhold.model.run import IntentKind
from stackhold.ports.store import Absent, Stored, Written
from stackhold.runs import backups, resolve
from stackhold.runs.records import decode_own
from stackhold.runs.together import Beside

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intent
    from stackhold.ports.engine import Work
    from stackhold.ports.store import Store
    from stackhold.ports.threads import Threads
    from stackhold.runs.layout import Keys
    from stackhold.runs.lock import Acquired
    from stackhold.runs.parts import RunParts


_MAY_BE = {
    IntentKind.CREATE: "these may exist without being recorded",
    IntentKind.UPDATE: "these may have been changed, or not",
    IntentKind.DELETE: "these may be gone, or not",
}
"""What is not known of a resource whose operation was in flight, by its kind."""


class Refused(Enum):
    """Why a run could not begin from what it had read."""

    CHANGED = "changed"
    """We hold the lock, but record or run file are not what was read: read again, plan again."""
    LOST = "lost"
    """The lock is not ours any more."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Three reads in flight."""

    record: Beside[Stored | Absent]
    journal: Beside[Stored | Absent]
    run_file: Beside[Stored | Absent]

    @classmethod
    def start(cls, store: Store, keys: Keys, threads: Threads) -> Reads:
        """Send them."""
        return cls(
            record=Beside(threads, lambda: store.read(keys.record)),
            journal=Beside(threads, lambda: store.read(keys.journal)),
            run_file=Beside(threads, lambda: store.read(keys.run_file)),
        )


@dataclass(frozen=True, slots=True)
class Base:
    """The record as read: what a plan is made from, and what the stamp replaces."""

    found: Stored | Absent
    record: StateRecord | None


@dataclass(frozen=True, slots=True)
class Stamped:
    """The record as this run stamped it."""

    record: StateRecord
    written: Written


@dataclass(slots=True)
class Beginning:
    """What a run needs to begin."""

    parts: RunParts
    acquired: Acquired
    recovers: bool = False
    """Whether what was left over is looked for before it is carried on."""
    may_have_made_record: bool = False
    """Whether a stamp of this run was sent for a stack that had no record."""

    def read(self, reads: Reads) -> Base:
        """Take the answers of the reads. Raises `RecordUnreadable`, `RecordTooNew` and `StoreError`."""
        found = reads.record.result()
        self.parts.journal.found(reads.journal.result())
        self.parts.run_file.found(reads.run_file.result())
        return self.base(found)

    def base(self, found: Stored | Absent) -> Base:
        """Understand a record that was read."""
        if isinstance(found, Absent):
            return Base(found, None)
        return Base(found, decode_own(found.data, self.parts.keys))

    def stamp(self, base: Base, work: Work) -> Stamped | Refused:
        """Stamp the record and write the run file, or learn why that is refused. Raises `StoreError`."""
        record = self._next(base)
        backup = self._backup(base)
        must_be_first = self.acquired.replaced is not None or self.parts.run_file.must_look
        answer, is_listed = self._one_by_one(base, record, work) if must_be_first else self._beside(base, record, work)
        return self._judge(base, record, answer, backup, is_listed=is_listed)

    def stamp_first(self, base: Base) -> Stamped | Refused:
        """Stamp the record alone: every earlier writer fails before its run file is read. Raises `StoreError`."""
        record = self._next(base)
        backup = self._backup(base)
        return self._judge(base, record, self._write(base, record), backup, is_listed=True)

    def _next(self, base: Base) -> StateRecord:
        """The record with our stamp; a second stamp of this run has the generation of the first."""
        self.may_have_made_record = self.may_have_made_record or base.record is None
        keys, lock = self.parts.keys, self.parts.lock
        before = base.record or empty_record(keys.stack, keys.region, lineage=self.parts.clock.nonce())
        is_ours = before.lock_id == lock.id and before.generation is not None
        generation = next_generation(base.record, locked_at=self.acquired.locked_at)
        return next_version(
            before,
            lock_id=lock.id,
            generation=before.generation if is_ours and before.generation is not None else generation,
            now=lock.corrected_now(),
        )

    def _judge(
        self,
        base: Base,
        record: StateRecord,
        answer: Written | Stored | Absent,
        backup: Beside[str] | None,
        *,
        is_listed: bool,
    ) -> Stamped | Refused:
        if backup is not None and (warning := backup.result()):
            self.parts.log.warn(warning)
        is_stamped = isinstance(answer, Written)
        if not (is_stamped and is_listed) or self._is_beside_others(base):
            hold = self.parts.lock.look()
            if not hold.is_ours:
                return Refused.LOST
        if not isinstance(answer, Written) or not is_listed:
            return Refused.CHANGED
        self.parts.lock.generation = record.generation
        return Stamped(record, answer)

    def _beside(self, base: Base, record: StateRecord, work: Work) -> tuple[Written | Stored | Absent, bool]:
        listing = Beside(self.parts.threads, lambda: self._list(base, record, work))
        try:
            answer = self._write(base, record)
        finally:
            listed = listing.result()
        return answer, isinstance(listed, Written)

    def _one_by_one(self, base: Base, record: StateRecord, work: Work) -> tuple[Written | Stored | Absent, bool]:
        answer = self._write(base, record)
        if not isinstance(answer, Written):
            return answer, False
        self.parts.run_file.found(self.parts.store.read(self.parts.keys.run_file))
        if self.parts.control.is_lock_lost or (self.recovers and self.parts.run_file.must_look):
            return answer, False
        self.warn_of_leftovers()
        return answer, isinstance(self._list(base, record, work), Written)

    def _list(self, base: Base, record: StateRecord, work: Work) -> Written | Stored | Absent:
        """Write the run file."""
        return self.parts.run_file.write(
            work,
            generation=record.generation or 0,
            started_at=self.parts.lock.corrected_now(),
            replaces=-1 if base.record is None else base.record.serial,
        )

    def _write(self, base: Base, record: StateRecord) -> Written | Stored | Absent:
        expect = base.found.version if isinstance(base.found, Stored) else None
        return resolve.write(
            self.parts.store, self.parts.keys.record, encode_record(record), expect=expect, clock=self.parts.clock
        )

    def _backup(self, base: Base) -> Beside[str] | None:
        if not isinstance(base.found, Stored) or base.record is None:
            return None
        data, serial = base.found.data, base.record.serial
        return Beside(
            self.parts.threads,
            lambda: backups.keep(
                self.parts.store,
                self.parts.keys,
                self.parts.clock,
                data=data,
                at=self.acquired.locked_at,
                serial=serial,
            ),
        )

    def _is_beside_others(self, base: Base) -> bool:
        """Whether a tool without our fields wrote the record or held the lock: it may not heed ours."""
        replaced = self.acquired.replaced
        is_foreign_record = base.record is not None and base.record.lock_id is None
        return is_foreign_record or (replaced is not None and not replaced.is_ours_in_kind)

    def warn_of_leftovers(self) -> None:
        """Name what earlier runs left unresolved."""
        carried = self.parts.run_file.carried
        if not carried or not self.parts.run_file.must_look:
            return
        said = [
            f"{what}: {', '.join(_named(intent) for intent in carried if intent.kind is kind)}"
            for kind, what in _MAY_BE.items()
            if any(intent.kind is kind for intent in carried)
        ]
        self.parts.log.warn(
            f"an earlier run did not settle, and what it had in flight is carried on; {'; '.join(said)}"
        )


def _named(intent: Intent) -> str:
    name = intent.physical_id or intent.name
    return f"{intent.logical_id} ({name})" if name else intent.logical_id
