"""The three templates: the metadata and the spec of what Cluster API clones from them.

What a template's spec may not become is for the webhook alone to say: Cluster API changes it in dry runs, which a
rule in the definition cannot tell from the real thing.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from stackhold.kube.api.cluster import TerraformClusterSpec
from stackhold.kube.api.kubernetes import LabelText
from stackhold.kube.api.machine import TerraformMachineSpec
from stackhold.kube.api.machine_pool import TerraformMachinePoolSpec
from stackhold.kube.api.shapes import Quantity, Rule, Shape, at_most_entries, rules_here, says, text
from stackhold.kube.api.workspace import Conditions

AnnotationText = Annotated[str, Meta(max_length=262144)]

NO_PROVIDER_ID = Rule(
    "!has(self.providerID)",
    "providerID must not be set in a template: every machine made from it would claim to be the same one",
    field=".providerID",
)


class TemplateMetadata(Shape, frozen=True, kw_only=True):
    """Labels and annotations of what is made from the template."""

    labels: Annotated[dict[str, LabelText], at_most_entries("Its labels.", most=256)] | None = None
    annotations: Annotated[dict[str, AnnotationText], at_most_entries("Its annotations.", most=256)] | None = None


class ClusterBlueprint(Shape, frozen=True, kw_only=True):
    """The cluster to make."""

    at_least: ClassVar[int] = 1
    spec: TerraformClusterSpec
    metadata: TemplateMetadata | None = None


class TerraformClusterTemplateSpec(Shape, frozen=True, kw_only=True):
    """What a class of clusters is made from."""

    template: ClusterBlueprint


class TerraformClusterTemplate(Shape, frozen=True, kw_only=True):
    """A TerraformCluster to clone."""

    spec: TerraformClusterTemplateSpec


class MachineBlueprint(Shape, frozen=True, kw_only=True):
    """The machine to make."""

    at_least: ClassVar[int] = 1
    spec: Annotated[TerraformMachineSpec, rules_here(NO_PROVIDER_ID)]
    metadata: TemplateMetadata | None = None


class TerraformMachineTemplateSpec(Shape, frozen=True, kw_only=True):
    """What machines are made from."""

    template: MachineBlueprint
    capacity: (
        Annotated[dict[str, Quantity], at_most_entries("The resources of the node, instead of the image's label.")]
        | None
    ) = None


class NodeInfo(Shape, frozen=True, kw_only=True):
    """The platform of the node."""

    at_least: ClassVar[int] = 1
    architecture: Literal["amd64", "arm64", "s390x", "ppc64le"] | None = None
    operating_system: Annotated[str, text("Its operating system.", longest=64)] | None = None


class CapacitySource(Shape, frozen=True, kw_only=True):
    """Where the capacity came from."""

    source: Annotated[Literal["Spec", "Image"], says("The spec, or a label of the image.")]
    image: Annotated[str, text("The image that was inspected last.", longest=512)] | None = None


class TerraformMachineTemplateStatus(Shape, frozen=True, kw_only=True):
    """What a node of this template would offer, for scaling from zero."""

    at_least: ClassVar[int] = 1
    capacity: Annotated[dict[str, Quantity], at_most_entries("The resources of the node.")] | None = None
    node_info: NodeInfo | None = None
    capacity_source: CapacitySource | None = None
    conditions: Conditions | None = None


class TerraformMachineTemplate(Shape, frozen=True, kw_only=True):
    """A TerraformMachine to clone."""

    spec: TerraformMachineTemplateSpec
    status: TerraformMachineTemplateStatus | None = None


class PoolBlueprint(Shape, frozen=True, kw_only=True):
    """The pool to make."""

    at_least: ClassVar[int] = 1
    spec: TerraformMachinePoolSpec
    metadata: TemplateMetadata | None = None


class TerraformMachinePoolTemplateSpec(Shape, frozen=True, kw_only=True):
    """What pools are made from."""

    template: PoolBlueprint


class TerraformMachinePoolTemplate(Shape, frozen=True, kw_only=True):
    """A TerraformMachinePool to clone."""

    spec: TerraformMachinePoolTemplateSpec
