"""TerraformPlan: a plan that waits for an approval. The manager writes it; people only approve it."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from stackhold.kube.api.shapes import Count, Rule, Shape, at_most, number, says, text
from stackhold.kube.api.workspace import Conditions

PlanPhase = Literal["Pending", "Approved", "Applied", "Superseded", "Failed"]
_FIXED = ("targetRef", "planHash", "inputsHash", "reason", "summary")


class PlanTarget(Shape, frozen=True, kw_only=True):
    """What the plan is for, in the same namespace."""

    kind: Literal["TerraformCluster", "TerraformMachinePool"]
    name: Annotated[str, text("Its name.", longest=253)]


class PlanSummary(Shape, frozen=True, kw_only=True):
    """What the plan would change: counts and addresses, never a value."""

    at_least: ClassVar[int] = 1
    create: Count | None = None
    update: Count | None = None
    replace: Count | None = None
    delete: Count | None = None
    import_: Count | None = field(name="import", default=None)
    move: Count | None = None
    forget: Count | None = None
    output_changes: Count | None = None
    resources: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=600)], ...],
            at_most(50, "The changed resources, by address.", shortest=0),
        ]
        | None
    ) = None
    truncated: Annotated[bool, says("Whether more is changed than is listed.")] | None = None


class TerraformPlanSpec(Shape, frozen=True, kw_only=True):
    """The plan, and whether it is approved."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.approvedBy) == (has(self.approved) && self.approved)",
            "approvedBy is required when approved is true, and must not be set otherwise",
            field=".approvedBy",
        ),
    )
    target_ref: PlanTarget
    plan_hash: Annotated[str, text("The fingerprint of what the plan changes.", longest=128)]
    inputs_hash: Annotated[str, text("The hash of the inputs that it was made for.", longest=128)]
    reason: Annotated[Literal["Manual", "Destructive", "ExportsChange"], says("Why it waits.")]
    summary: PlanSummary
    approved: Annotated[bool, says("Approves the plan, for good.")] | None = None
    approved_by: Annotated[str, text("Who approved: the user name of that request.", longest=512)] | None = None


class TerraformPlanStatus(Shape, frozen=True, kw_only=True):
    """Where the plan is in its life."""

    at_least: ClassVar[int] = 1
    conditions: Conditions | None = None
    phase: Annotated[PlanPhase, says("Where it is.")] | None = None
    observed_generation: Annotated[int, number("The generation that this was computed for.", 1)] | None = None


_WAS_APPROVED = "has(oldSelf.spec.approved) && oldSelf.spec.approved"


class TerraformPlan(Shape, frozen=True, kw_only=True):
    """A plan that waits for an approval."""

    rules: ClassVar[tuple[Rule, ...]] = (
        *(
            Rule(
                f"self.spec.{name} == oldSelf.spec.{name}",
                f"spec.{name} cannot be changed: only approved and approvedBy can be set",
                field=f".spec.{name}",
            )
            for name in _FIXED
        ),
        Rule(
            f"!({_WAS_APPROVED}) || (has(self.spec.approved) && self.spec.approved)",
            "an approval cannot be taken back",
            field=".spec.approved",
        ),
        Rule(
            f"!({_WAS_APPROVED} && has(oldSelf.spec.approvedBy))"
            " || (has(self.spec.approvedBy) && self.spec.approvedBy == oldSelf.spec.approvedBy)",
            "who approved cannot be changed",
            field=".spec.approvedBy",
        ),
    )
    spec: TerraformPlanSpec
    status: TerraformPlanStatus | None = None
