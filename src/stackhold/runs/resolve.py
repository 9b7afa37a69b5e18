"""Conditional writes and deletes whose unclear answers are resolved by reading the object.

A refused condition proves nothing: a retry can meet its own first write. Two writes never have equal bytes, so bytes
that are found again are our own write, and a version that is found again is what we meant to replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import StoreConflict, StoreUnanswered
from stackhold.ports.store import Absent, Stored, Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store, Version

_TRIES = 8
_FIRST_PAUSE_MS = 50
_LONGEST_PAUSE_MS = 2_000


def always() -> bool:
    """Nothing stands against sending."""
    return True


def write(
    store: Store,
    key: str,
    data: bytes,
    *,
    expect: Version | None,
    clock: Clock,
    may_send: Callable[[], bool] = always,
) -> Written | Stored | Absent:
    """Write `data` over that version. Anything but `Written` is what is there instead: a foreign write.

    `may_send` is asked before each try; when it says no, the answer is what is there, whoever wrote it.

    Raises `StoreUnreachable` and `StoreRefused` as they come, and `StoreUnanswered` when the object stays as it was
    however often the same bytes are sent.
    """
    for attempt in range(_TRIES):
        if not may_send():
            return store.read(key)
        try:
            return store.write(key, data, expect=expect)
        except (StoreConflict, StoreUnanswered):
            found = store.read(key)
        if isinstance(found, Stored) and found.data == data:
            return Written(found.version, found.now)
        if not is_still(found, expect):
            return found
        pause(clock, attempt)
    raise StoreUnanswered(f"{key} could not be written: the store gives no clear answer", key=key)


def delete(
    store: Store, key: str, *, expect: Version, clock: Clock, may_send: Callable[[], bool] = always
) -> Stored | None:
    """Delete that version. None: it is gone; otherwise the other object that is there now, left as it is.

    `may_send` is asked before each try; when it says no, the answer is what is there.
    """
    for attempt in range(_TRIES):
        if not may_send():
            found = store.read(key)
            return found if isinstance(found, Stored) else None
        try:
            store.delete(key, expect=expect)
        except (StoreConflict, StoreUnanswered):
            found = store.read(key)
        else:
            return None
        if isinstance(found, Absent):
            return None
        if not is_still(found, expect):
            return found
        pause(clock, attempt)
    raise StoreUnanswered(f"{key} could not be deleted: the store gives no clear answer", key=key)


def is_still(found: Stored | Absent, expect: Version | None) -> bool:
    """Whether the object is what a write meant to replace."""
    return (found.version if isinstance(found, Stored) else None) == expect


def pause(clock: Clock, attempt: int) -> None:
    """Wait a little longer after every try."""
    clock.sleep(min(_FIRST_PAUSE_MS << attempt, _LONGEST_PAUSE_MS))
