"""What a run that ended at once had in flight is found, taken on or told, and the next deploy goes on from there."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.engines.cloudformation.emulated import REGION, Emulated
from tests.engines.cloudformation.stage import THING, ThingHandler

from stackhold.decide.record import apply_changes, empty_record
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.recover import Recoverer
from stackhold.engines.cloudformation.resources.handler import FoundBy
from stackhold.errors import StoodDown
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName
from stackhold.model.instant import Instant
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord
from stackhold.model.run import Intended, Intent, IntentKind, IntentState
from stackhold.testing.clock import FakeClock
from stackhold.testing.fake_cloud import FakeCloud
from stackhold.testing.scripted_run import ScriptedRun, identity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.engines.cloudformation.engine import DeployWork
    from stackhold.engines.cloudformation.resources.handler import Context, Lost
    from stackhold.model.record import RecordChange
    from stackhold.ports.engine import Recovery, WorkResult
    from stackhold.testing.emulators import Emulator

EXAMPLES = Path(__file__).parents[3] / "examples"
NETWORK = """
Resources:
  Net: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.8.0.0/16}}
  Gate: {Type: "AWS::EC2::InternetGateway"}
  Joined:
    Type: AWS::EC2::VPCGatewayAttachment
    Properties: {VpcId: !Ref Net, InternetGatewayId: !Ref Gate}
  Near:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Net, CidrBlock: 10.8.1.0/24, MapPublicIpOnLaunch: true}
  Table: {Type: "AWS::EC2::RouteTable", Properties: {VpcId: !Ref Net}}
  Uses:
    Type: AWS::EC2::SubnetRouteTableAssociation
    Properties: {SubnetId: !Ref Near, RouteTableId: !Ref Table}
  Out:
    Type: AWS::EC2::Route
    DependsOn: Joined
    Properties: {RouteTableId: !Ref Table, DestinationCidrBlock: 0.0.0.0/0, GatewayId: !Ref Gate}
  Address: {Type: "AWS::EC2::EIP", Properties: {Domain: vpc}}
  Nat:
    Type: AWS::EC2::NatGateway
    Properties: {SubnetId: !Ref Near, AllocationId: !GetAtt Address.AllocationId}
"""
VPC = """
Resources:
  Net: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.8.0.0/16}}
"""


class Again(Emulated):
    """A stack whose runs can end at once and be recovered."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left: Sequence[Intent] = ()
        self.may_still_land = False

    def killed(self, template: str | Path, *, keeps: Sequence[str] = (), performs: bool = True) -> StateRecord:
        """Deploy everything, then forget the record of all but these: killed between the calls and their saves."""
        work = self.plan(template)
        before = self.record
        if performs:
            result = work.perform(self.run)
            assert result.outcome == "succeeded", result
        made = self.run.record
        self.left = work.intents
        kept = {name: item for name, item in made.resources.items() if name in keeps}
        old = before.resources if before else {}
        self.record = dataclasses.replace(made, resources={**old, **kept}, pending_deletes=(), outputs={})
        return made

    def recovered(self, template: str | Path) -> tuple[Recovery, DeployWork]:
        """What the next run finds, and what it then plans."""
        self.runs += 1
        who = identity(stack="shop", region=REGION, run_id=f"202604{self.runs:02}T080000000Z-0badcafe")
        self.run = ScriptedRun(self.clock, who=who, record=self.record)
        engine = self.engine(template)
        recovery = engine.recover(self.left, self.record, self.run, may_still_land=self.may_still_land)
        self.run.save(recovery.changes)
        self.record = self.run.record
        return recovery, engine.plan(self.record, who)

    def goes_on(self, work: DeployWork) -> WorkResult:
        """Carry the plan of the recovering run out."""
        result = work.perform(self.run)
        assert result.outcome == "succeeded", result
        self.record = self.run.record
        return result


@pytest.fixture
def stack(ministack: Emulator, monkeypatch: pytest.MonkeyPatch) -> Again:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    return Again(ministack)


def ids(record: StateRecord | None) -> dict[str, str]:
    return {} if record is None else {str(name): item.physical_id for name, item in record.resources.items()}


