"""What a store says about stacks, their records, locks and runs, for commands that take no lock.

Reads only, works while a run holds the lock, and from any machine. What cannot be read is shown with its reason
beside everything that can; only who asks for one object by name gets the error itself.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.decide.lock import Held, is_stale, silence
from stackhold.errors import InputError, RecordTooNew, RecordUnreadable, StoreError
from stackhold.model.codec import decode_lock, decode_run_log
from stackhold.model.ids import LogicalId, RunId
from stackhold.ports.store import Stored
from stackhold.runs.holder_process import pid_gone
from stackhold.runs.layout import EVENTS, LOCK, RECORD, RUN_FILE, TERRAFORM, Keys, every_prefix, stacks, stacks_prefix
from stackhold.runs.records import decode_own

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackhold.model.ids import Region, StackName
    from stackhold.model.instant import Instant
    from stackhold.model.lock import Lock
    from stackhold.model.record import StateRecord
    from stackhold.model.run_log import RunLog
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Entry, Store, Version

_READERS = 8
_LIVING = frozenset({RECORD, LOCK, RUN_FILE})
_STATE = LogicalId("state")
"""What a Terraform stack's record calls the state that the store keeps for it."""


@dataclass(frozen=True, slots=True)
class LockView:
    """A lock as one read found it. `lock` is None when it cannot be read; `unreadable` then says why."""

    lock: Lock | None
    unreadable: str
    version: Version
    data: bytes
    silent_ms: int
    """How long it has not been written, by the store's time."""
    now: Instant
    """The store's time at that read."""
    is_stale: bool
    """Whether the next run would take it over."""
    pid_gone: int | None = None
    """The holder's process id when it was one of this host and is running no longer."""

    @property
    def expires_in_ms(self) -> int | None:
        """How long until a silent holder loses it; None where no end is known."""
        if self.lock is None:
            return None
        if self.lock.ttl is not None:
            return self.lock.ttl - self.silent_ms
        return None if self.lock.expires_at is None else self.lock.expires_at - self.now


@dataclass(frozen=True, slots=True)
class RecordView:
    """A record as one read found it. `record` is None when it cannot be read; `unreadable` then says why."""

    record: StateRecord | None
    unreadable: str
    data: bytes
    modified: Instant
    error: RecordUnreadable | RecordTooNew | None = None

    def required(self) -> StateRecord:
        """The record; raises the error that says why it cannot be read."""
        if self.record is not None:
            return self.record
        assert self.error is not None
        raise self.error


@dataclass(frozen=True, slots=True)
class StackView:
    """One stack in one region or workspace: its record, its lock, either of which may be absent."""

    keys: Keys
    record: RecordView | None
    lock: LockView | None
    is_locked: bool = False
    """Whether a lock is there, read or not."""

    @property
    def resources(self) -> int | None:
        """How many resources it has: of a Terraform stack those in its state. None where the store cannot say: the
        record is not readable, or the state is sealed or in a backend of its own."""
        if self.record is None:
            return 0
        record = self.record.record
        if record is None:
            return None
        return _in_state(record) if self.keys.is_terraform else len(record.resources)


def list_stacks(store: Store, clock: Clock, *, prefix: str, with_locks: bool = True) -> tuple[StackView, ...]:
    """Every stack of one kind that has a record or a lock, by name and place; without `with_locks` no lock is read."""
    return _views(store, clock, stacks(prefix, store.list(stacks_prefix(prefix))), with_locks=with_locks)


def list_every_stack(store: Store, clock: Clock, *, prefix: str, with_locks: bool = True) -> tuple[StackView, ...]:
    """The same of both kinds: the stacks of AWS and the Terraform stacks beside them."""
    return _views(store, clock, _of_both_kinds(store, prefix, below=""), with_locks=with_locks)


