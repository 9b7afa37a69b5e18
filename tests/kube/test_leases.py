"""Who may start a Job: every verdict on a lease, the gate between a cluster and its machines, and the release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.scenes import NOW

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.leases import (
    GRACE_MS,
    REQUEUE_MS,
    Conflict,
    CreateAnswer,
    HeldLease,
    HolderJob,
    Needs,
    Preconditions,
    Verdict,
    backstop_seconds,
    create_answer,
    gate_of_cluster,
    gate_of_machine,
    judge,
    lease_body,
    lease_wait,
    needs,
    read_lease,
    release,
    releases_after,
)
from stackhold.kube.names import Annotation, Kind, LeaseRole, lease_labels
from stackhold.model.instant import HOUR, SECOND, Instant

ME, OTHER = "captf-m-web-1-apply-a2-abcdef", "captf-m-web-1-apply-a1-012345"
BACKSTOP_MS = 4500 * SECOND
APPLY, DESTROY, RESTORE = Operation.APPLY, Operation.DESTROY, Operation.RESTORE


def lease(holder: str = OTHER, *, age: int = 0, operation: str = "apply", **fields: Any) -> HeldLease:
    plain = HeldLease(
        name="captf-run-0123456789abcdef-m",
        uid="u1",
        resource_version="41",
        holder=holder,
        acquired_at=Instant(NOW - age),
        backstop_ms=BACKSTOP_MS,
        operation=operation,
    )
    return replace(plain, **fields)


@pytest.mark.parametrize(
    ("held", "holder_job", "verdict"),
    [
        (None, HolderJob.ABSENT, Verdict.FREE),
        (lease(""), HolderJob.ABSENT, Verdict.FREE),
        (lease(ME), HolderJob.ABSENT, Verdict.OURS),
        (lease(ME), HolderJob.ACTIVE, Verdict.OURS),
        (lease(), HolderJob.ENDED, Verdict.TAKEOVER),
        (lease(), HolderJob.ACTIVE, Verdict.HELD),
        (lease(), HolderJob.ABSENT, Verdict.HELD),
        (lease(age=GRACE_MS), HolderJob.ABSENT, Verdict.HELD),
        (lease(age=GRACE_MS + 1), HolderJob.ABSENT, Verdict.TAKEOVER),
        (lease(age=GRACE_MS + 1), HolderJob.ACTIVE, Verdict.HELD),
        (lease(age=BACKSTOP_MS), HolderJob.ACTIVE, Verdict.HELD),
        (lease(age=BACKSTOP_MS + 1), HolderJob.ACTIVE, Verdict.TAKEOVER),
        (lease(age=24 * HOUR, backstop_ms=None), HolderJob.ACTIVE, Verdict.HELD),
        (lease(acquired_at=None), HolderJob.ABSENT, Verdict.HELD),
    ],
)
def test_what_a_lease_means(held: HeldLease | None, holder_job: HolderJob, verdict: Verdict) -> None:
    assert judge(held, job=ME, holder_job=holder_job, now=NOW) is verdict
    assert verdict.may_take is (verdict is not Verdict.HELD)


@pytest.mark.parametrize("acquired_at", [None, Instant(NOW + HOUR)])
def test_a_holder_whose_clock_was_ahead_has_the_grace_that_we_see(acquired_at: Instant | None) -> None:
    held = lease(acquired_at=acquired_at)
    for unchanged, verdict in ((GRACE_MS, Verdict.HELD), (GRACE_MS + 1, Verdict.TAKEOVER)):
        given_up = judge(held, job=ME, holder_job=HolderJob.ABSENT, now=NOW, unchanged_ms=unchanged)
        assert given_up is verdict


@given(age=st.integers(0, BACKSTOP_MS), unchanged=st.integers(0, BACKSTOP_MS))
def test_a_job_that_runs_keeps_its_lease_up_to_the_backstop(age: int, unchanged: int) -> None:
    verdict = judge(lease(age=age), job=ME, holder_job=HolderJob.ACTIVE, now=NOW, unchanged_ms=unchanged)
    assert verdict is Verdict.HELD


@given(age=st.integers(-HOUR, 24 * HOUR), holder_job=st.sampled_from(HolderJob), later=st.integers(0, 24 * HOUR))
def test_what_may_be_taken_now_may_be_taken_later(age: int, holder_job: HolderJob, later: int) -> None:
    if judge(lease(age=age), job=ME, holder_job=holder_job, now=NOW).may_take:
        assert judge(lease(age=age), job=ME, holder_job=holder_job, now=Instant(NOW + later)).may_take


def test_the_backstop_is_the_deadline_and_fifteen_minutes() -> None:
    assert backstop_seconds(3600) == 4500


@pytest.mark.parametrize("operation", list(Operation))
@pytest.mark.parametrize("kind", list(Kind))
def test_only_what_changes_something_meets_the_gate(kind: Kind, operation: Operation) -> None:
    is_gated = operation in (APPLY, DESTROY, RESTORE)
    found = needs(kind, operation, is_gate_on=True, cluster="prod")
    assert found == Needs(
        cluster_lease=is_gated and kind is Kind.CLUSTER, asks_cluster=is_gated and kind is not Kind.CLUSTER
    )
    assert needs(kind, operation, is_gate_on=False, cluster="prod") == Needs()
    assert needs(kind, operation, is_gate_on=True, cluster="") == Needs()


def test_a_cluster_waits_for_what_changes_something_and_keeps_its_leases() -> None:
    running = [lease(f"captf-m-web-{n}-apply-a1-abcdef") for n in range(7)]
    looking = [lease("captf-m-db-drift-a1-abcdef", operation="drift"), lease("")]
    wait = gate_of_cluster([*looking, *running], NOW)
    assert wait is not None
    assert wait.conflict is Conflict.MACHINE_OPERATIONS
    assert not wait.gives_back
    assert wait.until == NOW + REQUEUE_MS
    named = ", ".join(f"captf-m-web-{n}-apply-a1-abcdef" for n in range(5))
    assert wait.message == f"waits for 7 operations of its machines and pools: {named} and 2 more"
    assert gate_of_cluster(looking, NOW) is None


def test_a_lease_that_does_not_say_what_it_is_for_is_in_the_way() -> None:
    wait = gate_of_cluster([lease(operation="")], NOW)
    assert wait is not None
    assert wait.message == f"waits for 1 operation of its machines and pools: {OTHER}"


def test_a_machine_gives_its_lease_back_for_its_cluster() -> None:
    wait = gate_of_machine(lease("captf-c-prod-apply-a3-abcdef"), Verdict.HELD, NOW)
    assert wait is not None
    assert wait.gives_back
    assert wait.conflict is Conflict.CLUSTER_OPERATION
    assert wait.message == "waits for apply of its cluster: Job captf-c-prod-apply-a3-abcdef"


@pytest.mark.parametrize("verdict", [Verdict.FREE, Verdict.TAKEOVER])
def test_a_machine_does_not_wait_for_a_cluster_that_is_done(verdict: Verdict) -> None:
    assert gate_of_machine(lease(), verdict, NOW) is None
    assert gate_of_machine(None, Verdict.FREE, NOW) is None


def test_a_wait_names_the_holder_or_the_race() -> None:
    held = lease_wait(lease(operation="drift"), NOW)
    assert held.message == f"the run lease is held by Job {OTHER}, which runs drift"
    assert lease_wait(None, NOW).message == "the run lease is held by another manager, which took it first"
    assert held.conflict is Conflict.RUN_LEASE
    other = lease_wait(lease("captf-c-prod-apply-a3-abcdef"), NOW, role=LeaseRole.CLUSTER)
    assert other.message == "the cluster's write lease is held by Job captf-c-prod-apply-a3-abcdef, which runs apply"


def test_only_the_holders_lease_is_released_and_only_as_it_was_read() -> None:
    assert release(lease(ME), job=ME) == Preconditions("u1", "41")
    assert release(lease(OTHER), job=ME) is None
    assert release(None, job=ME) is None
    assert Preconditions("u1", "41").options() == {"preconditions": {"uid": "u1", "resourceVersion": "41"}}


@pytest.mark.parametrize(
    ("status", "reason", "answer"),
    [
        (201, "", CreateAnswer.CREATED),
        (409, "AlreadyExists", CreateAnswer.EXISTS),
        (409, "Conflict", CreateAnswer.UNKNOWN),
        (400, "BadRequest", CreateAnswer.REJECTED),
        (401, "Unauthorized", CreateAnswer.REJECTED),
        (403, "Forbidden", CreateAnswer.REJECTED),
        (404, "NotFound", CreateAnswer.REJECTED),
        (413, "RequestEntityTooLarge", CreateAnswer.REJECTED),
        (422, "Invalid", CreateAnswer.REJECTED),
        (429, "TooManyRequests", CreateAnswer.UNKNOWN),
        (500, "InternalError", CreateAnswer.UNKNOWN),
        (504, "Timeout", CreateAnswer.UNKNOWN),
        (None, "", CreateAnswer.UNKNOWN),
    ],
)
def test_what_an_answer_proves(status: int | None, reason: str, answer: CreateAnswer) -> None:
    assert create_answer(status, reason) is answer


@pytest.mark.parametrize("answer", list(CreateAnswer))
@pytest.mark.parametrize("job", [None, *HolderJob])
def test_leases_are_given_back_only_when_there_is_certainly_no_job(answer: CreateAnswer, job: HolderJob | None) -> None:
    assert releases_after(answer, job) is (answer is CreateAnswer.REJECTED and job is HolderJob.ABSENT)


def written(existing: dict[str, Any] | None = None) -> dict[str, Any]:
    return lease_body(
        existing,
        name="captf-run-0123456789abcdef-m",
        namespace="acme",
        labels=lease_labels(Kind.MACHINE, "web-1", "prod", LeaseRole.RUN),
        job=ME,
        operation=APPLY,
        deadline_s=3600,
        now=Instant(NOW + 7),
    )


def test_a_lease_is_read_as_it_was_written() -> None:
    stored = written()
    stored["metadata"] |= {"uid": "u1", "resourceVersion": "41"}
    assert read_lease(stored) == lease(ME, acquired_at=Instant(NOW + 7))
    assert stored["metadata"]["labels"]["captf.io/lease"] == "run"
    assert stored["metadata"]["annotations"][Annotation.LEASE_OPERATION] == "apply"
    assert stored["spec"]["leaseDurationSeconds"] == 4500


def test_taking_over_writes_over_the_version_that_was_read_and_no_other() -> None:
    stored = written()
    stored["metadata"] |= {"uid": "u1", "resourceVersion": "41", "managedFields": [], "annotations": {"kept": "1"}}
    stored["spec"]["leaseTransitions"] = 3
    taken = written(stored)
    assert taken["metadata"]["resourceVersion"] == "41"
    assert taken["metadata"]["annotations"]["kept"] == "1"
    assert "managedFields" not in taken["metadata"]
    assert "resourceVersion" not in written()["metadata"]


@pytest.mark.parametrize(
    "damaged", [{}, {"spec": None}, {"metadata": None}, {"spec": {"acquireTime": "soon", "leaseDurationSeconds": "x"}}]
)
def test_a_damaged_lease_is_a_free_one(damaged: dict[str, Any]) -> None:
    assert judge(read_lease(damaged), job=ME, holder_job=HolderJob.ABSENT, now=NOW) is Verdict.FREE


@st.composite
def passes(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Passes of a cluster and two machines, each in two halves, in any order."""
    halves = [("cluster", half) for half in ("take", "look")] * 4
    halves += [(machine, half) for machine in ("web-1", "web-2") for half in ("take", "look")] * 4
    return draw(st.permutations(halves))


