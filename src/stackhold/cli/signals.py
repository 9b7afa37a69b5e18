"""Signals while a run is at work: the first asks it to stop, the second ends the process at once, as its grace does.

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

from stackhold.cli.interruption import Interruption, handled_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType
    from typing import TextIO

    from stackhold.model.exit_codes import ExitCode
    from stackhold.model.run import StopCause
    from stackhold.runs.stops import Stops

RELEASE_MS = 1_000
"""How long the second signal waits for the lock's release."""
_CLOSE_SECONDS = 0.2
"""How long it then still waits for the live view's end."""


@contextlib.contextmanager
def handled(stops: Stops, *, afterwards: str) -> Iterator[None]:
    """While inside, signals that end a process go to the run's mailbox. Only in the main thread.

    `afterwards` is what a signal says that comes when the run is over, in a process that answers signals itself.
    """

    def handler(signum: int, _frame: FrameType | None) -> None:
        stops.signal(signum)

    before = {number: signal.getsignal(number) for number in handled_numbers()}
    for number in before:
        signal.signal(number, handler)
    _hand_over(before.values(), None)
    try:
        yield
    finally:
        _hand_over(before.values(), afterwards)
        for number, former in before.items():
            signal.signal(number, former or signal.SIG_DFL)


def _hand_over(handlers: Iterable[object], said: str | None) -> None:
    """Silence the process's own answer, or give it its word back."""
    for each in handlers:
        if isinstance(each, Interruption):
            each.said = said


class LastResort:
    """Ends the process when a stop does not come to its end, because something hangs that cannot be given up."""

    def __init__(self, *, after_ms: int, leave: Callable[[StopCause], None]) -> None:
        """`leave` is called `after_ms` after the stop, in a thread of its own."""
        self._after_s = after_ms / 1000
        self._leave = leave
        self._timer: threading.Timer | None = None

    def arm(self, cause: StopCause) -> None:
        """The run was asked to stop."""
        self._timer = threading.Timer(self._after_s, self._leave, (cause,))
        self._timer.daemon = True
        self._timer.start()

    def disarm(self) -> None:
        """The run is over."""
        if self._timer is not None:
            self._timer.cancel()


def leave_at_once(
    *,
    why: str,
    code: ExitCode,
    give_back: Callable[[], None],
    release: Callable[[], bool],
    seconds: float,
    unlock_command: str,
    stderr: TextIO,
) -> NoReturn:
    """End the process without waiting for the run.

    `give_back` gives the terminal back, for which a moment must do: it may be one that takes no more output.
    `release` tries to release the lock, for no longer than `seconds`, and says whether none of ours is left.
    """
    closer = threading.Thread(target=give_back, name="stackhold-give-back", daemon=True)
    closer.start()
    outcome: list[bool] = []

    def attempt() -> None:
        with contextlib.suppress(Exception):
            outcome.append(release())

    worker = threading.Thread(target=attempt, name="stackhold-last-release", daemon=True)
    worker.start()
    worker.join(seconds)
    closer.join(_CLOSE_SECONDS)
    if outcome == [True]:
        said = (
            f"stackhold: left at once {why}; the lock is released, what was in flight is not known.\n"
            f"Should a lock of this process be there after all, this clears it:\n  {unlock_command}\n"
        )
    else:
        said = (
            f"stackhold: left at once {why}; the lock may still be there. It expires by itself; "
            f"to clear it now:\n  {unlock_command}\n"
        )
    with contextlib.suppress(OSError, ValueError):
        stderr.write(said)
        stderr.flush()
    os._exit(code)