TEMPLATES = [
    pytest.param(EXAMPLES / "serverless.yaml", id="serverless"),
    pytest.param(NETWORK, id="network"),
]


@pytest.mark.emulator
@pytest.mark.parametrize("template", TEMPLATES)
def test_all_that_a_killed_first_deploy_made_is_found_and_nothing_is_made_twice(
    stack: Again, template: str | Path
) -> None:
    made = stack.killed(template)
    held = stack.inventory()
    recovery, work = stack.recovered(template)
    assert (recovery.unknown, recovery.absent, recovery.advice) == ((), (), ())
    assert ids(stack.record) == ids(made)
    assert {change.action for change in work.plan.changes.values()} == {Action.UPDATE}
    stack.goes_on(work)
    assert stack.inventory() == held
    assert stack.record is not None
    assert not any(item.is_adopted or item.is_settling for item in stack.record.resources.values())
    assert {name: item.properties for name, item in stack.record.resources.items()} == {
        name: item.properties for name, item in made.resources.items()
    }
    assert stack.plan(template).is_empty
    assert stack.destroy().record_gone
    left = stack.inventory()
    assert {kind: len(names) for kind, names in left.items() if kind in {"apis", "roles", "queues", "addresses"}} == {
        kind: 0 for kind in ("apis", "roles", "queues", "addresses")
    }