def places_of(store: Store, *, prefix: str, stack: StackName) -> tuple[Keys, ...]:
    """Where a stack of this name has a record, a lock or a run file, of either kind."""
    found = {
        **_of_both_kinds(store, prefix, below=f"{stack}/"),
        **_of_both_kinds(store, prefix, below=f"{TERRAFORM}/{stack}/"),
    }
    return tuple(sorted((keys for keys in found if keys.stack == stack and _LIVING & set(found[keys])), key=_by_name))


def _of_both_kinds(store: Store, prefix: str, *, below: str) -> dict[Keys, Mapping[str, Entry]]:
    """What one listing has of the stacks of AWS and of Terraform."""
    own, terraform = every_prefix(prefix)
    entries = list(store.list(stacks_prefix(own) + below))
    return {**stacks(own, entries), **stacks(terraform, entries)}


def _views(
    store: Store, clock: Clock, found: Mapping[Keys, Mapping[str, Entry]], *, with_locks: bool
) -> tuple[StackView, ...]:
    known = sorted((keys for keys in found if {RECORD, LOCK} & set(found[keys])), key=_by_name)

    def view(keys: Keys) -> StackView:
        record = read_record(store, keys) if RECORD in found[keys] else None
        lock = read_lock(store, clock, keys) if with_locks and LOCK in found[keys] else None
        is_locked = lock is not None if with_locks else LOCK in found[keys]
        return StackView(keys=keys, record=record, lock=lock, is_locked=is_locked)

    with ThreadPoolExecutor(_READERS) as readers:
        views = list(readers.map(view, known))
    return tuple(each for each in views if each.record is not None or each.is_locked)


def read_stack(store: Store, clock: Clock, keys: Keys) -> StackView:
    """One stack; raises `InputError` when it has neither record nor lock."""
    record, lock = read_record(store, keys), read_lock(store, clock, keys)
    if record is None and lock is None:
        raise no_such_stack(store, keys)
    return StackView(keys=keys, record=record, lock=lock, is_locked=lock is not None)


def read_record(store: Store, keys: Keys) -> RecordView | None:
    """The record, None when there is none."""
    found = store.read(keys.record)
    if not isinstance(found, Stored):
        return None
    try:
        record = decode_own(found.data, keys)
    except (RecordUnreadable, RecordTooNew) as error:
        return RecordView(None, unreadable=error.message, data=found.data, modified=found.modified, error=error)
    return RecordView(record, unreadable="", data=found.data, modified=found.modified)


def read_lock(store: Store, clock: Clock, keys: Keys) -> LockView | None:
    """The lock, None when nobody holds it."""
    found = store.read(keys.lock)
    if not isinstance(found, Stored):
        return None
    try:
        lock, why = decode_lock(found.data, key=keys.lock), ""
    except RecordUnreadable as error:
        lock, why = None, error.message
    silent_ms = silence(lock, modified=found.modified, store_now=found.now, boot=clock.boot(), boot_id=clock.boot_id())
    held = Held(
        lock=lock,
        silent_ms=silent_ms,
        store_now=found.now,
        record_silent_ms=_record_silence(store, keys) if lock is not None and not lock.is_ours_in_kind else None,
    )
    return LockView(
        lock=lock,
        unreadable=why,
        version=found.version,
        data=found.data,
        silent_ms=silent_ms,
        now=found.now,
        is_stale=is_stale(held),
        pid_gone=pid_gone(lock.owner) if lock is not None else None,
    )


def _record_silence(store: Store, keys: Keys) -> int | None:
    """How long the record has not been written: a tool that does not renew its lock still writes that."""
    found = store.read(keys.record)
    return max(0, found.now - found.modified) if isinstance(found, Stored) else None


def find_region(store: Store, *, prefix: str, stack: StackName) -> Region | None:
    """The region of a stack that is known in one region only; None when it is known nowhere.

    Raises `InputError` when several regions have it.
    """
    found = stacks(prefix, store.list(f"{stacks_prefix(prefix)}{stack}/"))
    regions = sorted({keys.region for keys, names in found.items() if keys.stack == stack and _is_known(names)})
    if len(regions) > 1:
        raise InputError(f"{stack} is recorded in {', '.join(regions)}", hint="Choose one with --region.")
    return regions[0] if regions else None


