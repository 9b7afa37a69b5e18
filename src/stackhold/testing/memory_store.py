"""A store in memory that can fail in every way a real one does: the double for runs and simulations.

Faults come from a `plan`: a queue of `Fault`s, or a function of the call. Each conditional call first asks it
what goes wrong. The store has its own clock, the given one plus `skew_ms`, so that a host's clock and the
store's can disagree. It passes the same conformance suite as the real stores when nothing is planned.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.errors import StoreConflict, StoreRefused, StoreUnanswered, StoreUnreachable
from stackhold.model.instant import Instant
from stackhold.ports.keys import checked_key, checked_prefix
from stackhold.ports.store import Absent, Entry, Stored, StoreFacts, Version, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store


class Fault(Enum):
    """What goes wrong with one call."""

    NONE = "none"
    LOSE_REQUEST = "lose-request"
    """Never arrives: `StoreUnanswered` for a write or delete, `StoreUnreachable` for a read."""
    LOSE_ANSWER = "lose-answer"
    """Is done (or refused), but the answer is lost."""
    LAND_LATE = "land-late"
    """Unanswered now, and tried against the conditions when the test calls `land`."""
    STALE = "stale"
    """A read sees the version before the latest; a write is not affected."""
    THROTTLE = "throttle"
    """Answered with "slow down" until the caller's retries are used up: `StoreUnreachable`, nothing written."""
    UNREACHABLE = "unreachable"
    """No connection: `StoreUnreachable`, nothing written."""
    REFUSE = "refuse"
    """Denied: `StoreRefused`."""
    CONFLICT = "conflict"
    """A 409: `StoreConflict` although the version is right; nothing written."""


@dataclass(frozen=True, slots=True)
class StoreCall:
    """One call, as a plan sees it and as `calls` keeps it. `method` is read, write, delete or list."""

    method: str
    key: str
    data: bytes | None = None
    expect: Version | None = None


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    version: Version
    modified: Instant


@dataclass(slots=True)
class _Contents:
    objects: dict[str, _Object] = field(default_factory=dict)
    before: dict[str, _Object | None] = field(default_factory=dict)
    late: list[StoreCall] = field(default_factory=list)


