"""Which version of a Terraform state is the current one, and how a new one becomes it.

The record points at one version by its number. A new version is written under the next free number first, and is the
current one when the record that says so is confirmed: a writer whose record is refused has changed nothing that others
see. What it had written stays, under its number, for people and for the run that comes after it.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from stackhold.engines.terraform.state_facts import facts_of, renumbered
from stackhold.errors import InputError, RecordUnreadable, StoodDown, StoreConflict, StoreUnanswered, StoreUnreachable
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.model.record import ResourceRecord, SetResource
from stackhold.model.run import StopCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.instant import Instant
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run
    from stackhold.ports.state_versions import StateVersions

STATE: Final = LogicalId("state")
STATE_TYPE: Final = TypeName("Stackhold::Terraform::State")
Answer = TypeVar("Answer")
_FIRST_PAUSE_MS: Final = 200
_LONGEST_PAUSE_MS: Final = 5_000
_TRIES: Final = 8


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a record says of the current version."""

    sequence: int
    lineage: str
    serial: int
    highest_serial: int
    """The highest serial of this and all former versions."""
    size: int
    sha256: str

    def is_of(self, data: bytes) -> bool:
        """Whether these bytes are that version."""
        return len(data) == self.size and hashlib.sha256(data).hexdigest() == self.sha256


def pointer_of(record: StateRecord | None) -> Pointer | None:
    """Which version a record points at; None when it has none. Raises `RecordUnreadable`."""
    resource = record.resources.get(STATE) if record is not None else None
    return None if resource is None else _pointer(resource)


def _pointer(resource: ResourceRecord) -> Pointer:
    properties = resource.properties
    lineage, sha256 = properties.get("lineage"), properties.get("sha256")
    serial, size = properties.get("serial"), properties.get("size")
    highest = properties.get("highestSerial", serial)
    is_number = resource.physical_id.isascii() and resource.physical_id.isdecimal()
    if (
        resource.type != STATE_TYPE
        or not is_number
        or not isinstance(lineage, str)
        or not isinstance(sha256, str)
        or not isinstance(serial, int)
        or not isinstance(size, int)
        or not isinstance(highest, int)
    ):
        raise RecordUnreadable(
            f"the record does not say which version of the state is the current one: {STATE} is damaged",
            key="state.json",
            hint="Nothing was overwritten. Put one of the record's backups in its place.",
        )
    return Pointer(int(resource.physical_id), lineage, serial, max(serial, highest), size, sha256)


