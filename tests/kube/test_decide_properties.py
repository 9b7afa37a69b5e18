"""What holds of every decision: one operation at a time, no starving, backoff that never shrinks, no clock."""

from __future__ import annotations

import ast
import inspect
import itertools
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kube.scenes import NEW, NOW, OLD, job, settled

from stackhold.engines.terraform.steps import Operation
from stackhold.kube import backoff, decide, schedule, snapshot
from stackhold.kube.backoff import BASE_MS, CAP_MS, backoff_until, delay
from stackhold.kube.decide import Finalize, Reason, Run, Wait, Waiting
from stackhold.kube.names import Kind
from stackhold.kube.schedule import JITTER_PART, jitter, pending_delay
from stackhold.kube.snapshot import (
    ApplyPolicy,
    DeletionPolicy,
    Intervals,
    JobFact,
    Outcome,
    PlanFacts,
    PlanPhase,
    PlanReason,
    Readings,
    RestoreRequest,
    Snapshot,
    StateFacts,
    StateStatus,
    is_background,
)
from stackhold.model.instant import HOUR, MINUTE, SECOND, Instant

if TYPE_CHECKING:
    from types import ModuleType

JOB_OPERATIONS = [op for op in Operation if op is not Operation.FORCE_UNLOCK]
ENDED = [outcome for outcome in Outcome if outcome is not Outcome.ACTIVE]
LONGEST = 24 * HOUR

hashes = st.sampled_from([OLD, NEW])
times = st.integers(NOW - 3 * LONGEST, NOW + HOUR).map(Instant)
maybe_times = st.none() | times
spans = st.none() | st.integers(1, LONGEST)


@st.composite
def past_jobs(draw: st.DrawFn) -> JobFact:
    finished = draw(times)
    return JobFact(
        name=f"job-{draw(st.integers(0, 10**9))}",
        op=draw(st.sampled_from(JOB_OPERATIONS)),
        attempt=draw(st.integers(1, 9)),
        outcome=draw(st.sampled_from(ENDED)),
        created_at=Instant(finished - draw(st.integers(0, HOUR))),
        finished_at=finished,
        inputs_hash=draw(hashes),
        is_remediation=draw(st.booleans()),
    )


snapshots = st.builds(
    Snapshot,
    kind=st.sampled_from(Kind),
    uid=st.sampled_from(["", "a", "b", "c"]),
    created_at=times,
    jobs=st.lists(past_jobs(), max_size=4).map(tuple),
    has_unseen_job=st.just(False),
    state=st.builds(StateFacts, st.sampled_from(StateStatus), st.sampled_from(["", OLD])),
    inputs_hash=st.none() | hashes,
    unconfirmed_apply=st.sampled_from(["", "gone"]),
    is_paused=st.booleans(),
    is_deleting=st.booleans(),
    deletion_policy=st.sampled_from(DeletionPolicy),
    dependents=st.sampled_from([(), ("web",)]),
    restore=st.none() | st.builds(RestoreRequest, st.integers(1, 2), st.sampled_from(["", "backup"])),
    last_restored_serial=st.none() | st.integers(1, 2),
    apply_policy=st.sampled_from(ApplyPolicy),
    plan=st.builds(PlanFacts, st.sampled_from(PlanPhase), st.sampled_from(PlanReason), st.just("p2:1")),
    remediates_drift=st.booleans(),
    readings=st.builds(Readings, st.integers(0, 9), st.booleans(), st.booleans()),
    intervals=st.builds(Intervals, spans, spans, spans),
    failed_limit=st.integers(0, 8),
    last_apply=maybe_times,
    last_refresh=maybe_times,
    last_drift_check=maybe_times,
)


