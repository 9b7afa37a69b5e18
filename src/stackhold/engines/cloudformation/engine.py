"""The CloudFormation engine behind the engine port: plans from a template or a record, and carries that out.

`DeployEngine` makes the cloud as a template asks, `DestroyEngine` takes a stack away. Both decide from the record
they are given and touch nothing until `perform`.
"""

from __future__ import annotations

import functools
import threading
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from stackhold.decide.record import apply_changes, empty_record
from stackhold.engines.cloudformation.after import with_last_look
from stackhold.engines.cloudformation.belonging import refuse_elsewhere
from stackhold.engines.cloudformation.bench import DEFAULT_OPTIONS, Bench, DeployOptions, route_of
from stackhold.engines.cloudformation.execute import DeployExecution, DestroyExecution, StackFacts
from stackhold.engines.cloudformation.facts import AwsFacts
from stackhold.engines.cloudformation.graph import edges
from stackhold.engines.cloudformation.intents import intents_for, short_steps
from stackhold.engines.cloudformation.known import attribute_of
from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.planner import plan_deploy, plan_destroy, reconsider
from stackhold.engines.cloudformation.reading import HandlerOf, reading_context, refuse_other_region
from stackhold.engines.cloudformation.recover import Recoverer
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.schema import has_attribute
from stackhold.engines.cloudformation.taking_back import taken_back
from stackhold.engines.cloudformation.template import evaluate
from stackhold.engines.cloudformation.template.desired import DesiredStack, Inputs
from stackhold.engines.cloudformation.values import UNKNOWN, Lookup, Props
from stackhold.engines.cloudformation.wanted import wanted_properties
from stackhold.errors import Bug, InputError
from stackhold.ports.engine import PlannedExports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackhold.engines.cloudformation.names import Earlier
    from stackhold.engines.cloudformation.plan import Plan, ResourceChange
    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.template import Template
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.model.record import RecordChange, ResourceRecord, StateRecord
    from stackhold.model.run import Intent, RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.aws import Aws
    from stackhold.ports.engine import Engine, ExportingWork, Looking, RecoveringEngine, Recovery, Run, Work, WorkResult

_STACK_IDS: Final = uuid.UUID("6f0e0c3c-7f0b-5a0e-9d55-0f8f6c3f3c11")
"""The namespace of the UUIDs at the end of our stack ids."""


