"""What every operation of a run works with, and the few things they all do: save, mark, tell, ask.

Once the run has given up on what is in flight, a thread that comes back late changes nothing any more: its save,
mark or event would speak for a run that has already said how it ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.names import Earlier, Naming
from stackhold.engines.cloudformation.patience import PatientAws, Touched, Trace
from stackhold.engines.cloudformation.plan import ResourceChange, Route
from stackhold.engines.cloudformation.resources.handler import Context, Handler, Want
from stackhold.engines.cloudformation.values import Lookup, Props
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LogicalId, PhysicalId, TypeName

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.attempt import Attempt
    from stackhold.engines.cloudformation.resources.handler import Seen
    from stackhold.errors import AwsError
    from stackhold.model.record import RecordChange, ResourceRecord
    from stackhold.model.run import IntentState
    from stackhold.ports.aws import Aws
    from stackhold.ports.engine import Run

HandlerOf = Callable[[TypeName, Route], Handler]
Decide = Callable[[ResourceChange, Props], ResourceChange]
"""Compares a planned change again, now that every value is known."""
Resolve = Callable[[TypeName, LogicalId, Props, Lookup], Props]
"""Properties as the schema types them, with every reference looked up."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """How a deploy behaves."""

    wait: bool = True
    """Wait until slow resources have settled (`--no-wait` turns it off)."""
    baseline: bool = True
    """Read afterwards what AWS has, so that drift can be told later."""
    rollback: bool = True
    """Go back when a resource fails."""
    concurrency: int = 32
    """Operations at a time; calls adapt to throttling below that."""


DEFAULT_OPTIONS: Final = DeployOptions()


@dataclass(frozen=True, slots=True)
class Bench:
    """The surroundings of one run's operations. Thread-safe."""

    run: Run
    aws: Aws
    handler_of: HandlerOf
    resolve: Resolve
    decide: Decide
    options: DeployOptions = DEFAULT_OPTIONS
    stack_tags: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[LogicalId, Earlier] = field(default_factory=dict)
    """Creates that an earlier run may have sent already."""
    touched: Touched = field(default_factory=Touched)
    given_up: threading.Event = field(default_factory=threading.Event)
    """Set when the run returns without what is in flight."""

    def context(self, trace: Trace | None = None, *, about: Attempt | None = None) -> Context:
        """Where a handler works during one operation, which is named when a wait is told of."""
        trace = trace or Trace()

        def waiting(error: AwsError, why: str) -> None:
            named = {"type": about.type, "operation": about.operation} if about else {}
            self.tell(
                EventKind.OPERATION_WAITING,
                about.logical_id if about else None,
                f"{error.service}:{error.operation}: {why} ({error.code})",
                code=error.code,
                **named,
            )

        guarded = self.aws.guarded(trace.guard(self.run.check_call))
        patient = PatientAws(guarded, wait=self.run.wait, changed=self.touched, trace=trace, waiting=waiting)
        identity = self.run.identity
        return Context(
            aws=patient,
            stack=identity.stack,
            region=identity.region,
            account=self.aws.account(),
            partition=self.aws.partition,
            wait=self.run.wait,
            changed=self.touched,
            note=trace.note,
            made_nothing=trace.made_nothing,
            waiting=waiting,
        )

    def handler(self, record: ResourceRecord) -> Handler:
        """The handler that a recorded resource belongs to."""
        return self.handler_of(record.type, route_of(record))

    def want(self, logical_id: LogicalId, handler: Handler, properties: Props, *, replacement: int = 0) -> Want:
        """A resource to create, or to update to, under the name and token that follow from the run."""
        identity = self.run.identity
        naming = Naming(self.aws.account(), identity.region, identity.stack, identity.run_id, self.earlier)
        rule = handler.name_rule
        return Want(
            logical_id=logical_id,
            properties=properties,
            name=naming.name(rule, properties, logical_id, replacement) if rule else "",
            token=naming.token(logical_id, replacement),
            tags=naming.tags(logical_id, replacement),
            stack_tags=self.stack_tags,
        )

    def read(self, record: ResourceRecord) -> Seen | None:
        """The resource as AWS has it."""
        return self.handler(record).read(self.context(), record.physical_id, dict(record.properties))

    def save(self, *changes: RecordChange, confirmed: bool = False) -> None:
        """Put changes into the record."""
        if not self.given_up.is_set():
            self.run.save(changes, confirmed=confirmed)

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """How far this run's intents for a resource have come, or the one for that very resource."""
        if not self.given_up.is_set():
            self.run.mark(logical_id, state, physical_id=physical_id)

    def tell(self, kind: EventKind, logical_id: LogicalId | None = None, message: str = "", **data: object) -> None:
        """Show and keep an event. Never give it property values: they may be secrets."""
        if not self.given_up.is_set():
            self.run.tell(Event(kind=kind, at=self.run.clock.now(), logical_id=logical_id, message=message, data=data))


def route_of(record: ResourceRecord) -> Route:
    """Who carries a recorded resource out."""
    return Route.CLOUD_CONTROL if record.provisioned_by == Route.CLOUD_CONTROL.value else Route.NATIVE