@given(seen=snapshots, op=st.sampled_from(JOB_OPERATIONS), at=times)
def test_nothing_runs_while_a_job_does(seen: Snapshot, op: Operation, at: Instant) -> None:
    active = JobFact(name="running", op=op, attempt=1, outcome=Outcome.ACTIVE, created_at=at)
    for busy in (replace(seen, jobs=(*seen.jobs, active)), replace(seen, has_unseen_job=True)):
        decision = decide.decide(busy, NOW)
        assert isinstance(decision, Wait)
        assert decision.reason is Reason.JOB_ACTIVE


@given(seen=snapshots)
def test_every_wait_ends_after_now_and_within_the_longest_interval(seen: Snapshot) -> None:
    decision = decide.decide(seen, NOW)
    if isinstance(decision, Wait) and decision.until is not None:
        given_spans = [span or 0 for span in (getattr(seen.intervals, each.name) for each in fields(Intervals))]
        longest = max(CAP_MS, schedule.PENDING_CAP_MS, *given_spans)
        assert NOW < decision.until <= NOW + longest + longest // JITTER_PART + CAP_MS


@given(seen=snapshots)
def test_a_wait_without_an_end_is_for_somebody_or_for_nothing(seen: Snapshot) -> None:
    decision = decide.decide(seen, NOW)
    if isinstance(decision, Wait) and decision.until is None:
        assert decision.waiting in (Waiting.UNPAUSE, Waiting.SCHEDULE)
        assert seen.is_paused or not (seen.intervals.drift_ms or seen.intervals.health_ms)


@given(seen=snapshots)
def test_a_wait_for_the_time_is_over_when_it_says(seen: Snapshot) -> None:
    """Woken at the end of a backoff or an interval, the object runs something, unless clocks disagreed."""
    decision = decide.decide(seen, NOW)
    if not isinstance(decision, Wait) or decision.waiting not in (Waiting.BACKOFF, Waiting.SCHEDULE):
        return
    if decision.until is None or _has_future(seen):
        return
    then = decide.decide(seen, decision.until)
    assert isinstance(then, Run) or then != decision


@given(seen=snapshots, later=st.integers(0, LONGEST))
def test_what_may_run_now_is_not_held_up_by_waiting(seen: Snapshot, later: int) -> None:
    if isinstance(decide.decide(seen, NOW), Run):
        assert isinstance(decide.decide(seen, Instant(NOW + later)), Run)


@given(seen=snapshots)
def test_a_deleting_object_only_restores_and_destroys(seen: Snapshot) -> None:
    decision = decide.decide(replace(seen, is_deleting=True), NOW)
    assert not isinstance(decision, Run) or decision.op in (Operation.RESTORE, Operation.DESTROY)
    assert not isinstance(decide.decide(replace(seen, is_deleting=False), NOW), Finalize)


@given(seen=snapshots)
def test_nothing_but_a_restore_runs_on_a_state_that_cannot_be_read(seen: Snapshot) -> None:
    decision = decide.decide(seen, NOW)
    if seen.state.status.is_held and isinstance(decision, Run):
        assert decision.op is Operation.RESTORE


@given(seen=snapshots)
def test_an_unapproved_plan_is_never_applied(seen: Snapshot) -> None:
    decision = decide.decide(seen, NOW)
    is_manual = seen.kind is Kind.CLUSTER and seen.apply_policy is ApplyPolicy.MANUAL
    if isinstance(decision, Run) and decision.op is Operation.APPLY and is_manual:
        assert decision.reason is Reason.NO_STATE or decision.expect_plan


@given(seen=snapshots, shift=st.integers(-(10**10), 10**10))
def test_moving_everything_in_time_moves_the_answer_alike(seen: Snapshot, shift: int) -> None:
    before = decide.decide(seen, NOW)
    after = decide.decide(_moved(seen, shift), Instant(NOW + shift))
    assert after == (_moved(before, shift) if isinstance(before, Wait) else before)