class DeployEngine:
    """Deploys one template as one stack."""

    def __init__(
        self,
        *,
        template: Template,
        parameters: Mapping[str, str],
        tags: Mapping[str, str] | None,
        aws: Aws,
        url_suffix: str,
        app_tags: Mapping[str, str] | None = None,
        options: DeployOptions = DEFAULT_OPTIONS,
        allow_replace: frozenset[LogicalId] = frozenset(),
        native: Native = handler_for,
    ) -> None:
        """Asks for the account at once, beside whatever the caller does next.

        `tags` are for every resource, over those of the app; None keeps the last deploy's.
        """
        self._template = template
        self._parameters = parameters
        self._tags = tags
        self._app_tags = app_tags or {}
        self._aws = aws
        self._url_suffix = url_suffix
        self._options = options
        self._allow_replace = allow_replace
        self._native = native
        self._handler_of = HandlerOf(native)
        self._account = _Ahead(aws.account)
        self._recoverer = Recoverer(aws, native)

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """What was found of what a run before had in flight; remembered for the plan."""
        return self._recoverer.recover(left, record, run, may_still_land=may_still_land)

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> DeployWork:
        """What a deploy would do. Raises `InputError` for what is wrong with the template, `CloudError` when the
        account cannot be asked."""
        refuse_other_region(self._aws, identity.region)
        account = self._account.get()
        refuse_elsewhere(self._aws, record, account=account)
        stack_id = self._stack_id(record, identity, account)
        desired = self._desired(record, identity, account, stack_id)
        plan = self._planned(desired, record, identity)
        first = taken_back(plan, record, native=self._native) if record is not None else ()
        if record is not None and first:
            record = apply_changes(record, first)
            plan = self._planned(desired, record, identity)
        earlier = self._recoverer.earlier(desired.resources, plan.stack_tags)
        intents = intents_for(
            plan, identity, account=account, region=identity.region, native=self._native, earlier=earlier
        )
        return DeployWork(
            plan=plan,
            desired=desired,
            stack_id=stack_id,
            record=record,
            intents=intents,
            steps=short_steps(plan),
            bench_for=functools.partial(self._bench, tags=plan.stack_tags, earlier=earlier),
            lost=self._recoverer.may_still_land,
            first=first,
        )

    def _planned(self, desired: DesiredStack, record: StateRecord | None, identity: RunIdentity) -> Plan:
        kept = {name: str(value) for name, value in ((record.tags if record else None) or {}).items()}
        own = kept if self._tags is None else dict(self._tags)
        plan = plan_deploy(
            desired,
            record,
            needs=edges(desired),
            attribute=functools.partial(self._attribute, identity),
            native=self._native,
            allow_replace=self._allow_replace,
            stack_tags={**self._app_tags, **own},
            is_gone=functools.partial(self._is_gone, identity),
        )
        return replace(plan, own_tags=own, keeps_tags=bool(kept) and self._tags is None, tags_changed=own != kept)

    def _desired(self, record: StateRecord | None, identity: RunIdentity, account: str, stack_id: str) -> DesiredStack:
        inputs = Inputs(
            stack=identity.stack,
            region=identity.region,
            account=account,
            partition=self._aws.partition,
            url_suffix=self._url_suffix,
            stack_id=stack_id,
            parameters=self._parameters,
            recorded_parameters=(record.parameters if record else None) or {},
            facts=AwsFacts(self._aws),
        )
        return evaluate(self._template, inputs, check=has_attribute)

    def _stack_id(self, record: StateRecord | None, identity: RunIdentity, account: str) -> str:
        """Fixed at the first deploy. A record without one, cdkd's, has one that follows from its name alone."""
        if record is not None and record.stack_id:
            return record.stack_id
        seed = f"{account}/{identity.region}/{identity.stack}"
        if record is None or not record.resources:
            seed += f"/{identity.run_id}"
        unique = uuid.uuid5(_STACK_IDS, seed)
        return f"arn:{self._aws.partition}:cloudformation:{identity.region}:{account}:stack/{identity.stack}/{unique}"

    def _attribute(self, identity: RunIdentity, logical_id: LogicalId, record: ResourceRecord, attribute: str) -> Any:
        """An attribute that the record does not hold, asked of AWS; unknown when the resource is gone."""
        handler = self._handler_of(record.type, route_of(record))
        context = reading_context(self._aws, stack=identity.stack, region=identity.region)
        seen = handler.read(context, record.physical_id, dict(record.properties))
        if seen is None:
            return UNKNOWN
        return attribute_of({**seen.properties, **seen.attributes}, attribute, logical_id, record.type)

    def _is_gone(self, identity: RunIdentity, logical_id: LogicalId, record: ResourceRecord) -> bool:
        """Whether a recorded resource is not there any more."""
        handler = self._handler_of(record.type, route_of(record))
        context = reading_context(self._aws, stack=identity.stack, region=identity.region)
        return handler.read(context, record.physical_id, dict(record.properties)) is None

    def _bench(self, run: Run, *, tags: Mapping[str, str], earlier: Mapping[LogicalId, Earlier]) -> Bench:
        return _bench(run, self._aws, self._handler_of, self._native, self._options, tags, earlier)


@dataclass(frozen=True, slots=True)
class DeployWork:
    """One deploy, decided."""

    plan: Plan
    desired: DesiredStack
    stack_id: str
    record: StateRecord | None
    intents: Sequence[Intent]
    steps: Sequence[JsonMap]
    bench_for: Callable[[Run], Bench] = field(repr=False)
    lost: Sequence[Intent] = ()
    """Creates that a run before may have sent and that may be carried out later yet."""
    first: tuple[RecordChange, ...] = ()
    """What the record must say before anything is done: the plan is made from that."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all would change."""
        return self.plan.is_empty

    @property
    def exports(self) -> PlannedExports | None:
        """What the stack exports afterwards; None where it has no exports and there is none of it to take away."""
        plan, had_outputs = self.plan, bool(self.record and self.record.outputs)
        if not plan.exports and plan.exports_known and not had_outputs:
            return None
        return PlannedExports(plan.exports, plan.exports_known)

    def perform(self, run: Run) -> WorkResult:
        """Carry it out."""
        if self.first:
            run.save(self.first)
        facts = StackFacts(self.stack_id, self.record)
        before = self.record or empty_record(run.identity.stack, run.identity.region)
        return with_last_look(
            run,
            before,
            self.lost,
            bench_for=self.bench_for,
            work=lambda bench: DeployExecution(bench, self.plan, facts).perform(),
        )


