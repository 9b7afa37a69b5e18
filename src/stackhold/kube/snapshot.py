"""What is known of one object when a pass chooses what runs next: values only.

Whoever reads the API server fills this in; `decide` looks at nothing else. Times are Unix milliseconds as the objects
in the cluster have them. `last_refresh` is when the state was last brought up to date from what is really there, by
whatever Job did it; a run that failed moves none of the three times.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.steps import Operation
from stackhold.kube.names import Kind
from stackhold.model.instant import MINUTE, SECOND

if TYPE_CHECKING:
    from stackhold.model.instant import Instant


def is_mutable(kind: Kind) -> bool:
    """Whether its inputs may change after it was provisioned."""
    return kind is not Kind.MACHINE


def refreshes_after_apply(kind: Kind) -> bool:
    """Whether an apply whose reading is not definite is followed by a refresh."""
    return kind is not Kind.CLUSTER


def is_background(op: Operation) -> bool:
    """Whether it may be put off for the sake of others."""
    return op in (Operation.REFRESH, Operation.DRIFT)


def is_gated(op: Operation) -> bool:
    """Whether a cluster's and its machines' must not overlap: it changes what others read."""
    return op in (Operation.APPLY, Operation.DESTROY, Operation.RESTORE)


class Outcome(StrEnum):
    """What became of a Job."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEADLINE = "deadline"
    """Killed by its deadline, whatever its runner said of itself."""
    INTERRUPTED = "interrupted"
    """Stopped from outside."""
    BLOCKED = "blocked"
    """Stopped before a plan that deletes or replaces."""
    PLAN_CHANGED = "plan-changed"
    PLAN_UNREADABLE = "plan-unreadable"
    """A plan Job that went well and left no plan that can be read."""

    @property
    def is_counted(self) -> bool:
        """Whether it counts as a failure of its operation."""
        return self in (Outcome.FAILED, Outcome.DEADLINE, Outcome.PLAN_UNREADABLE)

    @property
    def waits_for_approval(self) -> bool:
        """Whether it stopped before it changed anything, and somebody has to look at the plan."""
        return self in (Outcome.BLOCKED, Outcome.PLAN_CHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """One of the object's Jobs that is still there."""

    name: str
    op: Operation
    attempt: int
    outcome: Outcome
    created_at: Instant
    finished_at: Instant | None = None
    """None while it is active."""
    inputs_hash: str = ""
    is_remediation: bool = False
    is_bookkept: bool = False
    """Whether its result is in the object's status."""

    @property
    def age_key(self) -> tuple[int, int]:
        """Sorts Jobs of one operation by when they ended; the API server's times have whole seconds."""
        return (self.created_at if self.finished_at is None else self.finished_at, self.attempt)


class StateStatus(StrEnum):
    """What reading the state gave."""

    NONE = "none"
    """There is none, and there never was."""
    READABLE = "readable"
    LOST = "lost"
    CORRUPT = "corrupt"
    ENCRYPTED = "encrypted"
    INCONSISTENT = "inconsistent"
    OUTCOME_UNKNOWN = "outcome-unknown"
    """There is none, and an apply ended of which nobody knows what it did."""
    RETAINED = "retained"
    """It belongs to an earlier object of the same name, and nobody has said that it may be adopted."""

    @property
    def is_held(self) -> bool:
        """Whether nothing may run on it but a restore."""
        return self not in (StateStatus.NONE, StateStatus.READABLE)


@dataclass(frozen=True, slots=True)
class StateFacts:
    """The state as it was read."""

    status: StateStatus = StateStatus.NONE
    inputs_hash: str = ""
    """The inputs of the apply that it is from; empty when no apply of it succeeded."""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The backup that the object asks for."""

    serial: int
    backup: str
    """The name of its first Secret; empty when there is no complete backup of this serial."""
    inputs_hash: str = ""
    """The inputs of the apply that it is from."""


class ApplyPolicy(StrEnum):
    """Whether a change is applied without being asked for."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class DeletionPolicy(StrEnum):
    """What becomes of the infrastructure when its object is deleted."""

    DESTROY = "Destroy"
    RETAIN = "Retain"
    UNRESOLVED = "Unresolved"
    """It is inherited, and what it is inherited from is not there. It is never guessed."""


class PlanPhase(StrEnum):
    """How far the plan of the current inputs is."""

    NONE = "none"
    PENDING = "pending"
    APPROVED = "approved"
    EMPTY = "empty"
    """It changes nothing, so nobody has to approve it."""


class PlanReason(StrEnum):
    """Why a plan waits for its approval."""

    MANUAL = "Manual"
    DESTRUCTIVE = "Destructive"
    EXPORTS_CHANGE = "ExportsChange"


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The live plan of the current inputs."""

    phase: PlanPhase = PlanPhase.NONE
    reason: PlanReason = PlanReason.MANUAL
    hash: str = ""
    """What was, or is to be, approved."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often the object is looked at; None is never."""

    drift_ms: int | None = 30 * MINUTE
    health_ms: int | None = None
    membership_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """What the last look at the infrastructure said."""

    pending_samples: int = 0
    """How often in a row its health was pending; 0 when it is not."""
    is_converging: bool = False
    """Whether a pool's members still come or go."""
    has_drift: bool = False
    """Whether the last drift check found something."""


FAILED_LIMIT: Final = 3
DEFAULT_MEMBERSHIP_MS: Final = 60 * SECOND
DEFAULT_HEALTH_MS: Final = 300 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One object, its Jobs and its state."""

    kind: Kind
    uid: str
    created_at: Instant
    jobs: tuple[JobFact, ...] = ()
    has_unseen_job: bool = False
    """A live read found a Job of this object that the list of Jobs does not have yet."""
    state: StateFacts = StateFacts()
    inputs_hash: str | None = None
    """Of the current inputs; None when they cannot be built now, or are not built any more."""
    unconfirmed_apply: str = ""
    """The apply Job that vanished, or ended without a word, and that no later apply has made good."""
    is_paused: bool = False
    is_deleting: bool = False
    deletion_policy: DeletionPolicy = DeletionPolicy.DESTROY
    dependents: tuple[str, ...] = ()
    """Whose deletion a cluster's has to wait for."""
    restore: RestoreRequest | None = None
    last_restored_serial: int | None = None
    """The serial of the last restore that ended, well or not."""
    apply_policy: ApplyPolicy = ApplyPolicy.AUTOMATIC
    plan: PlanFacts = PlanFacts()
    remediates_drift: bool = False
    readings: Readings = Readings()
    intervals: Intervals = Intervals()
    failed_limit: int = FAILED_LIMIT
    last_apply: Instant | None = None
    last_refresh: Instant | None = None
    last_drift_check: Instant | None = None
    """The three: when the last one that succeeded ended."""
