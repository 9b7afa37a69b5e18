"""What the three kinds that run a module have in common, in their specs and in their status."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from stackhold.kube.api.jobs import JobPolicy
from stackhold.kube.api.kubernetes import Condition
from stackhold.kube.api.shapes import (
    DNS_SUBDOMAIN,
    INT32,
    Count,
    JobName,
    Rule,
    Shape,
    Time,
    at_most,
    number,
    says,
    text,
)

OperationName = Literal["apply", "destroy", "drift", "refresh", "restore", "plan"]
DeletionPolicy = Literal["Destroy", "Retain"]
DriftAction = Literal["Report", "Remediate"]
ProviderId = Annotated[str, Meta(min_length=1, max_length=512)]
Serial = Annotated[int, Meta(ge=1)]


class Source(Shape, frozen=True, kw_only=True):
    """The module image."""

    image: Annotated[str, text("The image, by tag or by digest: the version of the module.", longest=512)]
    image_pull_policy: (
        Annotated[Literal["IfNotPresent", "Always", "Never"], says("When it is pulled; unset is IfNotPresent.")] | None
    ) = None


class IdentityRef(Shape, frozen=True, kw_only=True):
    """Whose credentials the Jobs use."""

    name: Annotated[str, text("The identity, or the Secret.", longest=253)]
    kind: (
        Annotated[
            Literal["TerraformClusterIdentity", "Secret"],
            says("What the name names; unset is an identity, `Secret` is a Secret in the object's own namespace."),
        ]
        | None
    ) = None


class SourceObject(Shape, frozen=True, kw_only=True):
    """A ConfigMap or a Secret in the object's namespace, with the label `captf.io/variables=true`."""

    name: Annotated[str, text("Its name.", longest=253, pattern=DNS_SUBDOMAIN)]


class VariablesSource(Shape, frozen=True, kw_only=True):
    """Variables for the module: each key is one."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.configMapRef) != has(self.secretRef)", "set exactly one of configMapRef and secretRef"),
    )
    config_map_ref: SourceObject | None = None
    secret_ref: SourceObject | None = None
    optional: Annotated[bool, says("Whether it may be missing; unset is false.")] | None = None
    format: (
        Annotated[
            Literal["String", "JSON"], says("How values are passed; unset is String, JSON is for lists and maps.")
        ]
        | None
    ) = None


class Workspace(Shape, frozen=True, kw_only=True):
    """What runs, with which credentials, variables and Job policy."""

    source: Source
    identity_ref: IdentityRef | None = None
    jobs: JobPolicy | None = None
    variables: (
        Annotated[dict[str, Any], Meta(description="Variables of the module.", min_length=1, max_length=256)] | None
    ) = None
    variables_from: (
        Annotated[tuple[VariablesSource, ...], at_most(16, "Where further variables come from; later ones win.")] | None
    ) = None
    deletion_policy: (
        Annotated[
            DeletionPolicy, says("What a deletion does with the infrastructure; unset is inherited, else Destroy.")
        ]
        | None
    ) = None
    adopt_retained_state: (
        Annotated[bool, says("Whether to take over the state that an earlier object of this name retained.")] | None
    ) = None


class Initialization(Shape, frozen=True, kw_only=True):
    """How far Cluster API may count on the infrastructure."""

    provisioned: Annotated[bool, says("Whether it was provisioned once; never false again.")] | None = None


class ActiveJob(Shape, frozen=True, kw_only=True):
    """The Job that runs now."""

    name: JobName
    operation: OperationName
    attempt: Annotated[int, number("The number in its name.", 1, INT32)] | None = None
    start_time: Annotated[Time, says("Since when.")] | None = None


class Step(Shape, frozen=True, kw_only=True):
    """A command of the runtime."""

    name: Annotated[str, text("Its name.", longest=64)]
    exit_code: Annotated[int, Meta(description="Its exit code.", ge=-INT32, le=INT32)] | None = None
    duration_milliseconds: Annotated[int, number("How long it took.", 0)] | None = None


class RunError(Shape, frozen=True, kw_only=True):
    """Why a run failed."""

    kind: Annotated[
        Literal["image-layout", "step", "interrupted", "blocked", "plan-changed"], says("The class of the failure.")
    ]
    step: Annotated[str, text("The step that failed.", longest=64)] | None = None
    summary: Annotated[str, text("What happened, in short; never a value.", longest=512)] | None = None
    resources: (
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=512)], ...], at_most(10, "What it failed on.")]
        | None
    ) = None


class DriftCounts(Shape, frozen=True, kw_only=True):
    """What a drift check found."""

    create: Count | None = None
    update: Count | None = None
    replace: Count | None = None
    delete: Count | None = None
    resources: (
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=512)], ...], at_most(20, "What drifted.")] | None
    ) = None


class LastRun(Shape, frozen=True, kw_only=True):
    """The result of the newest Job that ended."""

    job: JobName
    operation: OperationName
    steps: Annotated[tuple[Step, ...], at_most(16, "What the runner ran, in order.")] | None = None
    error: RunError | None = None
    drift: DriftCounts | None = None


class StateBackup(Shape, frozen=True, kw_only=True):
    """A kept state."""

    serial: Serial
    taken_at: Annotated[Time, says("When it was copied.")] | None = None
    bytes: Annotated[int, number("Its size, compressed.", 1)] | None = None


class SourceInUse(Shape, frozen=True, kw_only=True):
    """What the newest Job ran."""

    image: Annotated[str, text("The image, as the spec had it.", longest=512)] | None = None
    image_digest: Annotated[str, text("What it was resolved to.", longest=512)] | None = None
    runtime_version: Annotated[str, text("The version of Terraform or OpenTofu.", longest=64)] | None = None


class PlanRef(Shape, frozen=True, kw_only=True):
    """A plan in the same namespace."""

    name: Annotated[str, text("Its name.", longest=253)]


Conditions = Annotated[tuple[Condition, ...], at_most(32, "How the object stands.", shortest=0, keyed_by="type")]


class WorkspaceStatus(Shape, frozen=True, kw_only=True):
    """How the object stands. Nothing in it is needed to go on: it is computed anew."""

    at_least: ClassVar[int] = 1
    conditions: Conditions | None = None
    observed_generation: Annotated[int, number("The generation that this was computed for.", 1)] | None = None
    initialization: Initialization | None = None
    active_job: ActiveJob | None = None
    last_run: LastRun | None = None
    last_drift_check: Annotated[Time, says("When the last drift check ended.")] | None = None
    last_refresh: Annotated[Time, says("When the last refresh or drift check ended.")] | None = None
    pending_refreshes: (
        Annotated[int, number("How many samples in a row read the health as pending.", 1, INT32)] | None
    ) = None
    observed_state_serial: Annotated[int, number("The state that the outputs were read from.", 1)] | None = None
    last_restored_serial: Annotated[int, number("The backup of the last restore that ended.", 1)] | None = None
    state_secret_suffix: Annotated[str, text("The backend's `secret_suffix`.", longest=63)] | None = None
    state_backups: Annotated[tuple[StateBackup, ...], at_most(16, "Kept states, newest first.")] | None = None
    source: SourceInUse | None = None
