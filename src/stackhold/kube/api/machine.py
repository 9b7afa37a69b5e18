"""TerraformMachine: the infrastructure of one machine. What defines it never changes."""

from typing import Annotated, ClassVar, Literal

from msgspec import field

from stackhold.kube.api.shapes import INT32, Rule, Shape, at_most, number, says, text, unchanged
from stackhold.kube.api.workspace import ProviderId, Workspace, WorkspaceStatus

_FIXED = "cannot be changed: make a new machine instead"


class MachineDrift(Shape, frozen=True, kw_only=True):
    """How often a machine is compared with its inputs. What is found is only reported."""

    interval_seconds: (
        Annotated[int, number("Seconds between checks; 0 turns them off, unset is inherited.", 0, INT32)] | None
    ) = None


class Remediation(Shape, frozen=True, kw_only=True):
    """Whether Cluster API is asked to replace a machine that is not well."""

    annotate_machine: Annotated[bool, says("Whether; unset is false.")] | None = None
    unhealthy_threshold: (
        Annotated[int, number("After how many unhealthy samples in a row; unset is 3.", 1, 100)] | None
    ) = None
    health_check_interval_seconds: Annotated[int, number("How often; unset is 300.", 60, 86400)] | None = None


class TerraformMachineSpec(Workspace, frozen=True, kw_only=True):
    """What the machine is."""

    at_least: ClassVar[int] = 1
    provider_id: ProviderId | None = field(name="providerID", default=None)
    drift: MachineDrift | None = None
    remediation: Remediation | None = None


class MachineAddress(Shape, frozen=True, kw_only=True):
    """An address of a machine."""

    type: Literal["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"]
    address: Annotated[str, text("The address.", longest=256)]


Addresses = Annotated[tuple[MachineAddress, ...], at_most(256, "Its addresses.")]


class TerraformMachineStatus(WorkspaceStatus, frozen=True, kw_only=True):
    """How the machine stands."""

    addresses: Addresses | None = None
    failure_domain: Annotated[str, text("Where it runs.", longest=256)] | None = None
    interruptible: Annotated[bool, says("Whether its cloud may take it away.")] | None = None
    unhealthy_samples: Annotated[int, number("How many unhealthy samples in a row.", 1, INT32)] | None = None


class TerraformMachine(Shape, frozen=True, kw_only=True):
    """The infrastructure of one machine."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("self.spec.source == oldSelf.spec.source", f"spec.source {_FIXED}", field=".spec.source"),
        *(unchanged(name, _FIXED) for name in ("identityRef", "variables", "variablesFrom")),
        Rule(
            "!has(oldSelf.spec.providerID)"
            " || (has(self.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID)",
            "spec.providerID cannot be changed once it is set",
            field=".spec.providerID",
        ),
    )
    spec: TerraformMachineSpec
    status: TerraformMachineStatus | None = None
