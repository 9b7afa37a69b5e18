"""What a native resource handler is: one class per type, one file per AWS service.

A handler turns resolved properties into API calls and API answers into properties. It decides nothing about
order, policies or records. Every call after the first create call must be repeatable, since going on after a
crash runs them all again. `find` looks for what a create made whose answer nobody heard: it changes nothing and
takes nothing for ours that could be somebody else's.

To add a type: write the class in the service's file, name it in `registry.py`, add a sample to
`tests/engines/cloudformation/resources/samples.py` (the conformance suite runs it); see docs/how-to/add-a-handler.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from stackhold.errors import ResourceFailed
from stackhold.model.ids import PhysicalId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackhold.engines.cloudformation.values import Props
    from stackhold.errors import AwsError
    from stackhold.model.ids import LogicalId, Region, StackName, TypeName
    from stackhold.model.record import ResourceRecord
    from stackhold.ports.aws import Aws


class FoundBy(Enum):
    """How a create in flight is found again."""

    NAME = "name"
    """By a name that it was sent with."""
    TOKEN = "token"
    """By its tags; a client token keeps a second send from making a second one."""
    TAG = "tag"
    """By its tags alone: a request that lands late makes a twin, which is looked for and removed."""
    CHILD = "child"
    """By its one place under a parent."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class NameRule:
    """How a physical name is generated when the template leaves it open (spec 6, "Names and tokens")."""

    property: str
    """The property that holds the name."""
    limit: int
    """Characters."""
    lower: bool = False
    suffix: Callable[[Props], str] | None = None
    """Added after the cut, such as `.fifo`."""
    reserved: tuple[str, ...] = ()
    """What AWS lets no name begin with, in lower case; it means any case."""
    reserved_ends: tuple[str, ...] = ()
    """What AWS lets no name end with."""

    def reserved_part(self, name: str) -> str:
        """The part of a name that AWS keeps for itself; empty when there is none."""
        lower = name.lower()
        begins = next((part for part in self.reserved if lower.startswith(part)), "")
        ends = next((part for part in self.reserved_ends if lower.endswith(part)), "")
        return f"{begins} at their beginning" if begins else f"{ends} at their end" if ends else ""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a handler works."""

    aws: Aws
    stack: StackName
    region: Region
    account: str
    partition: str
    wait: Callable[[int], None]
    """Waits so many ms between polls; raises `StoodDown` when waits are given up."""
    changed: Callable[[str], bool]
    """Whether this run created or changed the resource with this physical id, name or ARN: some refusals are
    propagation delays only then (spec 3a)."""
    note: Callable[[PhysicalId], None] = lambda physical_id: None
    """A create that needs more calls says here what its first one has made, so that going back finds it."""
    made_nothing: Callable[[], None] = lambda: None
    """A create whose request AWS accepted and then refused, or answered with what is another's, says here that
    nothing came of it."""
    waiting: Callable[[AwsError, str], None] = lambda error, why: None
    """A handler that itself waits for a refusal to pass says so here, once it takes longer than a moment."""


@dataclass(frozen=True, slots=True)
class Want:
    """One resource to create, or to update to. `properties` are resolved and coerced."""

    logical_id: LogicalId
    properties: Props
    name: str
    """The explicit name, or the generated one; empty for types without a name rule."""
    token: str
    """32 lower-case hex characters, the same for the same run, logical id and replacement."""
    tags: Mapping[str, str]
    """Ownership tags, to be sent with the create call beside the template's own."""
    stack_tags: Mapping[str, str] = field(default_factory=dict)
    """Below a resource's own tags."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A create that may have happened: what it was sent with, and where its result must be."""

    logical_id: LogicalId
    name: str
    """The name it was sent with; empty for types without a name rule, and where it was not known yet."""
    is_own_name: bool
    """Whether that name was made for this very create, so that nobody else can have it."""
    tags: Mapping[str, str]
    """The ownership tags it carried."""
    place: Props
    """As `Handler.place` gave it, with every reference resolved."""
    known: frozenset[PhysicalId] = frozenset()
    """Resources of this type that are accounted for: never the answer."""
    stack: frozenset[str] = frozenset()
    """Every physical id that the stack has."""


@dataclass(frozen=True, slots=True)
class Made:
    """The outcome of a create or an update.

    `observed` is what AWS is known to have after it (the drift baseline) when the calls' answers tell it; None
    otherwise: a bulk or single read gets it later, unless the user left the baseline out.
    """

    physical_id: PhysicalId
    attributes: Mapping[str, Any] = field(default_factory=dict)
    is_settled: bool = True
    """False: `settled` must be polled."""
    observed: Props | None = None
    moved: frozenset[str] = frozenset()
    """Properties that AWS was seen to change along with what an update changed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A resource as a read found it: template-shaped properties and attributes."""

    properties: Props
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Settle(Enum):
    """How far a resource that settles slowly has come. A failed one raises `ResourceFailed`."""

    DONE = "done"
    PENDING = "pending"


