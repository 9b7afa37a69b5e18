"""The limits on Jobs that run at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.scenes import NOW, UID

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.schedule import jitter
from stackhold.kube.slots import IN_ALL, PER_CLUSTER, REQUEUE_MS, Cluster, Limits, Scope, SlotWait, wait_for_slot
from stackhold.model.instant import SECOND

PROD, TEST, NONE = Cluster("acme", "prod"), Cluster("acme", "test"), Cluster("acme", "")
APPLY, DRIFT = Operation.APPLY, Operation.DRIFT


def asked(
    running: list[Cluster], operation: Operation = APPLY, *, cluster: Cluster = PROD, limits: Limits | None = None
) -> SlotWait | None:
    return wait_for_slot(running, cluster=cluster, operation=operation, limits=limits or Limits(), uid=UID, now=NOW)


def test_the_limits_are_200_in_all_and_20_for_a_cluster() -> None:
    assert (IN_ALL, PER_CLUSTER) == (200, 20)


@pytest.mark.parametrize(
    ("operation", "others", "own", "scope"),
    [
        (APPLY, 199, 0, None),
        (APPLY, 200, 0, Scope.IN_ALL),
        (APPLY, 0, 19, None),
        (APPLY, 0, 20, Scope.CLUSTER),
        (DRIFT, 159, 0, None),
        (DRIFT, 160, 0, Scope.IN_ALL),
        (DRIFT, 0, 15, None),
        (DRIFT, 0, 16, Scope.CLUSTER),
        (Operation.REFRESH, 0, 16, Scope.CLUSTER),
        (Operation.DESTROY, 0, 19, None),
        (Operation.PLAN, 0, 19, None),
        (Operation.RESTORE, 0, 19, None),
    ],
)
def test_background_work_leaves_a_fifth_for_the_rest(
    operation: Operation, others: int, own: int, scope: Scope | None
) -> None:
    wait = asked([TEST] * others + [PROD] * own, operation)
    assert (wait.scope if wait else None) is scope


def test_no_limit_is_no_limit() -> None:
    assert asked([PROD] * 1000, DRIFT, limits=Limits(0, 0)) is None


def test_a_limit_of_one_lets_background_work_run_alone() -> None:
    assert asked([], DRIFT, limits=Limits(1, 1)) is None


def test_another_namespaces_cluster_of_the_same_name_is_another() -> None:
    assert asked([Cluster("other", "prod")] * 20) is None


def test_jobs_without_a_cluster_only_count_in_all() -> None:
    assert asked([NONE] * 20, cluster=NONE) is None
    assert asked([NONE] * 200, cluster=NONE) is not None


def test_a_wait_says_how_many_run_and_when_to_look_again() -> None:
    wait = asked([PROD] * 20)
    assert wait is not None
    assert wait.message == "20 Jobs run of cluster acme/prod, the limit is 20"
    assert wait.until == NOW + 15 * SECOND + jitter(UID, REQUEUE_MS)
    background = asked([PROD], DRIFT, limits=Limits(0, 1))
    assert background is not None
    assert background.message == "1 Job runs of cluster acme/prod, the limit is 1; drift starts below 80 % of it"


@given(count=st.integers(0, 300), limit=st.integers(1, 250), operation=st.sampled_from(Operation))
def test_a_pass_that_sees_the_limit_reached_starts_nothing(count: int, limit: int, operation: Operation) -> None:
    wait = asked([TEST] * count, operation, limits=Limits(limit, 0))
    assert wait is not None or count < limit
    if wait is not None:
        assert NOW + 15 * SECOND <= wait.until <= NOW + 16_500
