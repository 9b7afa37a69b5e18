"""Runs a few blocking calls beside each other, so that they cost one round trip."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")


class Beside(Generic[Answer]):
    """One call in a thread of its own, from construction on."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answer: list[Answer] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="stackhold-beside", daemon=True)
        self._thread.start()

    def result(self) -> Answer:
        """Wait for the answer; raises what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer[0]

    def result_within(self, seconds: float) -> Answer | None:
        """The answer if it came in time; None when it did not, or when the call raised."""
        self._thread.join(seconds)
        return self._answer[0] if self._answer else None

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:
            self._error = error
