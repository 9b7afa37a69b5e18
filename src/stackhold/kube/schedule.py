"""When an object that needs no apply is looked at: the checks in their order, each with the time it is due.

A check counts from its own last run that succeeded, else from the last apply, else from the object's creation. The
jitter depends on the object's UID alone, so that objects made together do not check together, and one object always
checks at the same pace.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.names import Kind
from stackhold.kube.snapshot import refreshes_after_apply
from stackhold.model.instant import MINUTE, SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.kube.snapshot import Snapshot

SOON_MS: Final = 30 * SECOND
PENDING_CAP_MS: Final = 5 * MINUTE
JITTER_PART: Final = 10


class Check(StrEnum):
    """Why the infrastructure is looked at."""

    REFRESH_AFTER_APPLY = "RefreshAfterApply"
    MEMBERSHIP_CONVERGING = "MembershipConverging"
    HEALTH_PENDING = "HealthPending"
    MEMBERSHIP_REFRESH_DUE = "MembershipRefreshDue"
    HEALTH_CHECK_DUE = "HealthCheckDue"
    DRIFT_DUE = "DriftDue"


@dataclass(frozen=True, slots=True)
class Appointment:
    """A check and when it is due."""

    check: Check
    op: Operation
    due_at: Instant


def jitter(uid: str, interval_ms: int) -> int:
    """At most a tenth of the interval, always the same for one object; none for an object without UID."""
    if not uid:
        return 0
    draw = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big")
    return (draw * (interval_ms // JITTER_PART + 1)) >> 64


def pending_delay(samples: int) -> int:
    """How long after so many readings of pending in a row the next one is taken."""
    return min(SOON_MS << min(max(samples, 1) - 1, 8), PENDING_CAP_MS)


def appointments(snapshot: Snapshot, now: Instant) -> Iterator[Appointment]:
    """All checks of this object, in the order in which they go first. None is further away than its interval."""
    refreshed = snapshot.last_refresh
    applied = snapshot.last_apply
    if refreshes_after_apply(snapshot.kind) and applied is not None and (refreshed is None or applied > refreshed):
        yield Appointment(Check.REFRESH_AFTER_APPLY, Operation.REFRESH, min(applied, now))
    for check, interval in _sampling(snapshot):
        yield _after(snapshot, check, _newest(snapshot), interval, now)
    for check, interval in _periodic(snapshot):
        own = snapshot.last_drift_check if check is Check.DRIFT_DUE else refreshed
        base = own if own is not None else applied if applied is not None else snapshot.created_at
        yield _after(snapshot, check, base, interval, now)


def _sampling(snapshot: Snapshot) -> Iterator[tuple[Check, int]]:
    """Looks that are taken until something has settled; members that come and go are not also waited for as pending."""
    is_pool = snapshot.kind is Kind.MACHINE_POOL
    if is_pool and snapshot.readings.is_converging:
        yield Check.MEMBERSHIP_CONVERGING, SOON_MS
    elif snapshot.readings.pending_samples:
        yield Check.HEALTH_PENDING, SOON_MS if is_pool else pending_delay(snapshot.readings.pending_samples)


def _periodic(snapshot: Snapshot) -> Iterator[tuple[Check, int]]:
    intervals = snapshot.intervals
    if snapshot.kind is Kind.MACHINE_POOL and intervals.membership_ms:
        yield Check.MEMBERSHIP_REFRESH_DUE, intervals.membership_ms
    if intervals.health_ms:
        yield Check.HEALTH_CHECK_DUE, intervals.health_ms
    if intervals.drift_ms:
        yield Check.DRIFT_DUE, intervals.drift_ms


def _newest(snapshot: Snapshot) -> Instant:
    """When the last reading was taken: by a look, or by the apply itself."""
    taken = [at for at in (snapshot.last_refresh, snapshot.last_apply) if at is not None]
    return max(taken, default=snapshot.created_at)


def _after(snapshot: Snapshot, check: Check, base: Instant, interval: int, now: Instant) -> Appointment:
    due_at = Instant(min(base, now) + interval + jitter(snapshot.uid, interval))
    return Appointment(check, Operation.DRIFT if check is Check.DRIFT_DUE else Operation.REFRESH, due_at)
