"""Whether a saved plan may be applied: by what it deletes or replaces, and by the hash that was approved. Pure."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.engines.terraform.planfile import PlanSummary


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, with the reason when it is no."""

    kind: str
    """`approved`, `blocked` or `plan-changed`."""
    reason: str = ""
    hint: str = ""

    @property
    def is_yes(self) -> bool:
        """Whether the plan may be applied."""
        return self.kind == "approved"


APPROVED = Decision("approved")


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """What was approved before the plan was made."""

    guard_deletes: bool = False
    """Whether a plan that deletes or replaces needs an approval."""
    inputs_hash: str = ""
    """Names the inputs that the plan is made from."""
    allow_deletes_hash: str = ""
    """Approves deletions: the hash of the very plan, or of the inputs."""
    expect_plan: str = ""
    """Only the plan with this hash may be applied."""


def judge_plan(plan: PlanSummary, policy: PlanPolicy) -> Decision:
    """Whether this plan may be applied under this policy."""
    if policy.expect_plan and not _same(plan.hash, policy.expect_plan):
        return Decision(
            "plan-changed",
            f"the plan is {plan.hash}, and {policy.expect_plan} was approved",
            "Look at the new plan, and approve that one.",
        )
    if not policy.guard_deletes or not plan.is_destructive or policy.expect_plan:
        return APPROVED
    allowed = policy.allow_deletes_hash
    if allowed and (_same(allowed, plan.hash) or (policy.inputs_hash and _same(allowed, policy.inputs_hash))):
        return APPROVED
    return Decision(
        "blocked",
        f"the plan deletes {plan.delete} and replaces {plan.replace}, and that was not approved",
        f"Approve it by its hash: {plan.hash}",
    )


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
