"""Bounded waits inside one create, update or delete of a handler.

Waiting between polls goes through `Context.wait`, which raises `StoodDown` when waits are given up; how long is
counted in the milliseconds asked for, so that no clock is read here. What settles after a create is not waited for
here but polled by the caller through `Handler.settled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from stackhold.errors import AwsError, ResourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackhold.engines.cloudformation.resources.handler import Context

T = TypeVar("T")

FIRST_PAUSE_MS: Final = 250
LONGEST_PAUSE_MS: Final = 5_000
VISIBLE_BUDGET_MS: Final = 60_000
"""How long a thing that was just made may stay unknown to the next call."""


def wait_for(ctx: Context, look: Callable[[], T | None], *, budget_ms: int, what: str) -> T:
    """Look until something is there, pausing longer and longer; `ResourceFailed` when the budget is used up."""
    waited = 0
    pause = FIRST_PAUSE_MS
    while (found := look()) is None:
        if waited >= budget_ms:
            raise ResourceFailed(f"{what} took longer than {budget_ms // 1000} s")
        ctx.wait(pause)
        waited += pause
        pause = min(pause * 2, LONGEST_PAUSE_MS)
    return found


def wait_visible(ctx: Context, call: Callable[[], T], *, codes: Iterable[str]) -> T:
    """Make a call on a thing that was made a moment ago; its "not found" codes mean: not yet."""
    waited = 0
    pause = FIRST_PAUSE_MS
    not_yet = frozenset(codes)
    while True:
        try:
            return call()
        except AwsError as error:
            if error.code not in not_yet or waited >= VISIBLE_BUDGET_MS:
                raise
        ctx.wait(pause)
        waited += pause
        pause = min(pause * 2, LONGEST_PAUSE_MS)
