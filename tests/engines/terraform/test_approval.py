"""Whether a saved plan may be applied."""

from __future__ import annotations

import pytest

from stackhold.engines.terraform.approval import PlanPolicy, judge_plan
from stackhold.engines.terraform.planfile import PlanSummary

PLAIN = PlanSummary("h-plain", create=1, update=2)
DELETING = PlanSummary("h-deleting", delete=1)
REPLACING = PlanSummary("h-replacing", replace=1)


@pytest.mark.parametrize("plan", [PLAIN, DELETING, REPLACING])
def test_without_a_guard_every_plan_is_applied(plan: PlanSummary) -> None:
    assert judge_plan(plan, PlanPolicy()).is_yes


def test_a_guarded_plan_that_destroys_nothing_needs_no_approval() -> None:
    assert judge_plan(PLAIN, PlanPolicy(guard_deletes=True)).is_yes


@pytest.mark.parametrize("plan", [DELETING, REPLACING])
def test_a_guarded_plan_that_destroys_is_blocked_and_says_its_hash(plan: PlanSummary) -> None:
    decision = judge_plan(plan, PlanPolicy(guard_deletes=True))
    assert decision.kind == "blocked"
    assert plan.hash in decision.hint


def test_an_approval_is_of_this_plan_or_of_these_inputs() -> None:
    guarded = PlanPolicy(guard_deletes=True, inputs_hash="h2:in")
    assert judge_plan(DELETING, PlanPolicy(guard_deletes=True, allow_deletes_hash="h-deleting")).is_yes
    assert judge_plan(DELETING, PlanPolicy(True, "h2:in", "h2:in")).is_yes
    assert judge_plan(DELETING, PlanPolicy(True, "h2:in", "h2:other")).kind == "blocked"
    assert judge_plan(DELETING, PlanPolicy(True, "", "")).kind == "blocked"
    assert judge_plan(DELETING, guarded).kind == "blocked"


def test_only_the_expected_plan_is_applied_and_it_is_approved_whatever_it_destroys() -> None:
    assert judge_plan(DELETING, PlanPolicy(guard_deletes=True, expect_plan="h-deleting")).is_yes
    decision = judge_plan(PLAIN, PlanPolicy(expect_plan="h-deleting"))
    assert decision.kind == "plan-changed"
    assert "h-plain" in decision.reason