@pytest.mark.emulator
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("template", TEMPLATES)
def test_whatever_was_saved_before_the_kill_the_rest_is_found(stack: Again, template: str | Path, seed: int) -> None:
    names = sorted(stack.plan(template).plan.changes)
    made = stack.killed(template, keeps=random.Random(seed).sample(names, len(names) // 2))
    held = stack.inventory()
    recovery, work = stack.recovered(template)
    assert (recovery.unknown, recovery.absent) == ((), ())
    assert ids(stack.record) == ids(made)
    stack.goes_on(work)
    assert stack.inventory() == held
    assert stack.plan(template).is_empty


@pytest.mark.emulator
def test_a_destroy_after_a_kill_takes_away_what_no_record_had(stack: Again) -> None:
    before = stack.inventory()
    stack.killed(EXAMPLES / "serverless.yaml")
    stack.recovered(EXAMPLES / "serverless.yaml")
    assert stack.destroy().record_gone
    assert stack.inventory() == before


@pytest.mark.emulator
def test_what_was_never_made_is_made_under_the_very_names_tokens_and_tags(stack: Again) -> None:
    template = EXAMPLES / "serverless.yaml"
    stack.killed(template, performs=False)
    recovery, work = stack.recovered(template)
    assert recovery.changes == ()
    assert len(recovery.absent) == 22

    def sent(intents: Sequence[Intent]) -> set[tuple[object, ...]]:
        return {(one.logical_id, one.run_id, one.name, one.token, tuple(one.tags.items())) for one in intents}

    assert sent(work.intents) == sent(stack.left)
    stack.goes_on(work)
    assert stack.record is not None
    by_name = {str(intent.logical_id): intent.name for intent in stack.left}
    for name in ("Orders", "FunctionRole", "PlaceOrder", "TidyUpLogs"):
        assert stack.physical(name) == by_name[name]


@pytest.mark.emulator
def test_a_token_is_not_sent_again_with_another_request(stack: Again) -> None:
    stack.killed(NETWORK, performs=False)
    edited = NETWORK.replace('"AWS::EC2::RouteTable", Properties: {', '"AWS::EC2::RouteTable", Properties: {Tags: [], ')
    _, work = stack.recovered(edited)
    before = {intent.logical_id: intent for intent in stack.left}
    for intent in work.intents:
        is_same = intent.token == before[intent.logical_id].token
        assert is_same is (intent.logical_id != "Table"), intent.logical_id
        assert intent.tags == before[intent.logical_id].tags


@pytest.mark.emulator
def test_an_edited_template_replaces_what_was_found_only_where_it_must(stack: Again) -> None:
    stack.killed("Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: one, DelaySeconds: 3}}}")
    edited = "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: two}}}"
    _, work = stack.recovered(edited)
    assert work.plan.changes[LogicalId("Q")].action is Action.REPLACE
    stack.goes_on(work)
    assert [url.rpartition("/")[2] for url in stack.inventory()["queues"]] == ["two"]


@pytest.mark.emulator
def test_what_an_edited_template_leaves_out_is_reset(stack: Again) -> None:
    stack.killed("Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: one, DelaySeconds: 3}}}")
    edited = "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: one, VisibilityTimeout: 50}}}"
    _, work = stack.recovered(edited)
    stack.goes_on(work)
    url = stack.inventory()["queues"][0]
    seen = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (seen["DelaySeconds"], seen["VisibilityTimeout"]) == ("0", "50")


@pytest.mark.emulator
def test_a_replacement_in_flight_goes_on_with_the_new_one(stack: Again) -> None:
    one, two = (
        f"Resources: {{Q: {{Type: AWS::SQS::Queue, Properties: {{QueueName: {name}}}}}}}" for name in ("one", "two")
    )
    stack.must_deploy(one)
    work = stack.plan(two)
    work.perform(Unsaved(stack.clock, who=stack.run.identity, record=stack.record))
    stack.left = work.intents
    _, again = stack.recovered(two)
    assert stack.record is not None
    assert stack.physical("Q").endswith("/two")
    assert [item.resource.physical_id.rpartition("/")[2] for item in stack.record.pending_deletes] == ["one"]
    stack.goes_on(again)
    assert [url.rpartition("/")[2] for url in stack.inventory()["queues"]] == ["two"]


class Unsaved(ScriptedRun):
    """A run that is killed when it waits for its save: nothing of what it made is recorded, nothing old deleted."""

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        if confirmed:
            raise StoodDown("killed")


@pytest.mark.emulator
def test_half_an_update_is_sent_again_even_if_the_template_goes_back(stack: Again) -> None:
    before = "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1, VisibilityTimeout: 40}}}"
    after = "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 2, VisibilityTimeout: 40}}}"
    stack.must_deploy(before)
    stack.killed(after)
    _, work = stack.recovered(before)
    assert work.plan.changes[LogicalId("Q")].action is Action.UPDATE
    stack.goes_on(work)
    url = stack.physical("Q")
    seen = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert seen["DelaySeconds"] == "1"


def _twin(stack: Again, intent: Intent) -> str:
    """The same request once more, carried out late."""
    tags = [{"Key": key, "Value": value} for key, value in intent.tags.items()]
    specification = [{"ResourceType": "vpc", "Tags": tags}]
    made = stack.client("ec2").create_vpc(CidrBlock="10.8.0.0/16", TagSpecifications=specification)
    return str(made["Vpc"]["VpcId"])


@pytest.mark.emulator
def test_a_request_that_lands_while_the_next_run_works_leaves_no_twin(stack: Again) -> None:
    stack.killed(VPC, performs=False)
    stack.may_still_land = True
    before = stack.inventory()["vpcs"]
    _, work = stack.recovered(VPC)
    late = _twin(stack, stack.left[0])
    stack.goes_on(work)
    assert set(stack.inventory()["vpcs"]) - set(before) == {stack.physical("Net")}
    assert stack.physical("Net") != late


@pytest.mark.emulator
def test_a_request_that_lands_after_the_next_run_is_cleaned_up_by_the_run_after(stack: Again) -> None:
    stack.killed(VPC, performs=False)
    stack.may_still_land = True
    before = stack.inventory()["vpcs"]
    _, work = stack.recovered(VPC)
    stack.goes_on(work)
    stack.left = [dataclasses.replace(intent, first_seen_at=Instant(5)) for intent in stack.left]
    late = _twin(stack, stack.left[0])
    recovery, again = stack.recovered(VPC)
    assert stack.record is not None
    assert [pending.resource.physical_id for pending in stack.record.pending_deletes] == [late]
    assert recovery.seen == tuple(stack.left)
    stack.goes_on(again)
    assert set(stack.inventory()["vpcs"]) - set(before) == {stack.physical("Net")}


@pytest.mark.emulator
def test_a_request_for_what_nobody_wants_any_more_is_swept_up_after_a_destroy(stack: Again) -> None:
    stack.must_deploy("Resources: {Q: {Type: AWS::SQS::Queue}}")
    held = stack.inventory()["vpcs"]
    stack.killed(VPC, performs=False)
    stack.may_still_land = True
    stack.recovered(VPC)
    engine = stack.destroy_engine()
    engine.recover(stack.left, stack.record, stack.run, may_still_land=True)
    work = engine.plan(stack.record, stack.run.identity)
    _twin(stack, next(intent for intent in stack.left if intent.kind is IntentKind.CREATE))
    assert work.perform(stack.run).record_gone
    assert stack.inventory()["vpcs"] == held


# --- one thing at a time, on a cloud in memory -----------------------------------------------------------------

A = LogicalId("A")
DEAD = RunId("20260318T080000000Z-0badcafe")


class Unmarked(ThingHandler):
    """A thing that nothing tells from others."""

    found_by: ClassVar[FoundBy] = FoundBy.NOTHING


class Broken(ThingHandler):
    """A thing that may not be looked at."""

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        ctx.aws.call("fake", "GetThing", {"Name": "nothing-of-the-kind"})
        raise AssertionError


def recover(
    cloud: FakeCloud,
    *left: Intent,
    record: StateRecord | None = None,
    handler: ThingHandler | None = None,
    may_still_land: bool = False,
) -> tuple[Recovery, StateRecord]:
    """What is found, and the record after it."""
    run = ScriptedRun(FakeClock(), who=identity(), record=record)
    found = Recoverer(cloud, lambda _: handler or ThingHandler()).recover(
        left, record, run, may_still_land=may_still_land
    )
    before = record or empty_record(StackName("shop"), Region("eu-west-1"))
    return found, apply_changes(before, found.changes)


def create(name: str, *, logical_id: LogicalId = A, needs: tuple[str, ...] = (), **more: Any) -> Intent:
    intended = Intended(
        properties=("Value",), is_own_name=True, dependencies=tuple(LogicalId(need) for need in needs), **more
    )
    return Intent(logical_id, THING, IntentKind.CREATE, DEAD, name=name, tags={"t": "1"}, intended=intended)


def of(kind: IntentKind, physical_id: str, *changed: str) -> Intent:
    return Intent(
        A, THING, kind, DEAD, physical_id=PhysicalId(physical_id), intended=Intended(properties=tuple(changed))
    )


def holding(cloud: FakeCloud, **things: dict[str, Any]) -> None:
    for name, properties in things.items():
        cloud.call("fake", "CreateThing", {"Name": name, "Properties": properties})


def recorded(physical_id: str | None = None, *, pending: Sequence[str] = (), **properties: Any) -> StateRecord:
    def resource(physical_id: str) -> ResourceRecord:
        return ResourceRecord(PhysicalId(physical_id), THING, properties)

    return StateRecord(
        StackName("shop"),
        Region("eu-west-1"),
        {A: resource(physical_id)} if physical_id else {},
        pending_deletes=tuple(PendingDelete(A, resource(physical_id)) for physical_id in pending),
    )


def test_a_found_resource_is_recorded_with_what_a_read_shows_of_what_was_asked() -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 1, "Other": 2})
    found, after = recover(cloud, create("a", deletion_policy="Retain", digest="d"))
    [resource] = after.resources.values()
    assert (resource.physical_id, resource.properties, resource.adopted_as) == ("a", {"Value": 1}, "d")
    assert resource.deletion_policy == "Retain"
    assert resource.dependencies == ()
    assert found.taken_on == (f"A ({THING}) as a",)
    assert len(found.seen) == 1


