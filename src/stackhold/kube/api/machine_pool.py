"""TerraformMachinePool: one scaling group. All of its spec can change."""

from typing import Annotated, ClassVar, Literal

from msgspec import field

from stackhold.kube.api.machine import Addresses
from stackhold.kube.api.shapes import INT32, Shape, at_most, number, says, text
from stackhold.kube.api.workspace import DriftAction, PlanRef, ProviderId, Workspace, WorkspaceStatus


class PoolDrift(Shape, frozen=True, kw_only=True):
    """How often a pool is compared with its module, which cannot be turned off, and what becomes of a difference."""

    interval_seconds: Annotated[int, number("Seconds between checks; unset is inherited.", 1, INT32)] | None = None
    action: Annotated[DriftAction, says("Unset is inherited, else Report.")] | None = None


class TerraformMachinePoolSpec(Workspace, frozen=True, kw_only=True):
    """What the group should be."""

    at_least: ClassVar[int] = 1
    provider_id: ProviderId | None = field(name="providerID", default=None)
    provider_id_list: (
        Annotated[tuple[ProviderId, ...], at_most(10000, "The members; the manager writes them.", shortest=0)] | None
    ) = field(name="providerIDList", default=None)
    drift: PoolDrift | None = None
    membership_refresh_interval_seconds: (
        Annotated[int, number("How often the members are read; unset is inherited, else 60.", 15, 86400)] | None
    ) = None


class Instance(Shape, frozen=True, kw_only=True):
    """A member, as the module reports it."""

    provider_id: ProviderId = field(name="providerID")
    instance_id: Annotated[str, text("The cloud's own name.", longest=256)] | None = field(
        name="instanceID", default=None
    )
    addresses: Addresses | None = None
    failure_domain: Annotated[str, text("Where it runs.", longest=256)] | None = None
    state: Literal["pending", "running", "degraded", "stopped", "terminated", "unknown"] | None = None


class TerraformMachinePoolStatus(WorkspaceStatus, frozen=True, kw_only=True):
    """How the group stands."""

    ready: Annotated[bool, says("Whether it was provisioned once, for the older contract.")] | None = None
    replicas: Annotated[int, number("How many members the group wants, when last read.", 0, INT32)] | None = None
    instances: Annotated[tuple[Instance, ...], at_most(1000, "Its members.", shortest=0)] | None = None
    pending_plan_ref: PlanRef | None = None


class TerraformMachinePool(Shape, frozen=True, kw_only=True):
    """One scaling group of machines."""

    spec: TerraformMachinePoolSpec
    status: TerraformMachinePoolStatus | None = None
