"""Waiting, with a bound, for what a control plane does in its own time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
SECONDS = 90.0


def wait_for(look: Callable[[], _T | None], what: str, *, seconds: float = SECONDS) -> _T:
    """Look until there is something to see, and return it. Raises `AssertionError` with `what` was waited for."""
    give_up = time.monotonic() + seconds
    while True:
        seen = look()
        if seen is not None and seen is not False:
            return seen
        if time.monotonic() > give_up:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.05)
