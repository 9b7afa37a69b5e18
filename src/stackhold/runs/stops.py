"""The mailbox through which a run is asked to stop: signals, `cancel`, and what the run itself finds out.

`signal` may be called from a real signal handler: it only puts into a queue that is re-entrant, and takes no lock
that the interrupted thread could hold. One thread of this object reads the queue and tells everybody else. A stop is
one-way: the first cause stays.
"""

from __future__ import annotations

import queue
import signal
import threading
from typing import TYPE_CHECKING

from stackhold.model.run import StopCause

if TYPE_CHECKING:
    from collections.abc import Callable

_SIGNALS = {signal.SIGINT: StopCause.SIGINT, signal.SIGTERM: StopCause.SIGTERM}


class Stops:
    """Collects requests to stop; thread-safe, and `signal` is safe in a signal handler."""

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._state = threading.Lock()
        self._cause: StopCause | None = None
        self._signals = 0
        self._subscribers: list[Callable[[StopCause], None]] = []
        self._on_second: Callable[[], None] | None = None
        self._listener: threading.Thread | None = None

    def signal(self, signum: int) -> None:
        """A signal arrived. Call it from the handler; the listener does the rest."""
        self._arrived.put(signum)

    def request(self, cause: StopCause) -> None:
        """Ask the run to start nothing new. Only the first cause counts. Not for signal handlers."""
        with self._state:
            if self._cause is not None:
                return
            self._cause = cause
            subscribers = tuple(self._subscribers)
        for tell in subscribers:
            tell(cause)

    def on_second(self, action: Callable[[], None]) -> None:
        """Set what happens on the second signal: it runs in the listener's thread and should end the process."""
        self._on_second = action

    def subscribe(self, tell: Callable[[StopCause], None]) -> None:
        """Have `tell` called once with the cause, at once when a stop was already requested."""
        with self._state:
            self._subscribers.append(tell)
            cause = self._cause
        if cause is not None:
            tell(cause)

    @property
    def cause(self) -> StopCause | None:
        """The first cause, None while nobody asked to stop."""
        return self._cause

    def listen(self) -> None:
        """Start to read the mailbox; a second call does nothing."""
        if self._listener is None:
            self._listener = threading.Thread(target=self._read, name="stackhold-stops", daemon=True)
            self._listener.start()

    def close(self) -> None:
        """Stop reading the mailbox."""
        if self._listener is not None:
            self._arrived.put(None)
            self._listener.join()
            self._listener = None

    def _read(self) -> None:
        while (signum := self._arrived.get()) is not None:
            self._signals += 1
            if self._signals == 1:
                self.request(_SIGNALS.get(signal.Signals(signum), StopCause.SIGTERM))
            elif self._on_second is not None:
                self._on_second()
