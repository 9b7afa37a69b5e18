"""A result document with everything in it, and what tests look at in one."""

from __future__ import annotations

from stackhold.engines.terraform.diagnostics import Changes
from stackhold.engines.terraform.planfile import DriftSummary, PlannedChange, PlanSummary
from stackhold.engines.terraform.result import Failure, FailureKind, Image, ResultDocument, RuntimeUsed, StepDone

HASH = "5f" * 32
WHOLE = ResultDocument(
    op="apply",
    image=Image("registry.example/module@sha256:1234", "/providers"),
    runtime=RuntimeUsed("tofu", "1.12.6"),
    steps=(StepDone("init", 0, 3), StepDone("plan", 2, 7), StepDone("apply", -9, 12)),
    drift=DriftSummary(True, 1, 2, 3, 4, (PlannedChange("a.b", "update"),)),
    error=Failure(FailureKind.STEP, "apply", "main.tf:2: a.b: no\nand more"),
    changes=Changes(1, 2, 3, 4),
    plan=PlanSummary(HASH, 1, 2, 3, 4, 5, 6, 7, 8, (PlannedChange("a.b", "delete"), PlannedChange("é", "create"))),
)


def tail(document: ResultDocument) -> str:
    return "" if document.error is None else document.error.tail


def plan_of(document: ResultDocument = WHOLE) -> PlanSummary:
    assert document.plan is not None
    return document.plan


def listed(document: ResultDocument) -> int:
    plan = () if document.plan is None else document.plan.resources
    drift = () if document.drift is None else document.drift.resources
    return len(plan[:50]) + len(drift[:20])