class Gate:
    """The leases of a cluster and two machines. Each method is one read or write, which the API server orders."""

    def __init__(self) -> None:
        self.store: dict[str, HeldLease] = {}
        self.took: set[str] = set()
        self.running: set[str] = set()

    def verdict_on(self, key: str, job: str) -> Verdict:
        held = self.store.get(key)
        is_running = held is not None and held.holder in self.running
        return judge(held, job=job, holder_job=HolderJob.ACTIVE if is_running else HolderJob.ABSENT, now=NOW)

    def end_one(self) -> None:
        for done in sorted(self.running)[:1]:
            self.running.discard(done)
            self.store = {key: held for key, held in self.store.items() if held.holder != done}

    def take(self, who: str) -> None:
        if who in self.running or not self.verdict_on(who, who).may_take:
            return
        self.took.add(who)
        self.store[who] = lease(who)
        if who == "cluster":
            self.store["gate"] = lease(who)

    def look(self, who: str) -> None:
        if who not in self.took or who in self.running or who not in self.store:
            return
        self.took.discard(who)
        if who == "cluster":
            wait = gate_of_cluster([self.store[key] for key in ("web-1", "web-2") if key in self.store], NOW)
        else:
            wait = gate_of_machine(self.store.get("gate"), self.verdict_on("gate", who), NOW)
        if wait is None:
            self.running.add(who)
        elif wait.gives_back:
            del self.store[who]


@given(order=passes(), ends=st.lists(st.booleans(), min_size=24, max_size=24))
def test_a_cluster_and_its_machines_never_run_at_once_whatever_the_order(
    order: list[tuple[str, str]], ends: list[bool]
) -> None:
    gate = Gate()
    for (who, half), may_end in zip(order, ends, strict=True):
        if may_end:
            gate.end_one()
        (gate.take if half == "take" else gate.look)(who)
        assert not ("cluster" in gate.running and len(gate.running) > 1)


@given(order=st.lists(st.sampled_from([("web-1", "take"), ("web-1", "look"), ("web-2", "take"), ("web-2", "look")])))
def test_no_stream_of_machine_operations_holds_up_a_cluster_longer_than_those_that_run(
    order: list[tuple[str, str]],
) -> None:
    gate = Gate()
    gate.take("web-1")
    gate.look("web-1")
    gate.take("cluster")
    for who, half in order:
        (gate.take if half == "take" else gate.look)(who)
        assert gate.running == {"web-1"}
    gate.end_one()
    for who in ("web-1", "web-2"):
        gate.look(who)
    gate.look("cluster")
    assert gate.running == {"cluster"}