class MemoryStore:
    """A `Store` in memory. Thread-safe. Several stores may share contents through `sharing`."""

    def __init__(
        self,
        clock: Clock,
        *,
        plan: Callable[[StoreCall], Fault] | Iterable[Fault] = (),
        skew_ms: int = 0,
        whole_seconds: bool = False,
        url: str = "memory:",
        is_local: bool = False,
    ) -> None:
        """`skew_ms` is added to the clock to make the store's time, which has whole seconds if asked (as S3's)."""
        self.clock = clock
        self.skew_ms = skew_ms
        self.calls: list[StoreCall] = []
        self._whole_seconds = whole_seconds
        self._facts = StoreFacts(url=url, is_local=is_local)
        self._lock = threading.RLock()
        self._contents = _Contents()
        self._queue: deque[Fault] = deque()
        self._ask: Callable[[StoreCall], Fault] | None = None
        self._store_time: Callable[[], Instant] | None = None
        self.plan(plan)

    def sharing(self, clock: Clock, *, plan: Callable[[StoreCall], Fault] | Iterable[Fault] = ()) -> MemoryStore:
        """Another client of the same store: same contents and store time, its own clock, faults and calls."""
        other = MemoryStore(clock, plan=plan, url=self._facts.url, is_local=self._facts.is_local)
        other._lock, other._contents, other._store_time = self._lock, self._contents, self.store_time
        return other

    def plan(self, plan: Callable[[StoreCall], Fault] | Iterable[Fault]) -> None:
        """Say what goes wrong from now on: one fault per call from a queue, then nothing; or a function."""
        with self._lock:
            if callable(plan):
                self._ask = plan
                self._queue.clear()
            else:
                self._ask = None
                self._queue = deque(plan)

    def store_time(self) -> Instant:
        """The store's own clock; there is one, however many clients share the store."""
        if self._store_time is not None:
            return self._store_time()
        at = self.clock.now() + self.skew_ms
        return Instant(at // 1000 * 1000 if self._whole_seconds else at)

    def land(self) -> int:
        """Let the requests that were to land late arrive now, in order; says how many changed something."""
        with self._lock:
            late, self._contents.late = self._contents.late, []
            return sum(self._landed(call) for call in late)

    def put(self, key: str, data: bytes) -> Version:
        """Write without a condition, as a foreign tool or a hand would."""
        with self._lock:
            return self._set(key, data)

    def remove(self, key: str) -> None:
        """Delete without a condition, as a foreign tool or a hand would."""
        with self._lock:
            self._forget(key)

    @property
    def facts(self) -> StoreFacts:
        """What it is called."""
        return self._facts

    def read(self, key: str) -> Stored | Absent:
        """The object with its version and the store's time."""
        checked_key(key)
        fault = self._fault(StoreCall("read", key))
        with self._lock:
            self._raise_if_not_arrived(fault, key, writing=False)
            if fault in {Fault.LOSE_ANSWER, Fault.LAND_LATE}:
                raise StoreUnreachable(f"{self._facts.url}: no answer to a read of {key}", key=key)
            found = self._contents.objects.get(key)
            if fault is Fault.STALE and key in self._contents.before:
                found = self._contents.before[key]
            now = self.store_time()
            return Absent(now) if found is None else Stored(found.data, found.version, found.modified, now)

    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:
        """Create if absent or replace if the object still is that version."""
        with self._sent(StoreCall("write", key, bytes(data), expect)):
            return Written(self._set(key, bytes(data)), self.store_time())

    def delete(self, key: str, *, expect: Version) -> None:
        """Delete if the object still is that version."""
        with self._sent(StoreCall("delete", key, None, expect)):
            self._forget(key)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object whose key starts with `prefix`, by key."""
        checked_prefix(prefix)
        fault = self._fault(StoreCall("list", prefix))
        with self._lock:
            self._raise_if_not_arrived(fault, prefix, writing=False)
            found = [
                Entry(key, item.modified, len(item.data))
                for key, item in sorted(self._contents.objects.items())
                if key.startswith(prefix)
            ]
        return iter(found)

    def prepare(self) -> None:
        """Nothing to prove."""

    @contextlib.contextmanager
    def _sent(self, call: StoreCall) -> Iterator[None]:
        """Around a change: everything that a fault or a condition does to it."""
        checked_key(call.key)
        fault = self._fault(call)
        with self._lock:
            self._raise_if_not_arrived(fault, call.key, writing=True)
            if fault is Fault.LAND_LATE:
                self._contents.late.append(call)
                raise self._unanswered(call)
            if fault is Fault.CONFLICT or not self._holds(call):
                if fault is Fault.LOSE_ANSWER:
                    raise self._unanswered(call)
                raise StoreConflict(f"{self._facts.url}: {call.key} is not the version that was named", key=call.key)
            yield
            if fault is Fault.LOSE_ANSWER:
                raise self._unanswered(call)

    def _fault(self, call: StoreCall) -> Fault:
        with self._lock:
            self.calls.append(call)
            ask = self._ask
            if ask is None:
                return self._queue.popleft() if self._queue else Fault.NONE
        return ask(call)

    def _raise_if_not_arrived(self, fault: Fault, key: str, *, writing: bool) -> None:
        url = self._facts.url
        if fault is Fault.LOSE_REQUEST and writing:
            raise StoreUnanswered(f"{url}: no answer about {key}", key=key)
        if fault in {Fault.LOSE_REQUEST, Fault.UNREACHABLE}:
            raise StoreUnreachable(f"{url} cannot be reached", key=key)
        if fault is Fault.THROTTLE:
            raise StoreUnreachable(f"{url} asks to slow down", key=key)
        if fault is Fault.REFUSE:
            raise StoreRefused(f"{url} denies access to {key}", key=key)

    def _unanswered(self, call: StoreCall) -> StoreUnanswered:
        return StoreUnanswered(f"{self._facts.url}: no answer about {call.key}", key=call.key)

    def _holds(self, call: StoreCall) -> bool:
        found = self._contents.objects.get(call.key)
        return (found.version if found else None) == call.expect

    def _landed(self, call: StoreCall) -> bool:
        if not self._holds(call):
            return False
        if call.data is None:
            self._forget(call.key)
        else:
            self._set(call.key, call.data)
        return True

    def _set(self, key: str, data: bytes) -> Version:
        version = Version(hashlib.sha256(data).hexdigest())
        self._contents.before[key] = self._contents.objects.get(key)
        self._contents.objects[key] = _Object(data, version, self.store_time())
        return version

    def _forget(self, key: str) -> None:
        found = self._contents.objects.pop(key, None)
        if found is not None:
            self._contents.before[key] = found


if TYPE_CHECKING:
    _: type[Store] = MemoryStore
