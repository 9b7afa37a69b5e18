"""Whether there is room for one more Job: in all, and in the Jobs of one cluster.

Looked at before anything is rendered or leased, from the list of Jobs that a watch keeps. Nothing locks the count, so
passes at the same moment may go over a limit by a few; a pass that sees the limit reached never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.kube.schedule import jitter
from stackhold.kube.snapshot import is_background
from stackhold.model.instant import SECOND, Instant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.engines.terraform.steps import Operation

IN_ALL: Final = 200
PER_CLUSTER: Final = 20
BACKGROUND_PERCENT: Final = 80
REQUEUE_MS: Final = 15 * SECOND
REASON: Final = "WaitingForJobSlot"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many Jobs may run at once; 0 is no limit."""

    in_all: int = IN_ALL
    per_cluster: int = PER_CLUSTER


@dataclass(frozen=True, slots=True)
class Cluster:
    """Whose Jobs count together; without a name they only count in all."""

    namespace: str
    name: str


class Scope(StrEnum):
    """Which limit is reached."""

    IN_ALL = "in all"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class SlotWait:
    """No Job now, and look again then."""

    scope: Scope
    running: int
    limit: int
    message: str
    until: Instant


def wait_for_slot(
    running: Iterable[Cluster],
    *,
    cluster: Cluster,
    operation: Operation,
    limits: Limits,
    uid: str,
    now: Instant,
) -> SlotWait | None:
    """Whether a Job has to wait: `running` is one entry for each Job that has not ended, by the cluster it is of."""
    all_running = list(running)
    counted = [(Scope.IN_ALL, len(all_running), limits.in_all)]
    if cluster.name:
        counted.append((Scope.CLUSTER, all_running.count(cluster), limits.per_cluster))
    for scope, count, limit in counted:
        if not _has_room(count, limit, operation):
            return _wait(scope, count, limit, operation=operation, cluster=cluster, uid=uid, now=now)
    return None


def _has_room(count: int, limit: int, operation: Operation) -> bool:
    if limit <= 0:
        return True
    percent = BACKGROUND_PERCENT if is_background(operation) else 100
    return count * 100 < limit * percent


def _wait(
    scope: Scope, count: int, limit: int, *, operation: Operation, cluster: Cluster, uid: str, now: Instant
) -> SlotWait:
    whose = f"of cluster {cluster.namespace}/{cluster.name}" if scope is Scope.CLUSTER else "in all"
    part = f"; {operation.value} starts below {BACKGROUND_PERCENT} % of it" if is_background(operation) else ""
    jobs = "1 Job runs" if count == 1 else f"{count} Jobs run"
    until = Instant(now + REQUEUE_MS + jitter(uid, REQUEUE_MS))
    return SlotWait(scope, count, limit, f"{jobs} {whose}, the limit is {limit}{part}", until)
