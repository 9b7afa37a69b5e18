"""TerraformCluster: the infrastructure of one workload cluster."""

from typing import Annotated, Any, ClassVar, Literal

from stackhold.kube.api.jobs import JobPolicy
from stackhold.kube.api.machine import Remediation
from stackhold.kube.api.shapes import INT32, Rule, Shape, at_most, at_most_entries, number, rules_here, says, text
from stackhold.kube.api.workspace import (
    DeletionPolicy,
    DriftAction,
    IdentityRef,
    PlanRef,
    Workspace,
    WorkspaceStatus,
)


class Endpoint(Shape, frozen=True, kw_only=True):
    """Where the workload cluster's API server is."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.host) == has(self.port)", "set both host and port, or neither"),
    )
    host: Annotated[str, text("Its host name or address.", longest=512)] | None = None
    port: Annotated[int, number("Its port.", 1, 65535)] | None = None


class DriftPolicy(Shape, frozen=True, kw_only=True):
    """How often the infrastructure is compared with the module, and what becomes of a difference."""

    interval_seconds: (
        Annotated[int, number("Seconds between checks; 0 turns them off, unset is the manager's.", 0, INT32)] | None
    ) = None
    action: Annotated[DriftAction, says("Unset is Report.")] | None = None


class Defaults(Shape, frozen=True, kw_only=True):
    """What machines and pools of the cluster inherit, field by field; never the cluster itself."""

    identity_ref: IdentityRef | None = None
    jobs: JobPolicy | None = None
    drift: DriftPolicy | None = None
    remediation: Remediation | None = None
    membership_refresh_interval_seconds: (
        Annotated[int, number("How often the members of pools are read; unset is 60.", 15, 86400)] | None
    ) = None
    deletion_policy: Annotated[DeletionPolicy, says("Unset is the cluster's own.")] | None = None


class TerraformClusterSpec(Workspace, frozen=True, kw_only=True):
    """What the cluster's infrastructure should be."""

    at_least: ClassVar[int] = 1
    control_plane_endpoint: Endpoint | None = None
    drift: DriftPolicy | None = None
    apply_policy: (
        Annotated[Literal["Automatic", "Manual"], says("Whether changes wait for an approval; unset is Automatic.")]
        | None
    ) = None
    max_active_jobs: (
        Annotated[int, number("How many Jobs of the cluster may run at once; unset is the manager's.", 1, INT32)] | None
    ) = None
    defaults: Defaults | None = None


class FailureDomain(Shape, frozen=True, kw_only=True):
    """Where machines can be spread over."""

    name: Annotated[str, text("Its name.", longest=256)]
    control_plane: Annotated[bool, says("Whether control-plane machines may be there.")] | None = None
    attributes: Annotated[dict[str, str], at_most_entries("What the module says of it.")] | None = None


class TerraformClusterStatus(WorkspaceStatus, frozen=True, kw_only=True):
    """How the cluster's infrastructure stands."""

    failure_domains: (
        Annotated[tuple[FailureDomain, ...], at_most(100, "From the module's output.", keyed_by="name")] | None
    ) = None
    exports: Annotated[Any, says("The module's exports, for others to read; never secrets.")] | None = None
    pending_plan_ref: PlanRef | None = None


IDENTITY_REQUIRED = Rule(
    "has(self.identityRef)",
    "identityRef is required: spec.defaults.identityRef is for machines and pools only",
    field=".identityRef",
)

_WAS_COMPLETE = (
    "has(oldSelf.spec.controlPlaneEndpoint) && has(oldSelf.spec.controlPlaneEndpoint.host)"
    " && has(oldSelf.spec.controlPlaneEndpoint.port)"
)


class TerraformCluster(Shape, frozen=True, kw_only=True):
    """The infrastructure of one workload cluster."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!({_WAS_COMPLETE}) || (has(self.spec.controlPlaneEndpoint)"
            " && self.spec.controlPlaneEndpoint == oldSelf.spec.controlPlaneEndpoint)",
            "spec.controlPlaneEndpoint cannot be changed once it has a host and a port",
            field=".spec.controlPlaneEndpoint",
        ),
    )
    spec: Annotated[TerraformClusterSpec, rules_here(IDENTITY_REQUIRED)]
    status: TerraformClusterStatus | None = None