def test_recovery_changes_nothing_in_the_cloud() -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 1}, b={})
    cloud.log.clear()
    recover(cloud, create("a"), of(IntentKind.DELETE, "b"), of(IntentKind.UPDATE, "b"), record=recorded("b"))
    assert cloud.changes() == []


def test_a_child_whose_parent_is_not_there_is_not_looked_for() -> None:
    cloud = FakeCloud()
    holding(cloud, child={})
    child = create("child", logical_id=LogicalId("Child"), needs=("A",))
    found, after = recover(cloud, child, create("a"))
    assert after.resources == {}
    assert ("GetThing", "child") not in cloud.log
    assert found.absent == ("A (create a)", "Child (create child)")


def test_parents_are_found_before_their_children() -> None:
    cloud = FakeCloud()
    holding(cloud, a={}, child={})
    child = create("child", logical_id=LogicalId("Child"), needs=("A",))
    _, after = recover(cloud, child, create("a"))
    assert after.resources.keys() == {"A", "Child"}


def test_entries_that_need_each_other_in_a_ring_are_looked_for_all_the_same() -> None:
    cloud = FakeCloud()
    holding(cloud, a={}, b={})
    found, _ = recover(
        cloud,
        create("a", needs=("B",)),
        create("b", logical_id=LogicalId("B"), needs=("A",)),
    )
    assert len(found.absent) == 2