def pointing_at(sequence: int, data: bytes, *, highest_serial: int) -> SetResource:
    """The change that makes a version the current one; raises `InputError` for a state that is not taken."""
    facts = facts_of(data)
    properties: dict[str, object] = {
        "lineage": facts.lineage,
        "serial": facts.serial,
        "highestSerial": max(highest_serial, facts.serial),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if not facts.is_encrypted:
        properties |= {"terraformVersion": facts.terraform_version, "resources": facts.resources}
    return SetResource(STATE, ResourceRecord(PhysicalId(str(sequence)), STATE_TYPE, properties, provisioned_by=None))


def find_unrecorded(versions: StateVersions, record: StateRecord | None, *, since: Instant) -> SetResource | None:
    """The change that takes on a version which a run wrote, and then died before its record said so.

    Only one that goes on from the recorded state (its lineage, a higher serial) and was written at `since` (the
    store's time) or later: the beginning of the dead run. None when there is none. Raises `StoreError`.
    """
    pointer = pointer_of(record)
    found: tuple[int, int] | None = None
    change: SetResource | None = None
    for entry in versions.list():
        if entry.modified < since or (pointer is not None and entry.sequence <= pointer.sequence):
            continue
        data = versions.read(entry.sequence)
        try:
            facts = facts_of(data)
        except InputError:
            continue
        if pointer is not None and (facts.lineage != pointer.lineage or facts.serial <= pointer.serial):
            continue
        if found is None or found < (facts.serial, entry.sequence):
            found = facts.serial, entry.sequence
            change = pointing_at(entry.sequence, data, highest_serial=pointer.highest_serial if pointer else 0)
    return change


class StateKeeper:
    """The state of one run's stack. Thread-safe."""

    def __init__(self, versions: StateVersions, record: StateRecord | None, run: Run) -> None:
        """`record` is the one that the run began with. Raises `RecordUnreadable`."""
        self._versions = versions
        self._run = run
        self._pointer = pointer_of(record)
        self._unrecorded: int | None = None
        """The highest serial in what the record does not know of; None while nobody has looked."""
        self._lock = threading.Lock()

    @property
    def pointer(self) -> Pointer | None:
        """The current version; None when there is none yet."""
        return self._pointer

    def current(self) -> bytes | None:
        """The state, None when there is none yet. Raises `InputError` when it is not what was written, `StoreError`."""
        with self._lock:
            pointer = self._pointer
            return None if pointer is None else self._read(pointer)

    def put(self, data: bytes) -> None:
        """Make this the state; returns when that is confirmed. The same state once more changes nothing.

        Raises `StoodDown` when the run may write no more, `InputError` for a state that is not taken, `StoreError`.
        """
        facts_of(data)
        with self._lock:
            if self._pointer is not None and self._pointer.is_of(data):
                return
            self._put(data, highest=self._through_outages(self._highest))

    def restore(self, sequence: int) -> int:
        """Make a former version the state again, under a serial above every one before; the number it has now.

        An encrypted one keeps its serial. Raises as `put`, and `InputError` when there is no such version.
        """
        with self._lock:
            highest = self._highest()
            self._put(renumbered(self._versions.read(sequence), serial=highest + 1), highest=highest)
            assert self._pointer is not None
            return self._pointer.sequence

    def highest_serial(self) -> int:
        """The highest serial that any version ever had, 0 when there is none. Raises `StoreError`."""
        with self._lock:
            return self._highest()

    def _read(self, pointer: Pointer) -> bytes:
        data = self._versions.read(pointer.sequence)
        if not pointer.is_of(data):
            raise InputError(
                f"version {pointer.sequence} of the state is not what was written: its digest differs",
                hint="Nothing was changed. Restore a former version: stackhold tf restore --version N.",
            )
        return data

    def _highest(self) -> int:
        """What the record does not know of counts too: a saved plan may have been made from it."""
        pointer = self._pointer
        if self._unrecorded is None:
            after = pointer.sequence if pointer is not None else 0
            serials = [self._serial_of(entry.sequence) for entry in self._versions.list() if entry.sequence > after]
            self._unrecorded = max(serials, default=0)
        return max(self._unrecorded, pointer.highest_serial if pointer is not None else 0)

    def _serial_of(self, sequence: int) -> int:
        try:
            return facts_of(self._versions.read(sequence)).serial
        except InputError:
            return 0

    def _put(self, data: bytes, *, highest: int) -> None:
        sequence = self._append(data)
        change = pointing_at(sequence, data, highest_serial=highest)
        self._check_ours()
        self._run.save([change], confirmed=True)
        self._check_ours()
        self._pointer = _pointer(change.resource)

    def _check_ours(self) -> None:
        """Whether the record still points where this run left it."""
        stop = self._run.stopping()
        if stop is not None and stop.cause in (StopCause.LOCK_LOST, StopCause.FOREIGN_WRITE):
            raise StoodDown("the state is not this run's to write any more")

    def _append(self, data: bytes) -> int:
        """Write the version under the next free number. What others had left there stays."""
        sequence = self._pointer.sequence + 1 if self._pointer is not None else 1
        for _ in range(_TRIES):
            try:
                self._through_outages(partial(self._versions.append, sequence, data))
            except StoreConflict:
                taken = self._through_outages(self._versions.list)
                sequence = max([sequence, *(entry.sequence for entry in taken)]) + 1
            else:
                return sequence
        raise StoreConflict("no number for a new version of the state is free: others keep taking it")

    def _through_outages(self, call: Callable[[], Answer]) -> Answer:
        """Outages are sat out for as long as the run may go on."""
        pause = _FIRST_PAUSE_MS
        while True:
            try:
                return call()
            except (StoreUnreachable, StoreUnanswered):
                self._run.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_MS)
