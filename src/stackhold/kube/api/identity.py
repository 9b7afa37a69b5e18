"""TerraformClusterIdentity: credentials, and the namespaces that may use them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from stackhold.kube.api.kubernetes import LabelSelector
from stackhold.kube.api.shapes import DNS_LABEL, DNS_SUBDOMAIN, Rule, Shape, at_most, says, text
from stackhold.kube.api.workspace import Conditions

NamespaceName = Annotated[str, Meta(min_length=1, max_length=63, pattern=DNS_LABEL)]
SecretKey = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]


class SecretReference(Shape, frozen=True, kw_only=True):
    """A Secret in any namespace."""

    name: Annotated[str, text("Its name.", longest=253, pattern=DNS_SUBDOMAIN)]
    namespace: Annotated[str, text("Its namespace.", longest=63, pattern=DNS_LABEL)]


class AllowedNamespaces(Shape, frozen=True, kw_only=True):
    """Who may use the identity: namespaces that are listed, and those whose labels match."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.list) || has(self.selector)",
            "set list or selector; `selector: {}` allows every namespace",
        ),
    )
    list: Annotated[tuple[NamespaceName, ...], at_most(100, "By name.", as_set=True)] | None = None
    selector: LabelSelector | None = None


class TerraformClusterIdentitySpec(Shape, frozen=True, kw_only=True):
    """Where the credentials are and who may use them."""

    at_least: ClassVar[int] = 1
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.secretRef) || (has(self.type) && self.type != 'Secret')",
            "secretRef is required",
            field=".secretRef",
        ),
    )
    type: Annotated[Literal["Secret"], says("How the credentials are given; unset is Secret.")] | None = None
    secret_ref: SecretReference | None = None
    required_keys: (
        Annotated[tuple[SecretKey, ...], at_most(64, "Keys that the Secret must have.", shortest=0, as_set=True)] | None
    ) = None
    allowed_namespaces: AllowedNamespaces | None = None


class TerraformClusterIdentityStatus(Shape, frozen=True, kw_only=True):
    """Whether the Secret is there, and where it is mirrored."""

    at_least: ClassVar[int] = 1
    conditions: Conditions | None = None
    namespaces: (
        Annotated[tuple[NamespaceName, ...], at_most(1000, "Where a mirror is in use.", shortest=0, as_set=True)] | None
    ) = None


class TerraformClusterIdentity(Shape, frozen=True, kw_only=True):
    """Cloud credentials, and the namespaces that may use them."""

    spec: TerraformClusterIdentitySpec
    status: TerraformClusterIdentityStatus | None = None