def test_a_recorded_create_that_going_back_had_deleted_is_dropped() -> None:
    found, after = recover(FakeCloud(), create("a"), record=recorded("a"))
    assert after.resources == {}
    assert found.gone == (f"A ({THING}) a",)
    assert found.seen == ()


def test_a_delete_that_is_done_is_dropped_from_the_record() -> None:
    found, after = recover(FakeCloud(), of(IntentKind.DELETE, "a"), record=recorded("a"))
    assert after.resources == {}
    assert len(found.seen) == 1


def test_a_delete_that_is_not_done_stays_recorded_and_open() -> None:
    cloud = FakeCloud()
    holding(cloud, a={})
    found, after = recover(cloud, of(IntentKind.DELETE, "a"), record=recorded("a"))
    assert after.resources.keys() == {"A"}
    assert found.seen == ()


def test_the_old_one_of_a_replacement_that_is_gone_waits_for_no_deletion() -> None:
    cloud = FakeCloud()
    holding(cloud, new={})
    _, after = recover(cloud, of(IntentKind.DELETE, "old"), record=recorded("new", pending=["old"]))
    assert after.pending_deletes == ()
    assert after.resources.keys() == {"A"}


def test_the_new_one_of_a_replacement_takes_the_place_of_the_old_one_which_is_deleted_later() -> None:
    cloud = FakeCloud()
    holding(cloud, old={}, new={"Value": 2})
    left = (create("new", replaces=PhysicalId("old")), of(IntentKind.DELETE, "old"))
    _, after = recover(cloud, *left, record=recorded("old"))
    assert [item.physical_id for item in after.resources.values()] == ["new"]
    assert [item.resource.physical_id for item in after.pending_deletes] == ["old"]


def test_an_old_one_that_a_policy_keeps_is_not_to_be_deleted() -> None:
    cloud = FakeCloud()
    holding(cloud, old={}, new={})
    _, after = recover(cloud, create("new", replaces=PhysicalId("old"), keeps_old=True), record=recorded("old"))
    assert [item.physical_id for item in after.resources.values()] == ["new"]
    assert after.pending_deletes == ()


def test_an_old_one_that_went_first_is_gone_and_the_new_one_is_created_under_its_name() -> None:
    left = (create("new", replaces=PhysicalId("old"), old_first=True), of(IntentKind.DELETE, "old"))
    found, after = recover(FakeCloud(), *left, record=recorded("old"))
    assert after.resources == {}
    assert "A (create new)" in found.absent


def test_what_exists_beside_a_recorded_one_is_to_be_deleted() -> None:
    cloud = FakeCloud()
    holding(cloud, recorded={}, late={})
    again = dataclasses.replace(create("late"), first_seen_at=Instant(5))
    _, after = recover(cloud, again, record=recorded("recorded"))
    assert [item.physical_id for item in after.resources.values()] == ["recorded"]
    assert [item.resource.physical_id for item in after.pending_deletes] == ["late"]


def test_adoption_wins_over_deletion() -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 1})
    _, after = recover(cloud, create("a"), record=recorded(pending=["a"]))
    assert [item.physical_id for item in after.resources.values()] == ["a"]
    assert after.pending_deletes == ()


