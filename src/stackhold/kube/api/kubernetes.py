"""Those of Kubernetes' own types that ours contain. Fields and meanings are those of the Pod of the core API."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from stackhold.kube.api.rules import CONTAINER_RULES, POD_RULES
from stackhold.kube.api.shapes import (
    Quantity,
    Rule,
    Shape,
    Time,
    at_most,
    at_most_entries,
    number,
    says,
    text,
)

CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
LabelText = Annotated[str, Meta(max_length=63)]
Gid = Annotated[int, Meta(ge=0)]
Capability = Annotated[str, Meta(max_length=63)]
_Key = Annotated[str, text("A key in its data.", longest=253)]
_Name = Annotated[str, text("Its name, in the same namespace.", longest=253)]


class Named(Shape, frozen=True, kw_only=True):
    """Something in the same namespace, by its name."""

    name: _Name


class KeySelector(Shape, frozen=True, kw_only=True):
    """A key of a ConfigMap or of a Secret in the same namespace."""

    name: _Name
    key: _Key
    optional: Annotated[bool, says("Whether it may be missing.")] | None = None


class FieldSelector(Shape, frozen=True, kw_only=True):
    """A field of the pod."""

    field_path: Annotated[str, text("The path of the field.", longest=253)]
    api_version: Annotated[str, text("The version that the path is written in.", longest=63)] | None = None


class ResourceSelector(Shape, frozen=True, kw_only=True):
    """A request or a limit of a container."""

    resource: Annotated[str, text("The resource, such as `limits.cpu`.", longest=253)]
    container_name: Annotated[str, text("The container, when it is not this one.", longest=63)] | None = None
    divisor: Quantity | None = None


class EnvVarSource(Shape, frozen=True, kw_only=True):
    """Where a value comes from."""

    at_least: ClassVar[int] = 1
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceSelector | None = None


class EnvVar(Shape, frozen=True, kw_only=True):
    """A variable of the environment. One named `TF_…` or `KUBE_…` is left out of the Job."""

    name: Annotated[str, text("Its name.", longest=253)]
    value: Annotated[str, text("Its value.", shortest=0, longest=131072)] | None = None
    value_from: EnvVarSource | None = None


class Resources(Shape, frozen=True, kw_only=True):
    """What a container asks for and what it may use."""

    requests: Annotated[dict[str, Quantity], at_most_entries("What it asks for.")] | None = None
    limits: Annotated[dict[str, Quantity], at_most_entries("What it may use.")] | None = None


class SeLinuxOptions(Shape, frozen=True, kw_only=True):
    """The SELinux context."""

    level: Annotated[str, text("Its level.", shortest=0, longest=253)] | None = None
    role: Annotated[str, text("Its role.", shortest=0, longest=253)] | None = None
    type: Annotated[str, text("Its type.", shortest=0, longest=253)] | None = None
    user: Annotated[str, text("Its user.", shortest=0, longest=253)] | None = None


class Profile(Shape, frozen=True, kw_only=True):
    """A seccomp or AppArmor profile."""

    type: Annotated[Literal["RuntimeDefault", "Localhost", "Unconfined"], says("Which sort of profile.")]
    localhost_profile: Annotated[str, text("A profile that is on the node.", longest=4096)] | None = None


class WindowsOptions(Shape, frozen=True, kw_only=True):
    """What applies to containers of Windows."""

    gmsa_credential_spec_name: Annotated[str, text("The name of the GMSA.", longest=253)] | None = None
    gmsa_credential_spec: Annotated[str, text("The GMSA itself.", longest=65536)] | None = None
    run_as_user_name: Annotated[str, text("The user of the container's first process.", longest=256)] | None = None
    host_process: Annotated[bool, says("Must not be true.")] | None = None


class Capabilities(Shape, frozen=True, kw_only=True):
    """Capabilities of a container. All are dropped in any case."""

    add: Annotated[tuple[Capability, ...], at_most(64, "Must be empty.", shortest=0)] | None = None
    drop: Annotated[tuple[Capability, ...], at_most(64, "What is dropped.", shortest=0)] | None = None


class SecurityContext(Shape, frozen=True, kw_only=True):
    """The security context of the main container: applied on top of hardened defaults, which it must not weaken."""

    rules: ClassVar[tuple[Rule, ...]] = CONTAINER_RULES
    allow_privilege_escalation: Annotated[bool, says("Must not be true.")] | None = None
    app_armor_profile: Profile | None = None
    capabilities: Capabilities | None = None
    privileged: Annotated[bool, says("Must not be true.")] | None = None
    proc_mount: Annotated[Literal["Default", "Unmasked"], says("Must not be `Unmasked`.")] | None = None
    read_only_root_filesystem: Annotated[bool, says("Must not be false.")] | None = None
    run_as_group: Annotated[int, number("The group of the first process.", 0)] | None = None
    run_as_non_root: Annotated[bool, says("Must not be false.")] | None = None
    run_as_user: Annotated[int, number("The user of the first process; must not be 0.", 0)] | None = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    windows_options: WindowsOptions | None = None


class Sysctl(Shape, frozen=True, kw_only=True):
    """A kernel parameter of the pod; only those that are safe for its neighbours."""

    name: Annotated[str, text("Its name.", longest=253)]
    value: Annotated[str, text("Its value.", shortest=0, longest=253)]


class PodSecurityContext(Shape, frozen=True, kw_only=True):
    """The security context of the pod."""

    rules: ClassVar[tuple[Rule, ...]] = POD_RULES
    app_armor_profile: Profile | None = None
    fs_group: Annotated[int, number("The group that owns the volumes.", 0)] | None = None
    fs_group_change_policy: (
        Annotated[Literal["OnRootMismatch", "Always"], says("When volumes are given to the group.")] | None
    ) = None
    run_as_group: Annotated[int, number("The group of first processes.", 0)] | None = None
    run_as_non_root: Annotated[bool, says("Must not be false.")] | None = None
    run_as_user: Annotated[int, number("The user of first processes; must not be 0.", 0)] | None = None
    se_linux_change_policy: (
        Annotated[Literal["MountOption", "Recursive"], says("How volumes get their label.")] | None
    ) = None
    se_linux_options: SeLinuxOptions | None = None
    seccomp_profile: Profile | None = None
    supplemental_groups: Annotated[tuple[Gid, ...], at_most(64, "Further groups.", shortest=0)] | None = None
    supplemental_groups_policy: (
        Annotated[Literal["Merge", "Strict"], says("Whether the image's groups count too.")] | None
    ) = None
    sysctls: Annotated[tuple[Sysctl, ...], at_most(64, "Kernel parameters.", shortest=0)] | None = None
    windows_options: WindowsOptions | None = None


class Requirement(Shape, frozen=True, kw_only=True):
    """A requirement on one label."""

    key: Annotated[str, text("The label's key.", longest=317)]
    operator: Annotated[Literal["In", "NotIn", "Exists", "DoesNotExist"], says("How the values are meant.")]
    values: Annotated[tuple[LabelText, ...], at_most(100, "The values.", shortest=0)] | None = None


class LabelSelector(Shape, frozen=True, kw_only=True):
    """Objects by their labels; an empty one selects all."""

    match_labels: Annotated[dict[str, LabelText], at_most_entries("Labels that must have these values.")] | None = None
    match_expressions: Annotated[tuple[Requirement, ...], at_most(32, "Further requirements.", shortest=0)] | None = (
        None
    )


class Condition(Shape, frozen=True, kw_only=True):
    """One aspect of how the object stands."""

    type: Annotated[str, text("Which aspect.", longest=316, pattern=CONDITION_TYPE)]
    status: Annotated[Literal["True", "False", "Unknown"], says("Whether it holds.")]
    reason: Annotated[str, text("Why, in one word.", longest=1024, pattern=CONDITION_REASON)]
    last_transition_time: Annotated[Time, says("When the status last changed.")]
    message: Annotated[str, text("Why, for people.", shortest=0, longest=32768)] | None = None
    observed_generation: Annotated[int, number("The generation that it was computed for.", 0)] | None = None
