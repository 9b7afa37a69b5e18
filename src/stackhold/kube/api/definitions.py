"""The CustomResourceDefinition of each of the eight kinds: its schema, its names, and what `kubectl get` shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackhold.kube.api.cluster import TerraformCluster
from stackhold.kube.api.identity import TerraformClusterIdentity
from stackhold.kube.api.machine import TerraformMachine
from stackhold.kube.api.machine_pool import TerraformMachinePool
from stackhold.kube.api.plan import TerraformPlan
from stackhold.kube.api.schema import root_schema
from stackhold.kube.api.templates import (
    TerraformClusterTemplate,
    TerraformMachinePoolTemplate,
    TerraformMachineTemplate,
)
from stackhold.kube.names import GROUP, VERSION, Label

if TYPE_CHECKING:
    from stackhold.kube.api.shapes import Shape

CONTRACT = "cluster.x-k8s.io/v1beta2"
"""The label by which Cluster API finds the version of a kind that keeps this contract."""
MOVE_HIERARCHY = "clusterctl.cluster.x-k8s.io/move-hierarchy"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    is_wide: bool = False

    def document(self) -> dict[str, Any]:
        """As an entry of `additionalPrinterColumns`; what is not wide has no priority."""
        found: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**found, "priority": 1} if self.is_wide else found


@dataclass(frozen=True, slots=True)
class Served:
    """A kind as the API server serves it."""

    shape: type[Shape]
    short: str
    columns: tuple[Column, ...]
    plural: str = ""
    is_of_cluster: bool = False
    """Whether its objects are in no namespace."""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> str:
        """The kind's name."""
        return self.shape.__name__

    @property
    def resource(self) -> str:
        """The kind in paths and in rules of access."""
        return self.plural or f"{self.kind.lower()}s"


def _condition(name: str, *, is_wide: bool = False) -> Column:
    return Column(name, f'.status.conditions[?(@.type=="{name}")].status', is_wide=is_wide)


def _owner(kind: str) -> Column:
    return Column(kind, f'.metadata.ownerReferences[?(@.kind=="{kind}")].name')


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_CLUSTER = Column("Cluster", ".metadata.labels['" + Label.CLUSTER_NAME.replace(".", "\\.") + "']")
_READY = _condition("Ready")
_PROVISIONED = Column("Provisioned", ".status.initialization.provisioned", "boolean")
_IMAGE = Column("Image", ".spec.source.image", is_wide=True)
_APPLIED = _condition("InputsApplied", is_wide=True)
_OF_TEMPLATE = (Column("Image", ".spec.template.spec.source.image"), _AGE)

SERVED = (
    Served(
        TerraformCluster,
        "tfc",
        (
            _CLUSTER,
            _READY,
            _PROVISIONED,
            Column("Endpoint", ".spec.controlPlaneEndpoint.host"),
            _IMAGE,
            _APPLIED,
            _AGE,
        ),
    ),
    Served(TerraformClusterTemplate, "tfct", _OF_TEMPLATE),
    Served(
        TerraformMachine,
        "tfm",
        (
            _CLUSTER,
            _owner("Machine"),
            _READY,
            _PROVISIONED,
            Column("ProviderID", ".spec.providerID"),
            _IMAGE,
            _APPLIED,
            _AGE,
        ),
    ),
    Served(TerraformMachineTemplate, "tfmt", _OF_TEMPLATE),
    Served(
        TerraformMachinePool,
        "tfmp",
        (
            _CLUSTER,
            _owner("MachinePool"),
            Column("Replicas", ".status.replicas", "integer"),
            _READY,
            _IMAGE,
            _APPLIED,
            _AGE,
        ),
    ),
    Served(TerraformMachinePoolTemplate, "tfmpt", _OF_TEMPLATE),
    Served(
        TerraformClusterIdentity,
        "tfci",
        (
            Column("Secret", ".spec.secretRef.name"),
            Column("Namespace", ".spec.secretRef.namespace"),
            _READY,
            _AGE,
        ),
        plural="terraformclusteridentities",
        is_of_cluster=True,
        labels=((MOVE_HIERARCHY, ""),),
    ),
    Served(
        TerraformPlan,
        "tfplan",
        (
            Column("Target", ".spec.targetRef.name"),
            Column("Reason", ".spec.reason"),
            Column("Phase", ".status.phase"),
            *(Column(name.title(), f".spec.summary.{name}", "integer") for name in ("create", "update", "replace")),
            Column("Delete", ".spec.summary.delete", "integer"),
            Column("Approved", ".spec.approved", "boolean"),
            _AGE,
        ),
    ),
)
"""The eight kinds, in the order in which they are printed."""


def definition(served: Served) -> dict[str, Any]:
    """The definition of one kind."""
    schema = root_schema(served.shape)
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [column.document() for column in served.columns],
    }
    if "status" in schema["properties"]:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{served.resource}.{GROUP}",
            "labels": {CONTRACT: VERSION, **dict(served.labels)},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster" if served.is_of_cluster else "Namespaced",
            "names": {
                "kind": served.kind,
                "listKind": f"{served.kind}List",
                "plural": served.resource,
                "singular": served.kind.lower(),
                "shortNames": [served.short],
                "categories": ["cluster-api"],
            },
            "versions": [version],
        },
    }


def definitions() -> tuple[dict[str, Any], ...]:
    """The definitions of all kinds."""
    return tuple(definition(served) for served in SERVED)