class DestroyEngine:
    """Takes away everything that is recorded of one stack."""

    def __init__(self, *, aws: Aws, options: DeployOptions = DEFAULT_OPTIONS, native: Native = handler_for) -> None:
        """Asks for the account at once, beside whatever the caller does next."""
        self._aws = aws
        self._options = options
        self._native = native
        self._handler_of = HandlerOf(native)
        self._account = _Ahead(aws.account)
        self._recoverer = Recoverer(aws, native)

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """What was found of what a run before had in flight; what is there is destroyed with the rest."""
        return self._recoverer.recover(left, record, run, may_still_land=may_still_land)

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> DestroyWork:
        """What a destroy would delete and keep."""
        refuse_other_region(self._aws, identity.region)
        if record is None:
            raise InputError(
                f"{identity.stack} ({identity.region}) has no record: there is nothing to destroy",
                hint="See what is recorded with: stackhold state list",
            )
        account = self._account.get()
        refuse_elsewhere(self._aws, record, account=account)
        plan = plan_destroy(record, native=self._native)
        intents = intents_for(plan, identity, account=account, region=identity.region, native=self._native)
        return DestroyWork(
            plan=plan,
            record=record,
            intents=intents,
            steps=short_steps(plan),
            bench_for=self._bench,
            lost=self._recoverer.may_still_land,
        )

    def _bench(self, run: Run) -> Bench:
        return _bench(run, self._aws, self._handler_of, self._native, self._options, {}, {})


@dataclass(frozen=True, slots=True)
class DestroyWork:
    """One destroy, decided."""

    plan: Plan
    record: StateRecord
    intents: Sequence[Intent]
    steps: Sequence[JsonMap]
    bench_for: Callable[[Run], Bench] = field(repr=False)
    lost: Sequence[Intent] = ()
    """Creates that a run before may have sent and that may be carried out later yet."""

    @property
    def is_empty(self) -> bool:
        """Never: the record itself has to go."""
        return False

    def perform(self, run: Run) -> WorkResult:
        """Carry it out."""
        return with_last_look(
            run,
            self.record,
            self.lost,
            bench_for=self.bench_for,
            work=lambda bench: DestroyExecution(bench, self.plan, self.record).perform(),
        )


class _Ahead:
    """Asks something in a thread at once, and gives the answer, or raises its error, when it is needed."""

    def __init__(self, ask: Callable[[], str]) -> None:
        self._ask = ask
        self._answer = ""
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="account", daemon=True)
        self._thread.start()

    def get(self) -> str:
        """The answer."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except Exception as error:
            self._error = error


def _bench(
    run: Run,
    aws: Aws,
    handler_of: HandlerOf,
    native: Native,
    options: DeployOptions,
    tags: Mapping[str, str],
    earlier: Mapping[LogicalId, Earlier],
) -> Bench:
    def resolve(type_name: TypeName, logical_id: LogicalId, properties: Props, lookup: Lookup) -> Props:
        found = wanted_properties(type_name, logical_id, properties, lookup, stack_tags=tags)
        if has_unknown(found):
            raise Bug(f"{logical_id}: a value is still unknown although all that it needs is done")
        return found

    def decide(change: ResourceChange, properties: Props) -> ResourceChange:
        return reconsider(change, properties, native=native, stack_tags=tags)

    return Bench(
        run=run,
        aws=aws,
        handler_of=handler_of,
        resolve=resolve,
        decide=decide,
        options=options,
        stack_tags=tags,
        earlier=earlier,
    )


if TYPE_CHECKING:
    _deploy_engine: type[Engine] = DeployEngine
    _destroy_engine: type[Engine] = DestroyEngine
    _deploy_recovers: type[RecoveringEngine] = DeployEngine
    _destroy_recovers: type[RecoveringEngine] = DestroyEngine
    _deploy_work: type[Work] = DeployWork
    _deploy_exports: type[ExportingWork] = DeployWork
    _destroy_work: type[Work] = DestroyWork
