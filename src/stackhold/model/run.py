"""One run: who asked for what, what it means to do (`run.json`), how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName, TypeName
    from stackhold.model.instant import Instant
    from stackhold.model.values import JsonMap


class IntentKind(StrEnum):
    """What a run meant to do to one physical identity."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class IntentState(StrEnum):
    """How far an intent has come."""

    OPEN = "open"
    """Planned or in flight: a crash leaves it so."""
    UNKNOWN = "unknown"
    """Sent without an answer, or given up in flight."""
    DONE = "done"
    """Done and in a confirmed save, or found never to have been sent."""


@dataclass(frozen=True, slots=True)
class Intended:
    """What looking for a lost resource needs, and what the record says of it once it is found. Holds no property's
    value but those that tell where a resource is."""

    route: str | None = None
    """Who carries it out (the record's `provisionedBy`)."""
    place: JsonMap = field(default_factory=dict)
    """The properties that say where it is. A reference to another resource stands as in a template."""
    properties: tuple[str, ...] = ()
    """The names of the properties that a create sets, or that an update changes."""
    dependencies: tuple[LogicalId, ...] | None = None
    deletion_policy: str | None = None
    update_replace_policy: str | None = None
    is_own_name: bool = False
    """Whether the name was made for this create, so that nobody else can have it."""
    replaces: PhysicalId | None = None
    """The recorded resource that a create takes the place of."""
    keeps_old: bool = False
    """Whether that one stays in the cloud."""
    old_first: bool = False
    """Whether that one is deleted before the create."""
    replacement: int = 0
    """Counts the creates of one run for one logical id, from 0."""
    digest: str | None = None
    """Of the properties as the template has them: a token is sent again only with the same."""
    is_again: bool = False
    """Whether an earlier run may have sent this very create too."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One entry of `run.json`: a physical identity that may come to be, change or go.

    A create carries the name, token and ownership tags it will be sent with; a delete the physical id.
    """

    logical_id: LogicalId
    type: TypeName
    kind: IntentKind
    run_id: RunId
    state: IntentState = IntentState.OPEN
    name: str | None = None
    token: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    physical_id: PhysicalId | None = None
    first_seen_at: Instant | None = None
    """By the store's time: when a later run first met this entry unresolved."""
    intended: Intended | None = None
    """None in an entry of a release that did not look for what was lost."""
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFile:
    """`run.json`. Replaced and deleted only by the run that holds the lock, by compare-and-swap."""

    run_id: RunId
    lock_id: LockId
    serial: int
    operation: str
    owner: str
    started_at: Instant
    generation: int
    intents: tuple[Intent, ...] = ()
    plan: tuple[JsonMap, ...] = ()
    """The plan in short: one `{logicalId, type, operation}` per step."""
    replaces: int | None = None
    """The serial of the record that the run's stamp replaced, -1 where there was none. `None` once the run is over."""
    extra: JsonMap = field(default_factory=dict)


class Outcome(StrEnum):
    """How a finished run ended (spec 1)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEADLINE_EXCEEDED = "deadline-exceeded"
    INTERRUPTED = "interrupted"
    LOCK_LOST = "lock-lost"
    BLOCKED = "blocked"
    PLAN_CHANGED = "plan-changed"


class StopCause(StrEnum):
    """Why a run starts nothing new any more."""

    SIGINT = "SIGINT"
    SIGTERM = "SIGTERM"
    CANCEL = "cancel"
    DEADLINE = "deadline"
    LOCK_LOST = "lock-lost"
    STOOD_DOWN = "stood-down"
    FOREIGN_WRITE = "foreign-write"


@dataclass(frozen=True, slots=True)
class StopRequest:
    """`stop-request.json`: asks the holder of this very lock to stop as on a first signal."""

    lock_id: LockId
    requested_by: str
    requested_at: Instant
    extra: JsonMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Who runs what on which stack; fixed from the run's first moment."""

    run_id: RunId
    stack: StackName
    region: Region
    operation: str
    """The command: deploy, destroy, …"""
    owner: str
    """`user@hostname:pid`."""
    engine: str
    tool_version: str