@given(seen=snapshots, data=st.data())
def test_the_order_in_which_jobs_are_listed_does_not_matter(seen: Snapshot, data: st.DataObject) -> None:
    distinct = {job.age_key: job for job in seen.jobs}
    seen = replace(seen, jobs=tuple(distinct.values()))
    mixed = replace(seen, jobs=tuple(data.draw(st.permutations(seen.jobs))))
    assert decide.decide(mixed, NOW) == decide.decide(seen, NOW)


@pytest.mark.parametrize("module", [decide, backoff, schedule, snapshot])
def test_no_decision_reads_a_clock(module: ModuleType) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    outside = {name for name in imported if not name.startswith("stackhold.")}
    assert outside <= {"__future__", "dataclasses", "enum", "typing", "collections.abc", "hashlib"}


@given(count=st.integers(0, 200), limit=st.integers(0, 100))
def test_the_delay_never_shrinks_and_never_passes_the_cap(count: int, limit: int) -> None:
    assert delay(count, limit) <= delay(count + 1, limit) <= CAP_MS


@pytest.mark.parametrize(
    ("limit", "minutes"),
    [(0, [10, 10, 10, 10, 10]), (1, [10, 10, 10, 10, 10]), (3, [1, 2, 10, 10, 10]), (5, [1, 2, 4, 8, 10])],
)
def test_the_cap_is_reached_at_once_at_the_limit(limit: int, minutes: list[int]) -> None:
    assert [delay(count, limit) // MINUTE for count in range(1, 6)] == minutes


@pytest.mark.parametrize("outcome", ENDED)
def test_a_deadline_counts_and_an_interruption_does_not(outcome: Outcome) -> None:
    seen = settled(jobs=(job(Operation.APPLY, outcome, ago=SECOND),))
    counts = {Outcome.FAILED, Outcome.DEADLINE, Outcome.PLAN_UNREADABLE}
    expected = Instant(NOW - SECOND + BASE_MS) if outcome in counts else None
    assert backoff_until(seen, Operation.APPLY, NOW) == expected


@given(failed=st.lists(st.integers(1, 10**7), min_size=1, max_size=6), op=st.sampled_from(JOB_OPERATIONS))
def test_one_operations_failures_hold_up_no_other(failed: list[int], op: Operation) -> None:
    seen = settled(jobs=tuple(job(op, Outcome.FAILED, ago=ago) for ago in failed))
    assert all(backoff_until(seen, other, NOW) is None for other in JOB_OPERATIONS if other is not op)


@given(uid=st.text(min_size=1), interval=st.integers(0, LONGEST))
def test_the_jitter_is_at_most_a_tenth_and_always_the_same(uid: str, interval: int) -> None:
    assert 0 <= jitter(uid, interval) == jitter(uid, interval) <= interval // JITTER_PART
    assert jitter("", interval) == 0


def test_objects_made_together_do_not_check_together() -> None:
    assert len({jitter(f"uid-{n}", 30 * MINUTE) for n in range(100)}) > 90


def test_pending_health_is_looked_at_ever_more_rarely() -> None:
    assert [pending_delay(n) // SECOND for n in range(7)] == [30, 30, 60, 120, 240, 300, 300]


class Life:
    """One object over time: what is decided is done, each run takes `length`, and ends as `ends` says."""

    def __init__(self, seen: Snapshot, ends: dict[Operation, list[Outcome]], length: int) -> None:
        self.seen, self.ends, self.length, self.now = seen, ends, length, NOW
        self.ran: list[tuple[Operation, Instant]] = []

    def step(self) -> None:
        decision = decide.decide(self.seen, self.now)
        if isinstance(decision, Run):
            self._run(decision)
        else:
            assert isinstance(decision, Wait)
            assert decision.until is not None
            self.now = decision.until

    def _run(self, run: Run) -> None:
        self.ran.append((run.op, self.now))
        self.now = Instant(self.now + self.length)
        left = self.ends.get(run.op, [])
        outcome = left.pop(0) if left else Outcome.SUCCEEDED
        ended = JobFact(
            name=f"job-{len(self.ran)}",
            op=run.op,
            attempt=len(self.ran),
            outcome=outcome,
            created_at=Instant(self.now - self.length),
            finished_at=self.now,
            inputs_hash=self.seen.inputs_hash or "",
            is_remediation=run.is_remediation,
        )
        changes: dict[str, Any] = {"jobs": (*self.seen.jobs[-20:], ended)}
        if outcome is Outcome.SUCCEEDED:
            name = {Operation.APPLY: "last_apply", Operation.DRIFT: "last_drift_check"}.get(run.op, "last_refresh")
            changes[name] = self.now
            if run.op is Operation.APPLY:
                changes["state"] = StateFacts(StateStatus.READABLE, self.seen.inputs_hash or "")
        self.seen = replace(self.seen, **changes)


lives = st.builds(
    settled,
    kind=st.sampled_from(Kind),
    inputs_hash=hashes,
    readings=st.builds(Readings, st.integers(0, 5), st.booleans(), st.booleans()),
    remediates_drift=st.booleans(),
    intervals=st.builds(
        Intervals, st.just(30 * MINUTE), st.none() | st.integers(SECOND, HOUR), st.none() | st.integers(SECOND, HOUR)
    ),
    uid=st.sampled_from(["", "a", "b"]),
    failed_limit=st.integers(0, 5),
)
failing = st.lists(st.sampled_from([Outcome.FAILED, Outcome.DEADLINE]), min_size=60, max_size=60)


@settings(max_examples=25)
@given(seen=lives, failed=failing, length=st.integers(SECOND, 5 * MINUTE))
def test_refreshes_that_always_fail_starve_neither_applies_nor_drift_checks(
    seen: Snapshot, failed: list[Outcome], length: int
) -> None:
    life = Life(seen, {Operation.REFRESH: failed}, length)
    while life.now < NOW + 4 * HOUR:
        life.step()
    longest = 33 * MINUTE + CAP_MS + 2 * length
    checks = [NOW, *(at for op, at in life.ran if op is Operation.DRIFT), life.now]
    assert max(later - earlier for earlier, later in itertools.pairwise(checks)) <= longest + length
    assert life.seen.kind is Kind.MACHINE or life.seen.state.inputs_hash == life.seen.inputs_hash


@settings(max_examples=25)
@given(seen=lives, failed=failing, length=st.integers(SECOND, 5 * MINUTE))
def test_an_apply_that_always_fails_is_tried_again_for_ever(seen: Snapshot, failed: list[Outcome], length: int) -> None:
    changed = replace(seen, kind=Kind.CLUSTER, inputs_hash=NEW)
    life = Life(changed, {Operation.APPLY: failed}, length)
    while life.now < NOW + 4 * HOUR:
        life.step()
    tries = [at for op, at in life.ran if op is Operation.APPLY]
    pauses = [later - earlier - length for earlier, later in itertools.pairwise(tries)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == CAP_MS
    assert not any(is_background(op) for op, _ in life.ran)


def _has_future(seen: Snapshot) -> bool:
    known = [seen.created_at, seen.last_apply, seen.last_refresh, seen.last_drift_check]
    return any(at is not None and at > NOW for at in [*known, *(job.finished_at for job in seen.jobs)])


def _moved(of: Any, shift: int) -> Any:
    """The same with every point in time moved."""
    if isinstance(of, Wait):
        return of if of.until is None else replace(of, until=Instant(of.until + shift))
    points = ("created_at", "finished_at", "last_apply", "last_refresh", "last_drift_check")
    moved = {name: getattr(of, name) + shift for name in points if hasattr(of, name) and getattr(of, name) is not None}
    if isinstance(of, Snapshot):
        moved["jobs"] = tuple(_moved(job, shift) for job in of.jobs)
    return replace(of, **moved)
