"""The runtimes' own order of events: what a stream shows only while the step holds the state lock.

Measured against an HTTP backend that noted when it was locked and unlocked: on every runtime all but `version`,
diagnostics and the wait for the lock come after the lock, and the closing counts and outputs after the unlock.
"""

from __future__ import annotations

import json

import pytest
from tests.engines.terraform.recordings import RUNTIMES, lines, streams, summary, summary_of

every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)


@every_runtime
@pytest.mark.parametrize(
    "name",
    ["lock-held-plan", "lock-wait-interrupted", "corrupt-state-plan", "http-held-plan", "bad-flag-plan"],
)
def test_a_step_that_never_had_the_lock_shows_none(runtime: str, name: str) -> None:
    assert summary(runtime, name).first_past_lock is None


@every_runtime
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("apply", "planned_change"),
        ("apply-saved", "planned_change"),
        ("plan-nothing", "refresh_start"),
        ("refresh", "refresh_start"),
        ("destroy", "refresh_start"),
        ("drift-plan", "planned_change"),
    ],
)
def test_it_is_the_first_event_of_the_work_itself(runtime: str, name: str, kind: str) -> None:
    first = next(entry for each in lines(runtime, name) if (entry := json.loads(each))["type"] == kind)

    assert summary(runtime, name).first_past_lock == summary_of([json.dumps(first)]).first_past_lock
    assert summary_of([json.dumps(first)]).first_past_lock is not None


@every_runtime
def test_what_is_said_after_the_unlock_shows_nothing(runtime: str) -> None:
    said = [json.loads(each) for each in lines(runtime, "apply")]
    last = [each for each in said if each.get("changes", {}).get("operation") == "apply"]
    outputs = [each for each in said if each["type"] == "outputs"]

    assert last
    assert outputs
    assert summary_of([json.dumps(each) for each in last + outputs]).first_past_lock is None


@every_runtime
def test_a_plan_that_finds_nothing_and_refreshes_nothing_shows_the_lock_by_its_counts(runtime: str) -> None:
    counts = [each for each in lines(runtime, "drift-plan") if '"change_summary"' in each]

    assert summary_of(counts).first_past_lock is not None


@every_runtime
def test_every_step_that_changed_something_shows_the_lock_before_its_first_change(runtime: str) -> None:
    for name in streams(runtime):
        found = summary(runtime, name)
        for touched in found.touched:
            assert found.first_past_lock is not None
            assert touched.at is not None
            assert found.first_past_lock <= touched.at
