"""Takes, renews and releases the lock of one run.

One id per run; a serial that rises with every write that is sent, answered or not. Every unclear answer is resolved
by reading. A lock that was lost is never created again, and only our own version is ever deleted.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.decide import lock as rules
from stackhold.errors import (
    LockHeld,
    RecordUnreadable,
    StoreConflict,
    StoreError,
    StoreRefused,
    StoreUnanswered,
    StoreUnreachable,
)
from stackhold.model.codec import decode_lock, encode_lock
from stackhold.model.events import EventKind
from stackhold.model.ids import LockId
from stackhold.model.instant import CLOCK_SLACK, BootInstant, Instant, Millis
from stackhold.model.lock import Lock
from stackhold.ports.store import Absent, Stored
from stackhold.runs import liveness, resolve
from stackhold.runs.holder_process import pid_gone
from stackhold.runs.lock_messages import held_error, waited_words
from stackhold.runs.settings import FIRST_POLL_MS, LONGEST_POLL_MS, FixedWait

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.run import RunIdentity, StopCause
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store, Version
    from stackhold.ports.threads import Threads
    from stackhold.runs.layout import Keys
    from stackhold.runs.settings import RunSettings

    Tell = Callable[[EventKind, str, dict[str, object]], None]

_SLICE_MS = 100
_TRIES = 8
_READ_TRIES = 3


class Renewed(Enum):
    """What became of a renewal."""

    CONFIRMED = "confirmed"
    UNCLEAR = "unclear"
    """The store gives no answer now; try again."""
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Acquired:
    """The lock is ours."""

    locked_at: Instant
    """The store's time when it was answered."""
    confirmed_at: BootInstant
    """The boot clock before it was sent."""
    waited_ms: int
    at_once: bool
    """The very first request got it: what was read beside it may be used."""
    replaced: Lock | None = None
    """The stale lock that was taken over."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Who holds the lock now."""

    is_ours: bool
    holder: str = ""