def test_the_record_says_what_is_there_of_what_an_update_was_to_change() -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 2, "Kind": "k"})
    _, after = recover(
        cloud, of(IntentKind.UPDATE, "a", "Value", "Uses"), record=recorded("a", Value=1, Kind="k", Uses=3)
    )
    assert after.resources[A].properties == {"Value": 2, "Kind": "k"}


def test_an_update_that_left_no_trace_leaves_the_record_as_it_is() -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 1})
    found, _ = recover(cloud, of(IntentKind.UPDATE, "a", "Value"), record=recorded("a", Value=1))
    assert found.changes == ()
    assert len(found.seen) == 1


def test_what_nothing_tells_from_others_is_named_with_the_command_that_looks_for_it() -> None:
    found, _ = recover(FakeCloud(), create("a"), handler=Unmarked())
    assert len(found.unknown) == 1
    assert found.absent == ()
    assert found.advice == (
        f"A ({THING}) may exist without being recorded: nothing tells a lost {THING} from others; look with: "
        f"aws cloudcontrol get-resource --type-name {THING} --identifier a --region eu-west-1",
    )


@pytest.mark.parametrize(
    ("kind", "said"),
    [(IntentKind.UPDATE, "may have been changed, or not: "), (IntentKind.DELETE, "may be gone, or not: ")],
)
def test_what_cannot_be_looked_at_is_named_as_what_was_in_flight(kind: IntentKind, said: str) -> None:
    cloud = FakeCloud()
    holding(cloud, a={"Value": 1})
    cloud.refuse("GetThing", "a", code="AccessDenied", times=9)
    found, _ = recover(cloud, of(kind, "a", "Value"), record=recorded("a", Value=1))
    assert len(found.unknown) == 1
    assert found.advice[0].startswith(f"A ({THING}) {said}")


def test_a_look_that_is_refused_says_so_and_the_others_go_on() -> None:
    cloud = FakeCloud()
    found, _ = recover(cloud, create("a"), create("b", logical_id=LogicalId("B")), handler=Broken())
    assert len(found.unknown) == 2
    assert "there is no nothing-of-the-kind" in found.advice[0]


def test_an_entry_of_an_older_release_says_that_it_does_not_tell_where_to_look() -> None:
    bare = Intent(A, THING, IntentKind.CREATE, DEAD, name="a")
    found, _ = recover(FakeCloud(), bare)
    assert found.unknown == (bare,)
    assert "does not tell where to look" in found.advice[0]


def test_a_stopped_run_looks_no_further() -> None:
    run = ScriptedRun(FakeClock(), who=identity())
    run.stop()
    with pytest.raises(StoodDown):
        Recoverer(FakeCloud(), lambda _: ThingHandler()).recover([create("a")], None, run, may_still_land=True)


def test_what_seems_gone_is_looked_at_again_while_answers_may_be_behind() -> None:
    cloud = FakeCloud()
    recover(cloud, of(IntentKind.UPDATE, "a"), record=recorded("a"), may_still_land=True)
    assert cloud.log[:3] == [("GetThing", "a")] * 3
    cloud.log.clear()
    recover(cloud, of(IntentKind.DELETE, "a"), record=recorded("a"), may_still_land=True)
    assert cloud.log == [("GetThing", "a")]
    cloud.log.clear()
    recover(cloud, create("a"), record=recorded("a"), may_still_land=False)
    assert cloud.log == [("GetThing", "a")] * 2


def test_only_creates_that_are_not_there_are_sent_again_under_their_names() -> None:
    cloud = FakeCloud()
    holding(cloud, a={})
    recoverer = Recoverer(cloud, lambda _: ThingHandler())
    lost = create("b", logical_id=LogicalId("B"))
    state = [create("a"), lost, dataclasses.replace(lost, kind=IntentKind.DELETE, physical_id=PhysicalId("z"))]
    recoverer.recover(state, None, ScriptedRun(FakeClock(), who=identity()), may_still_land=True)
    assert recoverer.may_still_land == (lost,)
    assert all(intent.state is IntentState.OPEN for intent in state)
