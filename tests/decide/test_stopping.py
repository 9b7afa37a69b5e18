"""The grace, its margin, and the end that each cause gives a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.decide.stopping import end_of, is_over, journal_reason, leaves_after, margin
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import BootInstant
from stackhold.model.run import Outcome, StopCause


@pytest.mark.parametrize(("grace", "expected"), [(600_000, 30_000), (8_000, 2_000), (120_000, 30_000), (0, 0)])
def test_the_margin_is_half_a_minute_or_a_quarter_of_a_short_grace(grace: int, expected: int) -> None:
    assert margin(grace) == expected


@given(grace=st.integers(0, 10**7), stopped=st.integers(1, 10**9), since=st.integers(0, 10**8))
def test_a_run_is_over_at_the_grace_less_its_margin(grace: int, stopped: int, since: int) -> None:
    over = is_over(stopped_at=BootInstant(stopped), now=BootInstant(stopped + since), grace_ms=grace)
    assert over == (since >= grace - margin(grace))


@given(grace=st.integers(1, 10**7))
def test_a_process_that_hangs_leaves_after_saving_had_its_time_and_before_the_grace_ends(grace: int) -> None:
    assert grace - margin(grace) <= leaves_after(grace) <= grace
    assert grace < 4 or grace < leaves_after(grace) + 2_001


@given(now=st.integers(1, 10**9), grace=st.integers(0, 10**6))
def test_a_run_that_was_not_asked_to_stop_is_never_over(now: int, grace: int) -> None:
    assert not is_over(stopped_at=None, now=BootInstant(now), grace_ms=grace)


@pytest.mark.parametrize("cause", StopCause)
def test_no_stopped_run_ends_as_a_success(cause: StopCause) -> None:
    outcome, exit_code = end_of(cause, outcome=Outcome.SUCCEEDED, exit_code=ExitCode.DONE)
    assert outcome is not Outcome.SUCCEEDED
    assert exit_code is not ExitCode.DONE


def test_the_deadline_is_told_from_an_interruption() -> None:
    assert end_of(StopCause.DEADLINE, outcome=Outcome.FAILED, exit_code=ExitCode.PARTLY) == (
        Outcome.DEADLINE_EXCEEDED,
        ExitCode.DEADLINE,
    )
    assert journal_reason(StopCause.DEADLINE, is_rollback=False) == "deadline"
    assert journal_reason(StopCause.SIGINT, is_rollback=True) == "interrupted"
    assert journal_reason(None, is_rollback=False) == "failed"
    assert journal_reason(None, is_rollback=True) == "rollback-partial"
