"""Signals while a run is at work: the first asks it to stop, the second ends the process at once.

A handler only puts the number into the run's mailbox, which is safe whatever it interrupted. The second signal's
work happens in the mailbox's thread: one short try to release the lock, what must be known about it on stderr, and
the end, with the same exit code whatever the first signal was.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import TextIO

    from stackhold.runs.stops import Stops

RELEASE_SECONDS = 1.0
"""How long the second signal waits for the lock's release."""


@contextlib.contextmanager
def handled(stops: Stops) -> Iterator[None]:
    """While inside, signals that end a process go to the run's mailbox. Only in the main thread."""

    def handler(signum: int, _frame: FrameType | None) -> None:
        stops.signal(signum)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    taken = [number for number, now in before.items() if now is not signal.SIG_IGN or number is not signal.SIGHUP]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number] or signal.SIG_DFL)


def leave_at_once(*, release: Callable[[], bool], unlock_command: str, stderr: TextIO) -> NoReturn:
    """What the second signal does. `release` tries to release the lock and says whether none of ours is left."""
    outcome: list[bool] = []

    def attempt() -> None:
        with contextlib.suppress(Exception):
            outcome.append(release())

    worker = threading.Thread(target=attempt, name="stackhold-last-release", daemon=True)
    worker.start()
    worker.join(RELEASE_SECONDS)
    if outcome == [True]:
        said = (
            "stackhold: left at once on a second signal; the lock is released, what was in flight is not known.\n"
            f"Should a lock of this process be there after all, this clears it:\n  {unlock_command}\n"
        )
    else:
        said = (
            "stackhold: left at once on a second signal; the lock may still be there. It expires by itself; "
            f"to clear it now:\n  {unlock_command}\n"
        )
    with contextlib.suppress(OSError, ValueError):
        stderr.write(said)
        stderr.flush()
    os._exit(ExitCode.INTERRUPTED)
