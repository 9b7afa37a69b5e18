"""How long an operation that failed waits for its next try, and what counts as its failures.

Counted per operation, newest first, up to its last success. What was stopped from outside or waits for an approval
counts for nothing, a deadline always counts. The delay never shrinks as failures add up, and no wait is longer than
the cap, however far the clocks of the cluster are apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.snapshot import Outcome
from stackhold.model.instant import MINUTE, Instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackhold.kube.snapshot import JobFact, Snapshot

BASE_MS: Final = MINUTE
CAP_MS: Final = 10 * MINUTE


def newest_first(jobs: Iterable[JobFact], op: Operation) -> list[JobFact]:
    """The Jobs of one operation that have ended."""
    ended = (job for job in jobs if job.op is op and job.outcome is not Outcome.ACTIVE)
    return sorted(ended, key=lambda job: job.age_key, reverse=True)


def failures(jobs: Iterable[JobFact], op: Operation) -> list[JobFact]:
    """The failures of an operation since its last success, newest first."""
    return [job for job in _since_success(jobs, op) if job.outcome.is_counted]


def delay(count: int, failed_limit: int) -> int:
    """How long to wait after so many failures: doubling, and the cap at once when the limit of kept Jobs is reached."""
    if count <= 0:
        return 0
    if count >= max(1, failed_limit):
        return CAP_MS
    return min(BASE_MS << min(count - 1, 8), CAP_MS)


def backoff_until(snapshot: Snapshot, op: Operation, now: Instant) -> Instant | None:
    """When the operation may run again; None when it may run now.

    A restore has no backoff: it is not tried again for the same backup.
    """
    failed = [] if op is Operation.RESTORE else failures(snapshot.jobs, op)
    if not failed:
        return None
    wait = delay(len(failed), snapshot.failed_limit)
    until = min(failed[0].age_key[0], now) + wait
    return Instant(until) if until > now else None


def apply_is_unconverged(jobs: Iterable[JobFact]) -> bool:
    """Whether the last apply that did something failed, and so may have changed what the state does not say."""
    return bool(unconverged(jobs, Operation.APPLY))


def unconverged(jobs: Iterable[JobFact], op: Operation) -> list[JobFact]:
    """The runs since the last success that may have left something half done, newest first.

    A remediation that failed is none: the cap on remediations decides about its next try. One that was stopped before
    it changed anything says nothing about the one before.
    """
    return [job for job in _since_success(jobs, op) if not job.is_remediation and not job.outcome.waits_for_approval]


def may_remediate(snapshot: Snapshot) -> bool:
    """Whether fewer remediations failed since the last drift check that succeeded than the limit of kept Jobs."""
    checked_at = snapshot.last_drift_check
    failed = [
        job for job in failures(snapshot.jobs, Operation.APPLY) if checked_at is None or job.age_key[0] > checked_at
    ]
    return len(failed) < max(1, snapshot.failed_limit)


def _since_success(jobs: Iterable[JobFact], op: Operation) -> Iterator[JobFact]:
    for job in newest_first(jobs, op):
        if job.outcome is Outcome.SUCCEEDED:
            return
        yield job
