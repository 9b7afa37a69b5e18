"""Which finished Jobs stay, and which number comes next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.kube.scenes import NOW, job, settled

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.backoff import apply_is_unconverged, delay, failures
from stackhold.kube.decide import Wait, decide
from stackhold.kube.job_history import next_attempt, prunable, retry_number
from stackhold.kube.snapshot import JobFact, Outcome
from stackhold.model.instant import MINUTE

APPLY, DRIFT = Operation.APPLY, Operation.DRIFT
OK, BAD, STOPPED, HELD = Outcome.SUCCEEDED, Outcome.FAILED, Outcome.INTERRUPTED, Outcome.BLOCKED


def history(*outcomes: Outcome, op: Operation = APPLY) -> list[JobFact]:
    """Jobs with these outcomes, the newest first, named by their place."""
    return [
        job(op, outcome, ago=place * MINUTE, name=f"{op.value}-{place}", attempt=len(outcomes) - place + 1)
        for place, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "successes", "failed", "gone"),
    [
        ([OK, OK, OK], 3, 3, []),
        ([OK, OK, OK, OK, OK], 3, 3, [5, 4]),
        ([BAD, BAD, BAD, BAD], 3, 3, [4]),
        ([OK, OK], 0, 0, [2]),
        ([BAD, BAD, OK], 0, 0, [2]),
        ([OK, BAD, BAD], 0, 0, [3, 2]),
        ([OK, BAD, BAD], 3, 1, [3]),
        ([STOPPED, BAD, BAD, BAD], 3, 3, []),
        ([STOPPED, STOPPED, BAD, BAD, BAD], 3, 3, [2]),
        ([HELD, BAD, OK], 0, 0, []),
        ([HELD, HELD, HELD, HELD], 3, 3, [4]),
        ([OK, STOPPED, BAD], 3, 0, [3, 2]),
        ([HELD, STOPPED, STOPPED], 3, 0, [3]),
    ],
)
def test_what_goes(outcomes: list[Outcome], successes: int, failed: int, gone: list[int]) -> None:
    assert prunable(history(*outcomes), successes=successes, failed=failed) == [f"apply-{place}" for place in gone]


def test_each_operation_has_its_own_history() -> None:
    jobs = [*history(OK), *history(OK, OK, OK, OK, op=DRIFT)]
    assert prunable(jobs, successes=3, failed=3) == ["drift-4"]


def test_a_running_job_and_one_that_is_not_counted_stay() -> None:
    jobs = [*history(OK, OK), replace(history(BAD)[0], is_bookkept=False, name="new"), job(APPLY, Outcome.ACTIVE)]
    assert prunable([replace(each, is_bookkept=False) for each in jobs], successes=0, failed=0) == []


def mixed(past: list[tuple[Outcome, bool]]) -> list[JobFact]:
    """Applies with these outcomes, the newest first, some of them remediations."""
    plain = history(*(outcome for outcome, _ in past))
    return [replace(each, is_remediation=is_one) for each, (_, is_one) in zip(plain, past, strict=True)]


outcome = st.sampled_from([each for each in Outcome if each is not Outcome.ACTIVE])
outcomes = st.lists(outcome, min_size=1, max_size=12)


@given(past=outcomes, successes=st.integers(0, 5), limit=st.integers(0, 5))
def test_pruning_changes_no_decision(past: list[Outcome], successes: int, limit: int) -> None:
    """Backoff, the number of the next attempt and what the newest Job means are the same afterwards."""
    jobs = history(*past)
    gone = set(prunable(jobs, successes=successes, failed=limit))
    kept = [each for each in jobs if each.name not in gone]
    before, after = len(failures(jobs, APPLY)), len(failures(kept, APPLY))
    assert delay(before, limit) == delay(after, limit)
    assert next_attempt(kept, APPLY) == next_attempt(jobs, APPLY)
    assert set(prunable(kept, successes=successes, failed=limit)) == set()
    seen = settled(failed_limit=limit)
    decisions = [decide(replace(seen, jobs=tuple(each)), NOW) for each in (jobs, kept)]
    assert decisions[0] == decisions[1]
    assert not isinstance(decisions[0], Wait) or decisions[0].until is not None


@given(past=st.lists(st.tuples(outcome, st.booleans()), min_size=1, max_size=6), limit=st.integers(0, 3))
@example(past=[(HELD, False), (STOPPED, False)], limit=0)
@example(past=[(BAD, True), (STOPPED, False)], limit=1)
def test_whether_the_last_apply_failed_survives_pruning(past: list[tuple[Outcome, bool]], limit: int) -> None:
    jobs = mixed(past)
    gone = set(prunable(jobs, successes=1, failed=limit))
    kept = [each for each in jobs if each.name not in gone]
    assert apply_is_unconverged(kept) is apply_is_unconverged(jobs)


def test_no_attempt_is_used_twice() -> None:
    assert next_attempt([], APPLY) == 1
    assert next_attempt(history(BAD, BAD, OK), APPLY) == 4
    assert next_attempt([job(APPLY, Outcome.ACTIVE, attempt=7)], APPLY) == 8
    assert next_attempt(history(BAD), DRIFT) == 1


def test_the_number_of_a_retry_counts_failures_since_the_last_success() -> None:
    assert retry_number(history(BAD, STOPPED, HELD, BAD, OK, BAD), APPLY) == 3
    assert retry_number([], APPLY) == 1
