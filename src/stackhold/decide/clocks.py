"""Whether the two clocks of a run fit together: the lock wait must end before the deadline does.

The message names both effective values and, for each, where it was configured or that it is the built-in default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import PolicyInvalid
from stackhold.model.instant import HOUR, SECOND

if TYPE_CHECKING:
    from stackhold.model.instant import Span

DEADLINE_RANGE = (1 * SECOND, 24 * HOUR)
LOCK_WAIT_RANGE = (0, 1 * HOUR)


def check_clocks(*, deadline: Span, lock_wait: Span) -> None:
    """Raise `PolicyInvalid` unless both are in range and the lock wait is below the deadline."""
    _check_range("deadline", deadline, DEADLINE_RANGE)
    _check_range("lock wait", lock_wait, LOCK_WAIT_RANGE)
    if lock_wait.ms >= deadline.ms:
        raise PolicyInvalid(
            f"the lock wait ({_value(lock_wait)}) must be less than the deadline ({_value(deadline)})",
            hint="Lower the lock wait or raise the deadline.",
        )


def _check_range(name: str, span: Span, allowed: tuple[int, int]) -> None:
    lowest, highest = allowed
    if not lowest <= span.ms <= highest:
        raise PolicyInvalid(
            f"the {name} ({_value(span)}) must be from {_seconds(lowest)} to {_seconds(highest)}",
            hint=f"Choose a {name} in that range.",
        )


def _value(span: Span) -> str:
    return f"{_seconds(span.ms)}, {f'from {span.source}' if span.source else 'the built-in default'}"


def _seconds(ms: int) -> str:
    whole, rest = divmod(ms, SECOND)
    return f"{whole} s" if not rest else f"{ms / SECOND:g} s"
