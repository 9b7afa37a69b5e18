"""The stage of executor tests: a handler for the fake cloud's things, and plans written in one line per resource."""

from __future__ import annotations

import dataclasses
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from stackhold.engines.cloudformation.bench import Bench, DeployOptions
from stackhold.engines.cloudformation.execute import DeployExecution, DestroyExecution, StackFacts
from stackhold.engines.cloudformation.plan import Action, Plan, ResourceChange, Route
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen, Settle
from stackhold.engines.cloudformation.template import references, resolve
from stackhold.engines.cloudformation.template.desired import DesiredOutput, DesiredResource
from stackhold.errors import AwsError
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord
from stackhold.testing.clock import FakeClock
from stackhold.testing.fake_cloud import FakeCloud
from stackhold.testing.scripted_run import ScriptedRun, identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Want
    from stackhold.engines.cloudformation.values import Lookup, Props
    from stackhold.model.events import EventKind
    from stackhold.ports.engine import WorkResult

THING = TypeName("Test::Fake::Thing")


class ThingHandler(Handler):
    """A thing of the fake cloud; its name is its physical id. `Kind` is create-only."""

    type: ClassVar[TypeName] = THING
    properties: ClassVar[frozenset[str]] = frozenset({"Name", "Kind", "Value", "Uses"})
    name_rule: ClassVar[NameRule | None] = NameRule(property="Name", limit=80)
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    settle_timeout_ms: ClassVar[int] = 60_000

    def __init__(self, *, calls_after_create: int = 0, dependents_wait: bool = True) -> None:
        self._calls_after_create = calls_after_create
        self.dependents_wait = dependents_wait  # type: ignore[misc]  # one class for both kinds

    def create(self, ctx: Context, want: Want) -> Made:
        answer = ctx.aws.call("fake", "CreateThing", {"Name": want.name, "Properties": want.properties})
        for _ in range(self._calls_after_create):
            ctx.aws.call("fake", "UpdateThing", {"Name": want.name, "Properties": want.properties})
        return Made(PhysicalId(want.name), {"Arn": answer["Arn"]}, is_settled=answer["Active"])

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        try:
            answer = ctx.aws.call("fake", "GetThing", {"Name": physical_id})
        except AwsError as error:
            if error.code == "NotFound":
                return None
            raise
        return Seen(answer["Properties"], {"Arn": answer["Arn"], "Late": answer["Late"]})

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        ctx.aws.call("fake", "UpdateThing", {"Name": physical_id, "Properties": want.properties})
        return Made(physical_id)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        try:
            ctx.aws.call("fake", "DeleteThing", {"Name": physical_id})
        except AwsError as error:
            if error.code != "NotFound":
                raise

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        answer = ctx.aws.call("fake", "GetThing", {"Name": physical_id})
        return (Settle.DONE if answer["Active"] else Settle.PENDING), None


