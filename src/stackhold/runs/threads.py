"""The process's own threads, as a guarded run uses them unless it is given others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.threads import Condition, Flag, Mutex, Started, Threads


class SystemThreads:
    """The standard library's."""

    def start(self, call: Callable[[], None], *, name: str) -> Started:
        """Run `call` in a daemon thread."""
        thread = threading.Thread(target=call, name=name, daemon=True)
        thread.start()
        return thread

    def lock(self) -> Mutex:
        """A lock."""
        return threading.Lock()

    def event(self) -> Flag:
        """An event."""
        return threading.Event()

    def condition(self) -> Condition:
        """A condition with a lock of its own, re-entrant as the library's is."""
        return threading.Condition()


if TYPE_CHECKING:
    _: type[Threads] = SystemThreads
