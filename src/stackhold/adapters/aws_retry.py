"""Whether a failed try of an AWS call is made again, and after how long.

Pure: what failed so far and the time in, a verdict out. A call that must not be sent twice (`Resend.NEVER`) is
tried again only after a failure that proves that nothing happened. Throttling is waited out for the whole
budget, a service that cannot be reached for as long as it takes to start one anew; lost answers have a number
of tries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from stackhold.adapters.aws_failures import Failure, Kind
from stackhold.ports.aws import Resend

_MOST = {Kind.LOST: 9, Kind.UNSENT: 4}
"""Tries after the first; of what could not be sent, more as long as `PATIENCE_MS` lasts."""
PATIENCE_MS = 20_000
"""How long a service that cannot be reached is called again, from the first failure on."""
_FIRST_MS = {Kind.THROTTLED: 400, Kind.LOST: 150, Kind.UNSENT: 200}
_CAP_MS = {Kind.THROTTLED: 20_000, Kind.LOST: 10_000, Kind.UNSENT: 5_000}


class End(Enum):
    """How a call is given up."""

    REFUSED = "refused"
    """Nothing happened in this try: say what AWS, or the network, said."""
    UNKNOWN = "unknown"
    """It may have happened."""


@dataclass(frozen=True, slots=True)
class Again:
    """Try again after this wait."""

    wait_ms: int


@dataclass(frozen=True, slots=True)
class Tries:
    """The failed tries of one call so far."""

    throttled: int = 0
    lost: int = 0
    unsent: int = 0
    unreached_since: int | None = None
    """When, by any clock that goes on, the service could first not be reached."""

    def with_failure(self, failure: Failure, *, at: int = 0) -> Tries:
        """The same with one more."""
        match failure.kind:
            case Kind.THROTTLED:
                return replace(self, throttled=self.throttled + 1)
            case Kind.LOST:
                return replace(self, lost=self.lost + 1)
            case Kind.UNSENT:
                since = at if self.unreached_since is None else self.unreached_since
                return replace(self, unsent=self.unsent + 1, unreached_since=since)
            case _:
                return self


def next_try(
    tries: Tries,
    failure: Failure,
    *,
    resend: Resend,
    left_ms: int,
    jitter: float,
    at: int = 0,
    patience_ms: int = PATIENCE_MS,
) -> Again | End:
    """What follows this failure, `tries` including it. `jitter` is between 0 and 1; `left_ms` of the budget.

    `at` is the time, by the clock that `tries` was told; `patience_ms` is for a service that cannot be reached.

    The budget comes after the question whether a second send is allowed at all: out of time, a lost try stays
    unknown.
    """
    if failure.kind is Kind.LOST and resend is Resend.NEVER:
        return End.UNKNOWN
    end = End.UNKNOWN if failure.kind is Kind.LOST else End.REFUSED
    if failure.kind in {Kind.REFUSED, Kind.CLOCK}:
        return End.REFUSED
    count = {Kind.THROTTLED: tries.throttled, Kind.LOST: tries.lost, Kind.UNSENT: tries.unsent}[failure.kind]
    is_patient = failure.kind is Kind.UNSENT and at - (tries.unreached_since or 0) < patience_ms
    if count > _MOST.get(failure.kind, count) and not is_patient:
        return end
    wait = min(_CAP_MS[failure.kind], _FIRST_MS[failure.kind] * 2 ** min(count - 1, 10))
    wait = wait // 2 + int(wait / 2 * jitter)
    return Again(wait) if wait < left_ms else end
