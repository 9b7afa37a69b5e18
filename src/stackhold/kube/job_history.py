"""Which finished Jobs of an object are kept, and what number the next one gets.

Kept per operation, so that looking at the infrastructure never pushes out the history of its changes. Some stay
whatever the limits say, because decisions rest on them: the newest success, while no success is newer the newest
failure that counts and the newest run that may have left something half done, and the newest of all. A Job that is not
counted yet is never removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.kube.backoff import failures, newest_first, unconverged
from stackhold.kube.snapshot import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackhold.engines.terraform.steps import Operation
    from stackhold.kube.snapshot import JobFact


def next_attempt(jobs: Iterable[JobFact], operation: Operation) -> int:
    """One more than the highest attempt that is still there, so that no name is used twice."""
    return max((job.attempt for job in jobs if job.op is operation), default=0) + 1


def retry_number(jobs: Iterable[JobFact], operation: Operation) -> int:
    """Which try in a row the next Job of an operation is."""
    return len(failures(jobs, operation)) + 1


def prunable(jobs: Sequence[JobFact], *, successes: int, failed: int) -> list[str]:
    """The names of the Jobs that go, the oldest first."""
    gone = [job for operation in {job.op for job in jobs} for job in _surplus(jobs, operation, successes, failed)]
    return [job.name for job in sorted(gone, key=lambda job: (*job.age_key, job.name))]


def _surplus(jobs: Sequence[JobFact], operation: Operation, successes: int, failed: int) -> list[JobFact]:
    ended = newest_first(jobs, operation)
    done = [job for job in ended if _went_well(job)]
    counted = failures(jobs, operation)
    others = [job for job in ended if not _went_well(job) and job not in counted]
    half_done = unconverged(jobs, operation)
    kept = {job.name for job in (*ended[:1], *done[: max(1, successes)], *counted[:1], *half_done[:1])}
    kept |= {job.name for job in [*counted, *others][:failed]}
    return [job for job in ended if job.is_bookkept and job.name not in kept]


def _went_well(job: JobFact) -> bool:
    return job.outcome is Outcome.SUCCEEDED
