"""Two managers, one object: whatever is stale, held up or lost between their steps, never two Jobs at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kube.scenes import NEW, NOW, OLD

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.job_history import next_attempt
from stackhold.kube.leases import (
    CREATE_WITHIN_MS,
    GRACE_MS,
    HolderJob,
    judge,
    lease_body,
    may_create,
    read_lease,
    release,
)
from stackhold.kube.names import Kind, job_name
from stackhold.kube.snapshot import JobFact, Outcome
from stackhold.model.instant import SECOND, Instant

APPLY: Final = Operation.APPLY


@dataclass
class Cluster:
    """The API server: one lease, and Jobs that are active or over. Each method is one request."""

    now: Instant = NOW
    lease: dict[str, Any] | None = None
    version: int = 0
    jobs: dict[str, JobFact] = field(default_factory=dict)

    def holder_job(self, name: str) -> HolderJob:
        found = self.jobs.get(name)
        if found is None:
            return HolderJob.ABSENT
        return HolderJob.ACTIVE if found.outcome is Outcome.ACTIVE else HolderJob.ENDED

    def write(self, body: dict[str, Any]) -> bool:
        version = body["metadata"].pop("resourceVersion", None)
        if version != (None if self.lease is None else self.lease["metadata"]["resourceVersion"]):
            return False
        self.version += 1
        body["metadata"] |= {"resourceVersion": str(self.version), "uid": "u"}
        self.lease = body
        return True

    def create(self, name: str, attempt: int) -> None:
        made = JobFact(name=name, op=APPLY, attempt=attempt, outcome=Outcome.ACTIVE, created_at=self.now)
        self.jobs.setdefault(name, made)

    def end(self) -> None:
        """The active Job ends, and a pass that counts it gives its lease back."""
        for name, job in self.jobs.items():
            if job.outcome is Outcome.ACTIVE:
                self.jobs[name] = JobFact(
                    name=name,
                    op=APPLY,
                    attempt=job.attempt,
                    outcome=Outcome.FAILED,
                    created_at=job.created_at,
                    finished_at=self.now,
                )
                held = None if self.lease is None else read_lease(self.lease)
                if release(held, job=name) is not None:
                    self.lease = None

    def active(self) -> int:
        return sum(job.outcome is Outcome.ACTIVE for job in self.jobs.values())


@dataclass
class Manager:
    """One pass after another, a request at a time. Its list of Jobs may be old, and it may stop for any time."""

    listed: tuple[JobFact, ...] = ()
    step: int = 0
    name: str = ""
    attempt: int = 0
    read: dict[str, Any] | None = None
    taken_at: Instant = NOW

    def go(self, server: Cluster, inputs_hash: str) -> None:
        self.step = (self._plan, self._read, self._write, self._create)[self.step](server, inputs_hash)

    def _plan(self, _: Cluster, inputs_hash: str) -> int:
        if any(job.outcome is Outcome.ACTIVE for job in self.listed):
            return 0
        self.attempt = next_attempt(self.listed, APPLY)
        self.name = job_name(Kind.CLUSTER, "prod", APPLY, attempt=self.attempt, inputs_hash=inputs_hash)
        return 1

    def _read(self, server: Cluster, _: str) -> int:
        self.read = server.lease
        held = None if self.read is None else read_lease(self.read)
        holder = server.holder_job(held.holder if held else "")
        return 2 if judge(held, job=self.name, holder_job=holder, now=server.now).may_take else 0

    def _write(self, server: Cluster, _: str) -> int:
        self.taken_at = server.now
        body = lease_body(
            self.read,
            name="captf-run-x-c",
            namespace="acme",
            labels={},
            job=self.name,
            operation=APPLY,
            deadline_s=3600,
            now=server.now,
        )
        return 3 if server.write(body) else 0

    def _create(self, server: Cluster, _: str) -> int:
        if may_create(server.now - self.taken_at):
            server.create(self.name, self.attempt)
        return 0


rare = st.sampled_from(["end", "list first", "list second", "restart first", "restart second"])
moves = st.tuples(
    st.sampled_from(["first", "second"]) | st.sampled_from(["first", "second"]) | rare,
    st.sampled_from([0, 0, SECOND, 20 * SECOND, 40 * SECOND, 70 * SECOND]),
)


@given(story=st.lists(moves, min_size=10, max_size=60), sees=st.sampled_from([(OLD, NEW), (OLD, OLD)]))
def test_there_are_never_two_jobs_of_one_object(story: list[tuple[str, int]], sees: tuple[str, str]) -> None:
    server, managers = Cluster(), {"first": Manager(), "second": Manager()}
    hashes = dict(zip(managers, sees, strict=True))
    for move, passed in story:
        server.now = Instant(server.now + passed)
        verb, _, who = move.rpartition(" ")
        if move == "end":
            server.end()
        elif verb == "list":
            managers[who].listed = tuple(server.jobs.values())
        elif verb == "restart":
            managers[who] = Manager(listed=tuple(server.jobs.values()))
        else:
            managers[move].go(server, hashes[move])
        assert server.active() <= 1


def test_a_manager_that_died_between_lease_and_job_holds_up_the_next_for_the_grace() -> None:
    server, dead, next_one = Cluster(), Manager(), Manager()
    for _ in range(3):
        dead.go(server, OLD)
    for _ in range(2):
        next_one.go(server, NEW)
    assert next_one.step == 0
    server.now = Instant(server.now + GRACE_MS + 1)
    for _ in range(4):
        next_one.go(server, NEW)
    assert [job.name for job in server.jobs.values()] == [next_one.name]
    dead.go(server, OLD)
    assert server.active() == 1


@pytest.mark.parametrize(
    ("since", "may"), [(0, True), (CREATE_WITHIN_MS, True), (CREATE_WITHIN_MS + 1, False), (-1, False)]
)
def test_a_job_is_created_well_within_the_grace_or_not_at_all(since: int, may: bool) -> None:
    assert may_create(since) is may
    assert CREATE_WITHIN_MS < GRACE_MS