class RunLock:
    """The lock of one run. Thread-safe once acquired."""

    def __init__(
        self,
        *,
        store: Store,
        keys: Keys,
        clock: Clock,
        threads: Threads,
        settings: RunSettings,
        identity: RunIdentity,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._settings = settings
        self._identity = identity
        self.id = LockId(clock.nonce())
        self.generation: int | None = None
        """Set once stamped; the next renewal writes it."""
        self._serial = 0
        self._taken_at = Instant(0)
        self._skew = 0
        self._is_corrected = False
        self._version: Version | None = None
        self._first_sent: BootInstant | None = None
        self._was_unanswered = False
        self._is_unclear = False
        self._writing = threads.lock()

    def acquire(
        self, *, deadline_at: BootInstant, stopping: Callable[[], StopCause | None], tell: Tell
    ) -> Acquired | StopCause:
        """Take the lock, waiting as the settings say. A stop ends the wait at once, with nothing held.

        Raises `LockHeld` when the wait is over, and `StoreError`.
        """
        return _Acquisition(self, deadline_at=deadline_at, stopping=stopping, tell=tell).run()

    def renew(self) -> tuple[Renewed, BootInstant, str]:
        """Prove life once. Gives what became of it, when it was sent, and who holds the lock if it is lost.

        After a release nothing is sent: a renewal must never create the lock again.
        """
        with self._writing:
            sent_at = self._clock.boot()
            for _ in range(_TRIES if self._version is not None else 0):
                sent_at = self._clock.boot()
                data = self._next(sent_at)
                try:
                    written = self._store.write(self._keys.lock, data, expect=self._version)
                except (StoreConflict, StoreUnanswered):
                    pass
                except (StoreUnreachable, StoreRefused):
                    return Renewed.UNCLEAR, sent_at, ""
                else:
                    self._confirm(written.version, written.now)
                    return Renewed.CONFIRMED, sent_at, ""
                try:
                    found = self._store.read(self._keys.lock)
                except StoreError:
                    return Renewed.UNCLEAR, sent_at, ""
                if not self._is_ours(found):
                    return Renewed.LOST, sent_at, self._holder(found)
                assert isinstance(found, Stored)
                self._confirm(found.version, found.now)
                if found.data == data:
                    return Renewed.CONFIRMED, sent_at, ""
            return Renewed.UNCLEAR, sent_at, ""

    def release(self, *, wait_s: float = -1) -> Hold:
        """Delete the lock if it is still ours, after a renewal in flight has ended. Raises `StoreError`.

        `is_ours` in the answer means: it was ours to the end.
        """
        if not self._writing.acquire(timeout=wait_s):
            raise StoreUnanswered(f"{self._keys.lock} is being renewed and could not be released", key=self._keys.lock)
        try:
            hold = self._delete() if self._version is not None else Hold(is_ours=True)
            self._version = None
            if self._was_unanswered:
                self._remove_late()
                self._was_unanswered = False
            return hold
        finally:
            self._writing.release()

    def look(self) -> Hold:
        """Read who holds the lock now. Raises `StoreError`."""
        found = self._store.read(self._keys.lock)
        return Hold(is_ours=self._is_ours(found), holder=self._holder(found))

    def corrected_now(self) -> Instant:
        """This host's time, corrected by the store's when they differ by more than 5 s."""
        return Instant(self._clock.now() + self._skew)

    @property
    def is_skewed(self) -> bool:
        """Whether the last answer showed another time than the lock was written with."""
        return self._skew != 0

    @property
    def may_be_left(self) -> bool:
        """Whether a request for the lock was never answered, or refused and not looked into (a repetition on the way
        meets what it repeats): the lock may be ours without our knowing."""
        return self._was_unanswered or self._is_unclear

    def _delete(self) -> Hold:
        for attempt in range(_TRIES):
            assert self._version is not None
            found = resolve.delete(self._store, self._keys.lock, expect=self._version, clock=self._clock)
            if found is None:
                return Hold(is_ours=True)
            if not self._is_ours(found):
                return Hold(is_ours=False, holder=self._holder(found))
            self._version = found.version
            resolve.pause(self._clock, attempt)
        raise StoreUnanswered(f"{self._keys.lock} could not be released: it keeps changing", key=self._keys.lock)

    def _remove_late(self) -> None:
        """A create that was never answered may have landed since: remove our own id."""
        found = self._store.read(self._keys.lock)
        if isinstance(found, Stored) and self._is_ours(found):
            resolve.delete(self._store, self._keys.lock, expect=found.version, clock=self._clock)

    def _next(self, sent_at: BootInstant) -> bytes:
        """The lock's next bytes, unlike any that were sent before."""
        self._serial += 1
        now = self.corrected_now()
        if not self._taken_at:
            self._taken_at = now
        is_local = self._store.facts.is_local and bool(self._clock.boot_id())
        return encode_lock(
            Lock(
                owner=self._identity.owner,
                timestamp=self._taken_at,
                expires_at=Instant(now + self._settings.ttl_ms),
                operation=self._identity.operation,
                id=self.id,
                ttl=Millis(self._settings.ttl_ms),
                serial=self._serial,
                generation=self.generation,
                boot_id=self._clock.boot_id() if is_local else None,
                boot_ms=sent_at if is_local else None,
            )
        )

    def _confirm(self, version: Version, store_now: Instant) -> None:
        self._version = version
        self._correct(store_now)

    def _correct(self, store_now: Instant) -> None:
        """Learn this host's offset from the store; the first time also for when the lock was taken."""
        skew = store_now - self._clock.now()
        skew = skew if abs(skew) > CLOCK_SLACK else 0
        if not self._is_corrected and skew:
            self._taken_at = Instant(self._taken_at + skew)
            self._is_corrected = True
        self._skew = skew

    def _is_ours(self, found: Stored | Absent) -> bool:
        lock = self.read_lock(found)[0]
        return lock is not None and lock.id == self.id

    def _holder(self, found: Stored | Absent) -> str:
        lock, why = self.read_lock(found)
        return lock.owner if lock is not None else why

    def read_lock(self, found: Stored | Absent) -> tuple[Lock | None, str]:
        """The lock that was found, or why it cannot be read; neither when there is none."""
        if isinstance(found, Absent):
            return None, ""
        try:
            return decode_lock(found.data, key=self._keys.lock), ""
        except RecordUnreadable as error:
            return None, error.message


class _Acquisition:
    """One wait for the lock."""

    def __init__(
        self,
        lock: RunLock,
        *,
        deadline_at: BootInstant,
        stopping: Callable[[], StopCause | None],
        tell: Tell,
    ) -> None:
        self._lock = lock
        self._deadline_at = deadline_at
        self._stopping = stopping
        self._tell = tell
        self._clock = lock._clock
        self._began = lock._clock.boot()
        self._looks = 0
        self._shown: Version | None = None

    def run(self) -> Acquired | StopCause:
        """Ask until the lock is ours, the wait is over, or the run is asked to stop."""
        found: Stored | Absent = Absent(Instant(0))
        requests = 0
        while True:
            if (cause := self._stopping()) is not None:
                return self._abandon(cause)
            if isinstance(found, Stored):
                held = self._judge(found)
                if held.lock is not None and held.lock.id == self._lock.id:
                    return self._ours(found, held.lock)
            else:
                held = None
            match rules.next_step(
                held, may_wait=self._may_wait(), now=self._clock.boot(), deadline_at=self._deadline_at
            ):
                case rules.Verdict.GIVE_UP:
                    if (cause := self._stopping()) is not None:
                        return self._abandon(cause)
                    raise self._held_error(found, held)
                case rules.Verdict.WAIT:
                    assert isinstance(found, Stored)
                    self._wait(found, held)
                    requests = 0
                    found = self._lock._store.read(self._lock._keys.lock)
                case rules.Verdict.ACQUIRE | rules.Verdict.TAKE_OVER:
                    requests += 1
                    answer = self._request(found, held, requests)
                    if isinstance(answer, Acquired):
                        return answer
                    found = answer

    def _request(self, found: Stored | Absent, held: rules.Held | None, requests: int) -> Acquired | Stored | Absent:
        lock = self._lock
        if requests > _TRIES:
            raise StoreUnanswered(f"{lock._keys.lock} could not be taken: the store gives no clear answer")
        if requests > 1:
            resolve.pause(self._clock, requests - 2)
        sent_at = self._clock.boot()
        if lock._first_sent is None:
            lock._first_sent = sent_at
        data = lock._next(sent_at)
        expect = found.version if isinstance(found, Stored) else None
        try:
            written = lock._store.write(lock._keys.lock, data, expect=expect)
        except StoreConflict:
            lock._is_unclear = True
            there = self._look_after()
            lock._is_unclear = False
            lock._was_unanswered = lock._was_unanswered or lock._is_ours(there)
            return there
        except StoreUnanswered:
            lock._was_unanswered = True
            return self._look_after()
        lock._confirm(written.version, written.now)
        replaced = held.lock if held is not None else None
        return self._acquired(written.now, sent_at, replaced=replaced, at_once=requests == 1 and not self._looks)

    def _look_after(self) -> Stored | Absent:
        """Read what a request led to; a few tries, for the lock may be ours already."""
        for attempt in range(_READ_TRIES):
            try:
                return self._lock._store.read(self._lock._keys.lock)
            except StoreUnreachable:
                if attempt == _READ_TRIES - 1:
                    raise
                resolve.pause(self._clock, attempt + 3)
        raise AssertionError

    def _ours(self, found: Stored, lock: Lock) -> Acquired:
        """An earlier request of ours had landed: the hold counts from the first that was sent."""
        run = self._lock
        run._confirm(found.version, found.now)
        run._serial = max(run._serial, lock.serial)
        assert run._first_sent is not None
        return self._acquired(found.now, run._first_sent, replaced=None, at_once=False)

    def _acquired(self, now: Instant, sent_at: BootInstant, *, replaced: Lock | None, at_once: bool) -> Acquired:
        waited = self._clock.boot() - self._began if self._looks else 0
        return Acquired(locked_at=now, confirmed_at=sent_at, waited_ms=waited, at_once=at_once, replaced=replaced)

    def _judge(self, found: Stored) -> rules.Held:
        lock, _ = self._lock.read_lock(found)
        held = liveness.held(found, lock, self._clock)
        if lock is None or lock.is_ours_in_kind or not rules.is_stale(held):
            return held
        record = self._lock._store.read(self._lock._keys.record)
        if isinstance(record, Absent):
            return held
        return replace(held, record_silent_ms=max(0, record.now - record.modified))

    def _may_wait(self) -> bool:
        wait = self._lock._settings.lock_wait
        if isinstance(wait, FixedWait):
            return self._clock.boot() - self._began < wait.ms
        return self._looks < wait.attempts

    def _wait(self, found: Stored, held: rules.Held | None) -> None:
        wait = self._lock._settings.lock_wait
        waited = self._clock.boot() - self._began
        if isinstance(wait, FixedWait):
            span = rules.next_pause(
                looks=self._looks, first_ms=FIRST_POLL_MS, longest_ms=LONGEST_POLL_MS, left_ms=wait.ms - waited
            )
        else:
            span = wait.pause_ms
        self._looks += 1
        self._tell_waiting(found, held)
        until = self._clock.boot() + span
        while (left := until - self._clock.boot()) > 0 and self._stopping() is None:
            self._clock.sleep(min(left, _SLICE_MS))

    def _tell_waiting(self, found: Stored, held: rules.Held | None) -> None:
        if found.version == self._shown or held is None:
            return
        self._shown = found.version
        holder = held.lock
        self._tell(
            EventKind.LOCK_WAITING,
            f"waiting for the lock, held by {holder.owner if holder else 'someone who cannot be read'}",
            {
                "owner": holder.owner if holder else None,
                "operation": holder.operation if holder else None,
                "since": holder.timestamp if holder else None,
                "silentMs": held.silent_ms,
                "expiresAt": holder.expires_at if holder else None,
            },
        )

    def _abandon(self, cause: StopCause) -> StopCause:
        """Leave nothing behind: a request that was never answered may have been heard."""
        if self._lock._was_unanswered:
            with contextlib.suppress(StoreError):
                self._lock._remove_late()
                self._lock._was_unanswered = False
        return cause

    def _held_error(self, found: Stored | Absent, held: rules.Held | None) -> LockHeld:
        run = self._lock
        wait = run._settings.lock_wait
        waited_ms = self._clock.boot() - self._began if self._looks else 0
        setting = (wait.source or "the lock wait") if isinstance(wait, FixedWait) else None
        _, why = run.read_lock(found)
        return held_error(
            stack=run._identity.stack,
            region=run._identity.region,
            lock=held.lock if held else None,
            silent_ms=held.silent_ms if held else 0,
            now=found.now,
            waited=waited_words(waited_ms, setting=setting, tries=self._looks + 1),
            unlock_command=run._settings.unlock_command,
            unreadable=why,
            pid_gone=pid_gone(held.lock.owner) if held and held.lock else None,
        )
