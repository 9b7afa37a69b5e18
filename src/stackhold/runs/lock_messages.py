"""The words for a lock that another run holds.

Facts come in, text goes out; nothing is read or decided here. Ages are spans between two times of the store, so the
text is right whatever the clocks of the hosts say. The command that clears the lock is given, never guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import LockHeld
from stackhold.model.instant import HOUR, Instant, clock_time, iso, words

if TYPE_CHECKING:
    from stackhold.model.ids import Region, StackName
    from stackhold.model.lock import Lock

_DAY = 24 * HOUR
_IF_SILENT = " if it falls silent"


def held_error(
    *,
    stack: StackName,
    region: Region,
    lock: Lock | None,
    silent_ms: int,
    now: Instant,
    waited: str = "",
    unlock_command: str,
    unreadable: str = "",
    pid_gone: int | None = None,
) -> LockHeld:
    """The error for a lock that is not stale.

    `lock` is None when it cannot be read, and `unreadable` then says why. `silent_ms` is how long it has not been
    written and `now` the store's time, both from one answer. `waited` says how long this run waited and by which
    setting, see `waited_words`. `pid_gone` is the holder's process id when it was one of this host and is gone.
    """
    message = f"{stack} ({region}) is locked" + (f"; {waited}" if waited else "")
    details = holder_lines(lock, silent_ms=silent_ms, now=now, unreadable=unreadable, pid_gone=pid_gone)
    advice = "Wait for it, or, only if that process is gone:" if lock else "Only if no run is working on this stack:"
    if pid_gone is not None:
        advice = "Nobody renews that lock any more. It expires by itself; to clear it now:"
    return LockHeld(message, details=details, hint=f"Nothing was changed. {advice}\n  {unlock_command}")


def waited_words(waited_ms: int, *, setting: str | None, tries: int = 1) -> str:
    """How long a run waited: all of a named setting, or the command's own few tries; empty when it did not wait."""
    if setting is not None and waited_ms > 0:
        return f"waited {words(waited_ms)}, all of {setting}"
    if tries > 1:
        return f"tried {tries} times in {words(waited_ms)}"
    return ""


def holder_lines(
    lock: Lock | None, *, silent_ms: int, now: Instant, unreadable: str = "", pid_gone: int | None = None
) -> tuple[str, ...]:
    """Who holds it, and what tells whether that run is alive: two lines, three when its process is known to be gone."""
    if lock is None:
        return (
            f"holder   not readable: {unreadable or 'the lock is not what it should be'}",
            f"alive    not known; last written {ago(silent_ms)}; such a lock counts as held",
        )
    holder = f"holder   {lock.owner}, {lock.operation}, since {moment(lock.timestamp, now=now)}"
    life = _liveness(lock, silent_ms=silent_ms, now=now)
    if pid_gone is None:
        return holder, f"alive    {life}"
    return holder, f"process  {gone_words(pid_gone)}", f"lock     {life.removesuffix(_IF_SILENT)}"


def gone_words(pid: int) -> str:
    """That a holder's process is gone, as far as this host can tell."""
    return f"{pid} is no longer running on this host"


def _liveness(lock: Lock, *, silent_ms: int, now: Instant) -> str:
    if lock.expires_at is None:
        return f"last written {ago(silent_ms)}; its expiresAt is not a number, so it counts as held until it is cleared"
    expiry = moment(lock.expires_at, now=now)
    if not lock.is_ours_in_kind:
        word = "expires" if lock.expires_at > now else "expired"
        return f"last written {ago(silent_ms)}, by a tool that may not renew; {word} {expiry}"
    assert lock.ttl is not None
    if silent_ms >= lock.ttl:
        if lock.expires_at > now:
            return f"silent for {words(silent_ms)}, longer than its ttl of {words(lock.ttl)}; so it has expired"
        return f"silent for {words(silent_ms)}; expired {expiry}"
    return f"renewed {ago(silent_ms)}; expires {expiry}{_IF_SILENT}"


def ago(span: int) -> str:
    """`40 s ago`; a span below a second, or a negative one after a clock correction, is `just now`."""
    return "just now" if span < 1000 else f"{words(span)} ago"


def moment(at: Instant, *, now: Instant) -> str:
    """The time of day, with its date when it is not within a day of now."""
    return clock_time(at) if abs(now - at) < _DAY else iso(at)
