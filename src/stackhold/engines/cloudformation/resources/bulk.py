"""Reads of several resources of one type at once, where the service has no call that reads many.

The number of threads is small: the `Aws` port adapts to throttling, and reads for a baseline run beside the
calls that change something.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Seen
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import PhysicalId

_THREADS: Final = 8


def read_side_by_side(handler: Handler, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
    """One `read` each, several at a time; those that do not exist are left out. The first error is raised."""
    if len(wanted) < 2:
        answers = [handler.read(ctx, physical_id, properties) for physical_id, properties in wanted.items()]
    else:
        with ThreadPoolExecutor(min(_THREADS, len(wanted)), thread_name_prefix="stackhold-read") as threads:
            answers = list(threads.map(lambda item: handler.read(ctx, item[0], item[1]), wanted.items()))
    return {physical_id: seen for physical_id, seen in zip(wanted, answers, strict=True) if seen is not None}