@dataclass
class Stage:
    """One stack on a fake cloud, deployed again and again."""

    cloud: FakeCloud = field(default_factory=FakeCloud)
    record: StateRecord | None = None
    handler: Handler = field(default_factory=ThingHandler)
    cloud_control: Handler | None = None
    """The handler of the other route; None when it is the same."""
    options: DeployOptions = field(default_factory=lambda: DeployOptions(baseline=False))
    clock: FakeClock = field(default_factory=FakeClock)
    runs: int = 0
    run: ScriptedRun = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> ScriptedRun:
        """A new run from the record as it is."""
        self.runs += 1
        who = identity(run_id=f"20260319T08000{self.runs}000Z-0badcafe")
        self.run = ScriptedRun(self.clock, who=who, record=self.record)
        return self.run

    def has(self, **resources: dict[str, Any]) -> Stage:
        """Deploy these and forget how it went: the state to start from."""
        result = self.deploy(**resources)
        assert result.outcome == "succeeded", result
        self.cloud.log.clear()
        self.begin()
        return self

    def deploy(self, *, outputs: Mapping[str, Any] | None = None, **resources: dict[str, Any]) -> WorkResult:
        """Deploy this template. Keys of a resource with a small letter are its policies and flags."""
        plan = self.plan(resources, outputs or {})
        facts = StackFacts("arn:aws:cloudformation:eu-west-1:123456789012:stack/shop/1", self.record)
        result = DeployExecution(self.bench(), plan, facts).perform()
        self.record = None if result.record_gone else self.run.record
        return result

    def destroy(self) -> WorkResult:
        """Destroy what is recorded."""
        record = self.run.record
        plan = Plan(
            changes={
                name: ResourceChange(
                    name,
                    item.type,
                    Action.RETAIN if item.deletion_policy == "Retain" else Action.DELETE,
                    Route.NATIVE,
                    recorded=item,
                    keeps_old="Retain" if item.deletion_policy == "Retain" else None,
                )
                for name, item in record.resources.items()
            },
            needs={},
            old_needs={name: frozenset(item.dependencies or ()) for name, item in record.resources.items()},
            pending_deletes=record.pending_deletes,
        )
        result = DestroyExecution(self.bench(), plan, record).perform()
        self.record = None if result.record_gone else self.run.record
        return result

    def in_thread(self, **resources: dict[str, Any]) -> InThread:
        """Deploy in a thread, so that the test can act meanwhile."""
        return InThread(self, resources)

    def bench(self) -> Bench:
        """The surroundings of the current run."""

        def resolved(type_name: TypeName, logical_id: LogicalId, properties: Props, lookup: Lookup) -> Props:
            found: Props = resolve(properties, lookup)
            return found

        return Bench(
            run=self.run,
            aws=self.cloud,
            handler_of=self._handler_of,
            resolve=resolved,
            decide=decide,
            options=self.options,
        )

    def _handler_of(self, type_name: TypeName, route: Route) -> Handler:
        return (route is Route.CLOUD_CONTROL and self.cloud_control) or self.handler

    def plan(self, resources: Mapping[str, dict[str, Any]], outputs: Mapping[str, Any]) -> Plan:
        """What the planner would say."""
        recorded = self.record.resources if self.record else {}
        desired = {LogicalId(name): _desired(name, body) for name, body in resources.items()}
        changes = {name: _change(item, resources[name], recorded.get(name)) for name, item in desired.items()}
        for name, old in recorded.items():
            if name not in desired:
                keeps = old.deletion_policy if old.deletion_policy == "Retain" else None
                action = Action.RETAIN if keeps else Action.DELETE
                changes[name] = ResourceChange(name, old.type, action, Route.NATIVE, recorded=old, keeps_old=keeps)
        return Plan(
            changes=changes,
            needs={
                name: frozenset({target for target, _ in references(item.properties)} | set(item.depends_on))
                for name, item in desired.items()
            },
            old_needs={name: frozenset(item.dependencies or ()) for name, item in recorded.items()},
            pending_deletes=self.record.pending_deletes if self.record else (),
            outputs={name: DesiredOutput(name, value) for name, value in outputs.items()},
        )

    def names(self) -> set[str]:
        """What exists, by the part of its name that is the logical id."""
        return {name.split("-")[1] if name.startswith("shop-") else name for name in self.cloud.things}

    def wait_told(self, kind: EventKind) -> None:
        """Wait until an event of this kind was told."""
        until = time.monotonic() + 20
        while not any(event.kind is kind for event in tuple(self.run.events)):
            assert time.monotonic() < until, f"{kind} was never told"
            time.sleep(0.001)

    def value(self, logical_id: str) -> Any:
        """The value of a recorded thing as the cloud has it."""
        return self.cloud.things[self.run.record.resources[LogicalId(logical_id)].physical_id].properties.get("Value")

    def physical(self, logical_id: str) -> PhysicalId:
        """Its recorded physical id."""
        return self.run.record.resources[LogicalId(logical_id)].physical_id


class InThread:
    """A deploy that runs beside the test."""

    def __init__(self, stage: Stage, resources: dict[str, dict[str, Any]]) -> None:
        self._result: list[WorkResult] = []
        self._thread = threading.Thread(target=lambda: self._result.append(stage.deploy(**resources)), daemon=True)
        self._thread.start()

    def result(self) -> WorkResult:
        """Wait for its end."""
        self._thread.join(20)
        assert self._result, "the deploy has not ended"
        return self._result[0]


def decide(change: ResourceChange, properties: Props) -> ResourceChange:
    """Equal: keep; another `Kind`: replace; else update."""
    assert change.recorded is not None
    old = dict(change.recorded.properties)
    if old == properties:
        return dataclasses.replace(change, action=Action.KEEP)
    is_new = old.get("Kind") != properties.get("Kind")
    return dataclasses.replace(change, action=Action.REPLACE if is_new else Action.UPDATE)


def pending(logical_id: str, physical_id: str, *needs: str) -> PendingDelete:
    """A leftover of an earlier run."""
    return PendingDelete(
        LogicalId(logical_id),
        ResourceRecord(
            PhysicalId(physical_id), THING, {}, dependencies=tuple(LogicalId(need) for need in needs) or None
        ),
    )


def _desired(name: str, body: dict[str, Any]) -> DesiredResource:
    return DesiredResource(
        LogicalId(name),
        THING,
        {key: value for key, value in body.items() if key[0].isupper()},
        depends_on=tuple(LogicalId(need) for need in body.get("after", ())),
        deletion_policy=body.get("policy"),
        update_replace_policy=body.get("replace_policy"),
    )


def _change(desired: DesiredResource, body: dict[str, Any], old: ResourceRecord | None) -> ResourceChange:
    name = desired.logical_id
    if old is None:
        return ResourceChange(name, THING, Action.CREATE, Route.NATIVE, desired=desired)
    is_open = bool(references(desired.properties))
    if old.is_settling and not is_open and old.properties == desired.properties:
        return ResourceChange(name, THING, Action.WAIT, Route.NATIVE, desired=desired, recorded=old)
    if not is_open and old.properties == desired.properties:
        action = Action.KEEP if desired.deletion_policy == old.deletion_policy else Action.RECORD
        return ResourceChange(name, THING, action, Route.NATIVE, desired=desired, recorded=old)
    return ResourceChange(
        name,
        THING,
        Action.MAY_REPLACE if is_open else Action.UPDATE,
        Route(body.get("route", Route.NATIVE)),
        desired=desired,
        recorded=old,
        old_first=bool(body.get("old_first")),
        is_stateful=bool(body.get("stateful")),
        keeps_old=body.get("replace_policy"),
    )