class Handler:
    """The base of all native handlers; a subclass sets `type` and what it needs, and overrides the calls.

    Errors: `AwsError`, `OutcomeUnknown`, `ResourceFailed`, `StoodDown`. A delete of what is gone succeeds; a read of
    what is gone gives None.
    """

    type: ClassVar[TypeName]
    properties: ClassVar[frozenset[str]]
    """The top-level properties that this handler sends. Any other routes the resource to Cloud Control."""
    name_rule: ClassVar[NameRule | None] = None
    found_by: ClassVar[FoundBy]
    defaults: ClassVar[Mapping[str, Any]] = {}
    """What AWS has when a property is left out: used to reset a removed property and to hide such values in drift."""
    write_only: ClassVar[frozenset[str]] = frozenset()
    """Properties that are never read back, beside the schema's own list."""
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Properties that AWS changes along with one that is changed: their baseline is then taken anew."""
    volatile_attributes: ClassVar[frozenset[str]] = frozenset()
    """Attributes that an update in place may change."""
    takes_over: ClassVar[bool] = False
    """Whether a create under a name that exists succeeds as if it had made it: see `claims`. Then `tags_there` tells
    whose it is."""
    is_stateful: ClassVar[bool] = False
    """Holds data that a replacement or delete would lose."""
    dependents_wait: ClassVar[bool] = True
    """False when dependents may start before it has settled (`--no-wait` then does not wait for it)."""
    settle_timeout_ms: ClassVar[int] = 30 * 60_000
    where: ClassVar[tuple[str, ...]] = ()
    """The properties that say where a resource of this type is: its parents, its key among their children."""
    scope: ClassVar[tuple[str, ...]] = ()
    """Those of them within which alone a physical id is unique."""

    def create(self, ctx: Context, want: Want) -> Made:
        """Create, with every further call that the properties need."""
        raise NotImplementedError

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The resource as AWS has it, every property of `properties` (the declared ones) and those with baselines;
        None when it does not exist. A `Tags` property is always given, without `aws:` and ownership tags."""
        raise NotImplementedError

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """Several of this type at once, for baselines and drift; one list call where the API has one. Those that do
        not exist are left out."""
        found = {physical_id: self.read(ctx, physical_id, props) for physical_id, props in wanted.items()}
        return {physical_id: seen for physical_id, seen in found.items() if seen is not None}

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Change in place from `old` to `want`. A property that was removed is reset to its default. Ownership tags
        that are there stay."""
        raise NotImplementedError

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete, and wait until a second create of that name would be free to go where that matters."""
        raise NotImplementedError

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """One poll of a resource that settles slowly; with new attributes once done, if there are any."""
        return Settle.DONE, None

    def place(self, properties: Props) -> Props:
        """What `find` and a read of what it found must know of the properties. It is stored, so that nothing secret
        may be in it: `finding.discreet` turns what may be into a digest. Values may still be expressions."""
        return {name: properties[name] for name in self.where if properties.get(name) is not None}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """What a create has made, if it is there and ours; the first that is not known yet. Deleted ones that are
        still listed are not there. Raises `ResourceFailed` when nothing can tell.

        As it stands, it reads by the name, if that name can only be ours.
        """
        if self.found_by is not FoundBy.NAME or not lost.name or not lost.is_own_name:
            raise ResourceFailed(f"nothing tells a lost {self.type} from others")
        physical_id = PhysicalId(lost.name)
        if physical_id in lost.known or self.read(ctx, physical_id, lost.place) is None:
            return None
        return physical_id

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        """All tags of a resource, ownership tags among them; None when it does not exist. For those that take over."""
        raise NotImplementedError

    def foreign(
        self, ctx: Context, physical_id: PhysicalId, properties: Props, *, stack: Sequence[ResourceRecord]
    ) -> Mapping[str, Any]:
        """What hangs on the resource that neither it nor any other of `stack` has put there, by path: for drift.

        As it stands, nothing is looked for.
        """
        return {}

    def ref(self, physical_id: PhysicalId, properties: Props, attributes: Mapping[str, Any]) -> Any:
        """What `Ref` gives; most often the physical id."""
        return physical_id

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """For changes that the schema only calls conditional: True replaces, False updates in place, None as the
        schema says."""
        return None
