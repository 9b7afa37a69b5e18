"""Asks the run that holds a stack's lock to stop, through the store, as on a first signal.

The request names that lock's id, so it can never stop a later run. Nothing is stolen and nothing is deleted: the
holder stops when it looks, settles as after a signal, and removes the request itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import CloudError, InputError, RecordUnreadable, StoreConflict, StoreUnanswered
from stackhold.model.codec import decode_stop_request, encode_stop_request
from stackhold.model.run import StopRequest
from stackhold.ports.store import Stored
from stackhold.runs.inspect import read_lock

if TYPE_CHECKING:
    from stackhold.model.ids import LockId
    from stackhold.model.lock import Lock
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store
    from stackhold.runs.inspect import LockView
    from stackhold.runs.layout import Keys

_TRIES = 8
_POLL_FIRST_MS = 200
_POLL_MOST_MS = 5_000


def request_stop(store: Store, clock: Clock, keys: Keys, *, requested_by: str, unlock_command: str) -> Lock | None:
    """Ask the live holder to stop; gives its lock, or None when nobody holds one.

    Raises `InputError` when the holder cannot be asked: its lock has no id (another tool's), cannot be read, or it
    has been silent for so long that nobody will look.
    """
    view = read_lock(store, clock, keys)
    if view is None:
        return None
    lock, lock_id = _askable(view, keys, unlock_command)
    request = encode_stop_request(
        StopRequest(lock_id=lock_id, requested_by=requested_by, requested_at=view.now, extra={"nonce": clock.nonce()})
    )
    for _ in range(_TRIES):
        found = store.read(keys.stop_request)
        expect = found.version if isinstance(found, Stored) else None
        if isinstance(found, Stored) and _asks(found.data, keys.stop_request, lock_id):
            return lock
        try:
            store.write(keys.stop_request, request, expect=expect)
        except (StoreConflict, StoreUnanswered):
            continue
        return lock
    raise CloudError(
        f"the request to stop {keys.stack} ({keys.region}) could not be written: {keys.stop_request} kept changing"
    )


def wait_released(store: Store, clock: Clock, keys: Keys, lock_id: LockId) -> None:
    """Wait until this very lock is gone or another's, polled after 0.2 s, doubling to 5 s."""
    pause = _POLL_FIRST_MS
    while True:
        view = read_lock(store, clock, keys)
        if view is None or view.lock is None or view.lock.id != lock_id:
            return
        if view.is_stale:
            raise CloudError(
                f"{view.lock.owner} stopped renewing its lock on {keys.stack} ({keys.region}) and released nothing",
                hint="The next run takes the lock over.",
            )
        clock.sleep(pause)
        pause = min(pause * 2, _POLL_MOST_MS)


def _askable(view: LockView, keys: Keys, unlock_command: str) -> tuple[Lock, LockId]:
    stack = f"{keys.stack} ({keys.region})"
    if view.lock is None:
        raise InputError(
            f"the lock of {stack} cannot be read, so its holder cannot be asked: {view.unreadable}",
            hint=f"Only if no run is working on this stack:\n  {unlock_command}",
        )
    if view.lock.id is None:
        raise InputError(
            f"{stack} is held by {view.lock.owner}, whose lock has no id: another tool's run cannot be asked to stop",
            hint="Stop it where it runs.",
        )
    if view.is_stale:
        raise InputError(
            f"{view.lock.owner} has been silent for longer than its lock's ttl; it will not look at a request",
            hint=f"The next run on {keys.stack} takes its lock over.",
        )
    return view.lock, view.lock.id


def _asks(data: bytes, key: str, lock_id: LockId) -> bool:
    """Whether a request is already there for this very lock."""
    try:
        return decode_stop_request(data, key=key).lock_id == lock_id
    except RecordUnreadable:
        return False
