"""Threads and what they wait for each other with, shaped like the standard library's.

A guarded run works in several threads. It starts every one of them, and waits for every one, through this port, so
that a test can decide which of them goes on next. Locks that are only ever held for a few lines, without a call to
store or cloud inside, need no port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


class Started(Protocol):
    """A thread at work."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, so many seconds at most."""
        ...

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        ...


class Mutex(Protocol):
    """A lock that one thread holds at a time; not re-entrant."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, waiting so many seconds at most (-1: without end); whether it is taken."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Flag(Protocol):
    """Something that has happened, or not yet."""

    def set(self) -> None:
        """It has happened."""
        ...

    def clear(self) -> None:
        """It has not."""
        ...

    def is_set(self) -> bool:
        """Whether it has."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has, so many seconds at most; whether it has."""
        ...


class Condition(Protocol):
    """A lock, and the news that what it guards has changed."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Let go of the lock until somebody notifies, so many seconds at most; whether somebody did."""
        ...

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until something is so; whether it is."""
        ...

    def notify_all(self) -> None:
        """Wake everybody who waits."""
        ...


class Threads(Protocol):
    """Makes threads and what they wait with."""

    def start(self, call: Callable[[], None], *, name: str) -> Started:
        """Run `call` in a thread of its own, which does not keep the process alive."""
        ...

    def lock(self) -> Mutex:
        """A lock that may be held over calls to the store."""
        ...

    def event(self) -> Flag:
        """A flag that is not set."""
        ...

    def condition(self) -> Condition:
        """A condition with a lock of its own."""
        ...