def run_ids(store: Store, keys: Keys) -> Sequence[RunId]:
    """The runs that left a log, oldest first."""
    names = (entry.key.removeprefix(keys.events) for entry in store.list(keys.events))
    return sorted(RunId(name.removesuffix(".json")) for name in names if name.endswith(".json") and "/" not in name)


def read_run(store: Store, keys: Keys, run_id: RunId) -> RunLog | None:
    """One run's log, None when there is none; raises `RecordUnreadable`."""
    key = keys.event(run_id)
    found = store.read(key)
    return decode_run_log(found.data, key=key) if isinstance(found, Stored) else None


def is_known(store: Store, keys: Keys) -> bool:
    """Whether a stack has a record, a lock, or the run file of a run that did not settle."""
    return any(isinstance(store.read(key), Stored) for key in (keys.record, keys.lock, keys.run_file))


def has_left_anything(store: Store, keys: Keys) -> bool:
    """Whether the store knows of a stack at all, and be it by the logs of its runs."""
    return is_known(store, keys) or bool(run_ids(store, keys))


def no_such_stack(store: Store, keys: Keys) -> InputError:
    """The error for a stack of which the store knows nothing at this place; it says where one of that name is."""
    kind, where = ("Terraform stack", f"workspace {keys.region}") if keys.is_terraform else ("stack", keys.region)
    return InputError(
        f"no {kind} {keys.stack} in {where} in {store.facts.url}",
        hint=_elsewhere(store, keys.prefix, keys.stack, is_terraform=keys.is_terraform, but=keys),
    )


def stack_is_nowhere(store: Store, *, prefix: str, stack: StackName) -> InputError:
    """The error for a stack that no region has."""
    return InputError(
        f"no stack {stack} in {store.facts.url}", hint=_elsewhere(store, prefix, stack, is_terraform=False)
    )


def _elsewhere(store: Store, prefix: str, stack: StackName, *, is_terraform: bool, but: Keys | None = None) -> str:
    """Where a stack of this name is, and how it is named; what to do when it is nowhere, or nobody can say."""
    places: tuple[Keys, ...] = ()
    with contextlib.suppress(StoreError):
        places = tuple(keys for keys in places_of(store, prefix=prefix, stack=stack) if keys != but)
    regions = [keys.region for keys in places if not keys.is_terraform]
    workspaces = [keys.region for keys in places if keys.is_terraform]
    lines = []
    if regions:
        others = f"It is in {' and '.join(regions)}" if not is_terraform else f"One is in {' and '.join(regions)}"
        lines.append(f"{others}: {'without --workspace, ' if is_terraform else ''}--region {regions[0]}")
    if workspaces and is_terraform:
        lines.append(f"It is in the workspace {' and '.join(workspaces)}: --workspace {workspaces[0]}")
    elif workspaces:
        lines.append(
            f"A Terraform stack is called so: state, events, cancel and force-unlock find it with --workspace "
            f"{workspaces[0]}; it is changed from its module's folder, with: stackhold tf"
        )
    return "\n".join(lines) or "See what is recorded with: stackhold state list; another store is named with --state."


def _in_state(record: StateRecord) -> int | None:
    """What a record of Terraform says of the state that it points at."""
    state = record.resources.get(_STATE)
    number = state.properties.get("resources") if state is not None else None
    return number if isinstance(number, int) else None


def _by_name(keys: Keys) -> tuple[str, bool, str]:
    return keys.stack, keys.is_terraform, keys.region


def _is_known(names: Iterable[str]) -> bool:
    return any(name in (RECORD, LOCK, RUN_FILE) or name.startswith(EVENTS) for name in names)
