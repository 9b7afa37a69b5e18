"""Runs blocking calls in threads of their own: beside each other, for one round trip, or to be given up at a stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.ports.threads import Threads

Answer = TypeVar("Answer")
_LOOK_S = 0.1


class Beside(Generic[Answer]):
    """One call in a thread of its own, from construction on."""

    def __init__(self, threads: Threads, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self._thread = threads.start(self._run, name="stackhold-beside")

    def result(self) -> Answer:
        """Wait for the answer; raises what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer[0]

    def ended(self, *, unless: Callable[[], bool]) -> bool:
        """Wait for the end, or until `unless` says that nobody wants it any more; whether it ended."""
        while self._thread.is_alive():
            self._thread.join(_LOOK_S)
            if self._thread.is_alive() and unless():
                return False
        return True

    def result_within(self, seconds: float) -> Answer | None:
        """The answer if it came in time; None when it did not, or when the call raised."""
        self._thread.join(seconds)
        return self._answer[0] if self._answer else None

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:
            self._error = error
