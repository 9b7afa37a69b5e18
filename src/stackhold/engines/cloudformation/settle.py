"""Waits for a resource that settles slowly: a table becoming ACTIVE, a NAT gateway becoming available.

A wait is cut short when the run stops or another resource has failed: what is still coming up is recorded as
settling, and the next run polls it. Only a resource in a failed state, or one out of its time, is a failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.resources.handler import Made, Settle
from stackhold.errors import ResourceFailed, StoodDown
from stackhold.model.instant import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.cloudformation.resources.handler import Context, Handler
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import PhysicalId
    from stackhold.ports.clock import Clock

FIRST_POLL_MS: Final = 150
LONGEST_PAUSE_MS: Final = 5_000


def wait_settled(
    handler: Handler,
    ctx: Context,
    *,
    physical_id: PhysicalId,
    properties: Props,
    clock: Clock,
    is_cut: Callable[[], bool],
    polls_first: bool = False,
) -> Made | None:
    """Poll until it has settled, and give what is new about it; None when the wait was cut short.

    `polls_first` is for a resource that an earlier run left behind; one just made has been answered as pending, so
    it is given a moment. Raises `ResourceFailed` when it failed or its time is over.
    """
    began = clock.boot()
    pause = FIRST_POLL_MS
    try:
        if not polls_first:
            ctx.wait(pause)
        while True:
            state, made = handler.settled(ctx, physical_id, properties)
            if state is Settle.DONE:
                return made or Made(physical_id)
            if is_cut():
                return None
            if clock.boot() - began + pause > handler.settle_timeout_ms:
                raise ResourceFailed(
                    f"{physical_id} ({handler.type}) has not settled within {words(handler.settle_timeout_ms)}"
                )
            ctx.wait(pause)
            pause = min(pause * 3 // 2, LONGEST_PAUSE_MS)
    except StoodDown:
        return None
