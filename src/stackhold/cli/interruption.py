"""What a signal does while no run is at work: one line that says what became of things, and the end.

Installed before anything slow is imported, so that no signal meets Python's own answer. A thread reads which signal
came from the descriptor that the interpreter writes it to: a call that does not return to Python, such as a look-up of
a name that nobody answers, cannot hold the end back. A guarded run handles signals in its own way; then this is silent.
"""

from __future__ import annotations

import _thread
import os
import signal

TYPE_CHECKING = False
"""As type checkers take it; `typing` itself takes a while to import."""
if TYPE_CHECKING:
    from types import FrameType
    from typing import Final

UNCHANGED: Final = "nothing was changed"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED, _TERMINATED = 130, 143


class Interruption:
    """Ends the process when called with a signal. `said` ends its line; None while a run handles signals."""

    def __init__(self, said: str | None = UNCHANGED) -> None:
        self.said = said
        self._once = _thread.allocate_lock()

    def __call__(self, signum: int, _frame: FrameType | None = None) -> None:
        """A signal arrived."""
        said = self.said
        if said is None or not self._once.acquire(blocking=False):
            return
        word = "interrupted" if signum == signal.SIGINT else "terminated"
        try:
            begin = "\n" if os.isatty(2) else ""
            os.write(2, f"{begin}stackhold: {word}; {said}\n".encode())
        except OSError:
            pass
        finally:
            os._exit(_INTERRUPTED if signum == signal.SIGINT else _TERMINATED)

    def watch(self, reader: int) -> None:
        """Answer the signals whose numbers come out of a pipe."""
        while numbers := os.read(reader, 1):
            if numbers[0] in _SIGNALS:
                self(numbers[0])


def handled_numbers() -> list[signal.Signals]:
    """The signals that are ours to answer: a hang-up is not where somebody asked that it be ignored."""
    return [each for each in _SIGNALS if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]


def install() -> None:
    """Answer signals from here on. Once, in the main thread of a process that is ours."""
    interruption = Interruption()
    for number in handled_numbers():
        signal.signal(number, interruption)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _thread.start_new_thread(interruption.watch, (reader,))


def say_from_here(said: str | None) -> None:
    """What a signal says from now on; None when somebody else answers it. Nothing happens in a process not ours."""
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(handler, Interruption):
            handler.said = said
