from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.graph import edges
from stackhold.engines.cloudformation.intents import intents_for, short_steps, summarise
from stackhold.engines.cloudformation.plan import Action, Plan, Route
from stackhold.engines.cloudformation.planner import plan_deploy, plan_destroy, reconsider
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, NameRule
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.template import evaluate, parse_template, parse_text
from stackhold.engines.cloudformation.template.desired import DesiredStack, Inputs
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.errors import InputError
from stackhold.model.codec import decode_record
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord
from stackhold.model.run import IntentKind, RunIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

STACK = StackName("Shop")
EAST = Region("us-east-1")
QUEUE = TypeName("AWS::SQS::Queue")
TABLE = TypeName("AWS::DynamoDB::Table")
SUBSCRIPTION = TypeName("AWS::SNS::Subscription")
CLUSTER = TypeName("AWS::RDS::DBCluster")
KEYS: dict[str, Any] = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}


class QueueHandler(Handler):
    """What planning asks of a queue."""

    type = QUEUE
    properties: ClassVar[frozenset[str]] = frozenset({"QueueName", "VisibilityTimeout", "DelaySeconds", "Tags"})
    name_rule = NameRule("QueueName", 80)
    found_by = FoundBy.NAME
    volatile_attributes: ClassVar[frozenset[str]] = frozenset({"Changing"})

    def ref(self, physical_id: PhysicalId, properties: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
        return f"ref of {physical_id}"


class TableHandler(Handler):
    """What planning asks of a table."""

    type = TABLE
    properties: ClassVar[frozenset[str]] = frozenset({"TableName", "KeySchema", "BillingMode"})
    name_rule = NameRule("TableName", 255)
    found_by = FoundBy.NAME
    is_stateful = True


def native(type_name: TypeName) -> Handler | None:
    return {QUEUE: QueueHandler(), TABLE: TableHandler()}.get(type_name)


def stack(resources: dict[str, Any], **sections: Any) -> DesiredStack:
    import json

    template = parse_text(json.dumps({"Resources": resources, **sections}), file="t.json")
    inputs = Inputs(
        stack=STACK,
        region=EAST,
        account="123456789012",
        partition="aws",
        url_suffix="amazonaws.com",
        stack_id="arn:aws:cloudformation:us-east-1:123456789012:stack/Shop/1",
    )
    return evaluate(template, inputs)


def queue(attributes: dict[str, Any] | None = None, **properties: Any) -> ResourceRecord:
    return ResourceRecord(PhysicalId("q-1"), QUEUE, properties, attributes or {"Arn": "arn:q-1"})


def record(resources: dict[str, ResourceRecord], **fields: Any) -> StateRecord:
    return StateRecord(STACK, EAST, {LogicalId(name): resource for name, resource in resources.items()}, **fields)


def planned(
    resources: dict[str, Any],
    recorded: StateRecord | None = None,
    *,
    live: dict[str, Any] | None = None,
    replace: tuple[str, ...] = (),
    gone: tuple[str, ...] = (),
    tags: dict[str, str] | None = None,
    **sections: Any,
) -> Plan:
    desired = stack(resources, **sections)
    return plan_deploy(
        desired,
        recorded,
        needs=edges(desired),
        attribute=lambda logical_id, _, attribute: (live or {})[f"{logical_id}.{attribute}"],
        native=native,
        allow_replace=frozenset(LogicalId(name) for name in replace),
        is_gone=lambda name, recorded: name in gone,
        stack_tags=tags,
    )


def actions(plan: Plan) -> dict[str, Action]:
    return {logical_id: change.action for logical_id, change in plan.changes.items()}


def a_queue(**properties: Any) -> dict[str, Any]:
    return {"Type": QUEUE, "Properties": properties}


def subscription(**properties: Any) -> dict[str, Any]:
    return {"Type": SUBSCRIPTION, "Properties": {"Protocol": "sqs", "TopicArn": "arn:t", **properties}}


def test_a_first_deploy_creates_everything() -> None:
    plan = planned({"A": a_queue(), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "Arn"]})})
    assert actions(plan) == {"A": Action.CREATE, "B": Action.CREATE}
    assert plan.resolved[LogicalId("B")]["Endpoint"] is UNKNOWN
    assert plan.needs == {"A": frozenset(), "B": {"A"}}
    assert not plan.is_empty


def test_the_same_again_plans_nothing() -> None:
    plan = planned({"A": a_queue(VisibilityTimeout="60")}, record({"A": queue(VisibilityTimeout=60)}))
    assert actions(plan) == {"A": Action.KEEP}
    assert plan.is_empty


def test_a_changed_property_updates_and_its_attributes_stay_known() -> None:
    resources = {"A": a_queue(DelaySeconds=3), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "Arn"]})}
    arn = {"Endpoint": "arn:q-1", "Protocol": "sqs", "TopicArn": "arn:t"}
    plan = planned(resources, record({"A": queue(), "B": ResourceRecord(PhysicalId("s"), SUBSCRIPTION, arn)}))
    assert actions(plan) == {"A": Action.UPDATE, "B": Action.KEEP}


def test_volatile_attributes_and_changing_ones_of_an_updated_resource_are_unknown() -> None:
    resources = {
        "A": a_queue(VisibilityTimeout=3),
        "B": a_queue(DelaySeconds={"Fn::GetAtt": ["A", "Changing"]}),
        "C": a_queue(DelaySeconds={"Fn::GetAtt": ["A", "VisibilityTimeout"]}),
    }
    recorded = record({"A": queue({"Changing": 1, "VisibilityTimeout": 2}, VisibilityTimeout=2)})
    plan = planned(resources, recorded)
    assert plan.resolved[LogicalId("B")]["DelaySeconds"] is UNKNOWN
    assert plan.resolved[LogicalId("C")]["DelaySeconds"] is UNKNOWN


def test_ref_of_a_kept_resource_is_what_its_handler_says() -> None:
    plan = planned({"A": a_queue(), "B": subscription(Endpoint={"Ref": "A"})}, record({"A": queue()}))
    assert plan.resolved[LogicalId("B")]["Endpoint"] == "ref of q-1"


def test_an_attribute_that_the_record_lacks_is_read_live_and_once() -> None:
    plan = planned(
        {"A": a_queue(), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "QueueName"]})},
        record({"A": queue()}),
        live={"A.QueueName": "read"},
    )
    assert plan.resolved[LogicalId("B")]["Endpoint"] == "read"


def test_a_nested_attribute_is_found_flat_or_nested() -> None:
    for attributes in ({"Endpoint": {"Address": "a"}}, {"Endpoint.Address": "a"}):
        plan = planned(
            {"A": a_queue(), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "Endpoint.Address"]})},
            record({"A": queue(attributes)}),
        )
        assert plan.resolved[LogicalId("B")]["Endpoint"] == "a"


def test_a_replaced_resource_makes_its_dependents_unknown_and_is_named_as_the_cause() -> None:
    arn = {"Endpoint": "arn:q-1", "Protocol": "sqs", "TopicArn": "arn:t"}
    plan = planned(
        {"A": a_queue(QueueName="new"), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "Arn"]})},
        record({"A": queue(QueueName="old"), "B": ResourceRecord(PhysicalId("s"), SUBSCRIPTION, arn)}),
    )
    assert actions(plan) == {"A": Action.REPLACE, "B": Action.MAY_REPLACE}
    assert plan.changes[LogicalId("B")].changes[0].cause == "A"
    assert not plan.changes[LogicalId("A")].old_first


def test_a_removed_resource_is_deleted_or_retained_by_the_policy_of_the_record() -> None:
    kept = dataclasses.replace(queue(), deletion_policy="Retain")
    other = dataclasses.replace(queue(), deletion_policy="RetainExceptOnCreate")
    plan = planned({"A": a_queue()}, record({"A": queue(), "B": queue(), "C": kept, "D": other}))
    assert actions(plan) == {"A": Action.KEEP, "B": Action.DELETE, "C": Action.RETAIN, "D": Action.RETAIN}
    assert plan.changes[LogicalId("C")].keeps_old == "Retain"
    assert plan.changes[LogicalId("B")].desired is None


def test_a_replaced_resource_is_kept_by_the_policy_of_the_template() -> None:
    resource = {**a_queue(QueueName="new"), "UpdateReplacePolicy": "Retain"}
    plan = planned({"A": resource}, record({"A": queue(QueueName="old")}))
    assert plan.changes[LogicalId("A")].keeps_old == "Retain"


def test_policies_and_dependencies_alone_are_record_only() -> None:
    retained = {**a_queue(), "DeletionPolicy": "Retain"}
    assert actions(planned({"A": retained}, record({"A": queue()}))) == {"A": Action.RECORD}
    depending = {**a_queue(), "DependsOn": "B"}
    before = dataclasses.replace(queue(), dependencies=())
    plan = planned({"A": depending, "B": a_queue()}, record({"A": before, "B": queue()}))
    assert actions(plan) == {"A": Action.RECORD, "B": Action.KEEP}


def test_what_a_record_leaves_out_is_the_usual() -> None:
    resources = {
        "A": {**a_queue(), "DeletionPolicy": "Delete", "UpdateReplacePolicy": "Delete", "DependsOn": ["B", "C"]},
        "B": a_queue(),
        "C": a_queue(),
    }
    recorded = record({"A": queue(), "B": queue(), "C": queue()})
    assert planned(resources, recorded).is_empty
    ordered = dataclasses.replace(queue(), dependencies=(LogicalId("C"), LogicalId("B")))
    assert planned(resources, recorded.with_resource(LogicalId("A"), ordered)).is_empty


def test_naming_the_generated_name_is_record_only() -> None:
    plan = planned({"A": a_queue(QueueName="made")}, record({"A": queue({"QueueName": "made"})}))
    assert actions(plan) == {"A": Action.RECORD}


def test_what_still_settles_is_waited_for() -> None:
    settling = dataclasses.replace(queue(), is_settling=True)
    assert actions(planned({"A": a_queue()}, record({"A": settling}))) == {"A": Action.WAIT}
    assert actions(planned({"A": a_queue(DelaySeconds=1)}, record({"A": settling}))) == {"A": Action.UPDATE}


def test_a_type_that_must_go_first_goes_first() -> None:
    association = TypeName("AWS::EC2::SubnetRouteTableAssociation")
    old = ResourceRecord(PhysicalId("a"), association, {"SubnetId": "s", "RouteTableId": "r"})
    new = {"Type": association, "Properties": {"SubnetId": "s2", "RouteTableId": "r"}}
    change = planned({"A": new}, record({"A": old})).changes[LogicalId("A")]
    assert change.action is Action.REPLACE
    assert change.old_first


def test_a_replacement_under_the_same_explicit_name_is_refused_and_can_be_allowed() -> None:
    resource = {"Type": QUEUE, "Properties": {"QueueName": "a", "FifoQueue": True}}
    recorded = record({"A": dataclasses.replace(queue(QueueName="a"), provisioned_by="cc-api")})
    with pytest.raises(InputError, match=r"A \(AWS::SQS::Queue\) must be replaced, as FifoQueue changes") as caught:
        planned({"A": resource}, recorded)
    assert "--replace A" in caught.value.hint
    change = planned({"A": resource}, recorded, replace=("A",)).changes[LogicalId("A")]
    assert change.action is Action.REPLACE
    assert change.old_first


def test_a_replacement_that_nothing_blocks_is_made_before_the_old_one_goes() -> None:
    plan = planned({"A": a_queue(QueueName="new")}, record({"A": queue(QueueName="old")}), replace=("A",))
    assert not plan.changes[LogicalId("A")].old_first


def test_another_type_under_one_id_is_refused_and_can_be_allowed() -> None:
    resources = {"A": {"Type": TABLE, "Properties": KEYS}}
    with pytest.raises(InputError, match=r"A is recorded as AWS::SQS::Queue and the template makes it") as caught:
        planned(resources, record({"A": queue()}))
    assert "another logical id" in caught.value.hint
    change = planned(resources, record({"A": queue()}), replace=("A",)).changes[LogicalId("A")]
    assert change.action is Action.REPLACE
    assert change.type == TABLE
    assert change.recorded is not None
    assert change.recorded.type == QUEUE


def test_allowing_a_replacement_of_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="--replace names B"):
        planned({"A": a_queue()}, replace=("B",))
    unchanged = record({"A": queue(QueueName="a")})
    with pytest.raises(InputError, match="--replace A: no change of the template replaces it, and it is there"):
        planned({"A": a_queue(QueueName="a")}, unchanged, replace=("A",))


def test_allowing_a_replacement_that_nothing_needs_is_said_beside_other_work() -> None:
    resources = {"A": a_queue(QueueName="a"), "B": a_queue(QueueName="b")}
    plan = planned(resources, record({"A": queue(QueueName="a")}), replace=("A", "B"))
    assert plan.warnings == ("--replace A: no change of the template replaces it",)


def test_what_is_gone_is_replaced_on_request_under_its_own_name() -> None:
    recorded = record({"A": queue(QueueName="a")})
    plan = planned({"A": a_queue(QueueName="a")}, recorded, replace=("A",), gone=("A",))
    change = plan.changes[LogicalId("A")]
    assert (change.action, change.is_gone, change.old_first) == (Action.REPLACE, True, True)
    assert "gone from the cloud" in change.warnings[0]


def test_the_explicit_name_of_a_resource_that_goes_cannot_be_taken() -> None:
    with pytest.raises(InputError, match="would be created as a, which is Old's name") as caught:
        planned({"New": a_queue(QueueName="a")}, record({"Old": queue(QueueName="a")}))
    assert "Keep the logical id Old" in caught.value.hint


@pytest.mark.parametrize("policy", ["Snapshot", None])
def test_what_needs_a_snapshot_is_not_deleted(policy: str | None) -> None:
    cluster = ResourceRecord(PhysicalId("c"), CLUSTER, {"Engine": "aurora-mysql"}, deletion_policy=policy)
    with pytest.raises(InputError, match=r"B \(AWS::RDS::DBCluster\) would be deleted.*snapshot"):
        planned({"A": a_queue()}, record({"A": queue(), "B": cluster}))
    with pytest.raises(InputError, match="snapshot"):
        plan_destroy(record({"B": cluster}), native=native)
    kept = dataclasses.replace(cluster, deletion_policy="Retain")
    assert actions(plan_destroy(record({"B": kept}), native=native)) == {"B": Action.RETAIN}


def test_properties_that_a_handler_does_not_send_go_to_cloud_control() -> None:
    plan = planned({"A": a_queue(), "B": a_queue(FifoQueue=True), "C": subscription()})
    routes = {name: change.route for name, change in plan.changes.items()}
    assert routes == {"A": Route.NATIVE, "B": Route.CLOUD_CONTROL, "C": Route.CLOUD_CONTROL}


def test_what_cloud_control_made_stays_with_it() -> None:
    made = dataclasses.replace(queue(), provisioned_by="cc-api")
    assert planned({"A": a_queue()}, record({"A": made})).changes[LogicalId("A")].route is Route.CLOUD_CONTROL


def test_a_recorded_resource_changes_its_route_only_under_the_same_id() -> None:
    with pytest.raises(InputError, match="FifoQueue can only be sent through Cloud Control"):
        planned({"A": a_queue(FifoQueue=True)}, record({"A": queue({"QueueUrl": "https://q"})}))
    plan = planned({"A": a_queue(MaximumMessageSize=9)}, record({"A": queue({"QueueUrl": "q-1"})}))
    assert plan.changes[LogicalId("A")].route is Route.CLOUD_CONTROL


def test_what_another_tool_made_under_an_id_of_its_own_is_not_taken_for_gone() -> None:
    """cdkd has native handlers that are not here; Cloud Control would say of its ids that there is nothing."""
    service = TypeName("AWS::ECS::Service")
    theirs = ResourceRecord(PhysicalId("arn:aws:ecs:us-east-1:123456789012:service/a/b"), service, {"Cluster": "a"})
    with pytest.raises(InputError, match=r"B \(AWS::ECS::Service\) can only be deleted through Cloud Control"):
        plan_destroy(record({"B": theirs}), native=native)
    with pytest.raises(InputError, match="can only be deleted through Cloud Control"):
        planned({"B": {"Type": service, "Properties": {"Cluster": "c"}}}, record({"B": theirs}))
    ours = dataclasses.replace(theirs, physical_id=PhysicalId("arn|a"), provisioned_by="cc-api")
    assert actions(plan_destroy(record({"B": ours}), native=native)) == {"B": Action.DELETE}
    assert planned({"B": {"Type": service, "Properties": {"Cluster": "a"}}}, record({"B": theirs})).is_empty


def test_everything_wrong_is_one_error_with_its_place() -> None:
    resources = {
        "A": a_queue(Nothing=1),
        "B": {"Type": "AWS::CodeBuild::Project", "Properties": {"Artifacts": {}, "Environment": {}, "Source": {}}},
        "C": {"Type": "AWS::Not::Known"},
    }
    with pytest.raises(InputError) as caught:
        planned(resources)
    assert "A (AWS::SQS::Queue): Nothing is no property" in caught.value.message
    assert "C: the resource type AWS::Not::Known is not supported" in caught.value.message
    assert "t.json:1" in caught.value.message


def test_a_type_without_any_handler_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="the resource type AWS::IAM::AccessKey is not supported"):
        planned({"A": {"Type": "AWS::IAM::AccessKey", "Properties": {"UserName": "u"}}})


def test_stack_tags_lie_below_a_resources_own_and_only_ever_update() -> None:
    resources = {"A": a_queue(Tags=[{"Key": "own", "Value": "1"}])}
    plan = planned(resources, tags={"own": "stack", "team": "pay"})
    assert plan.resolved[LogicalId("A")]["Tags"] == [{"Key": "own", "Value": "1"}, {"Key": "team", "Value": "pay"}]
    recorded = record({"A": queue(Tags=[{"Key": "own", "Value": "1"}, {"Key": "team", "Value": "pay"}])})
    assert planned(resources, recorded, tags={"team": "pay"}).is_empty
    changed = planned(resources, recorded, tags={"team": "other"}).changes[LogicalId("A")]
    assert (changed.action, changed.changes[0].path) == (Action.UPDATE, "Tags.team")
    assert actions(planned(resources, recorded)) == {"A": Action.UPDATE}


def test_stack_tags_never_replace_what_cannot_change_its_tags() -> None:
    snapshot = TypeName("AWS::RedshiftServerless::Snapshot")
    properties = {"SnapshotName": "s"}
    recorded = record({"A": ResourceRecord(PhysicalId("s"), snapshot, properties)})
    plan = planned({"A": {"Type": snapshot, "Properties": properties}}, recorded, tags={"team": "pay"})
    assert plan.is_empty


def test_outputs_that_differ_from_the_record_are_a_change() -> None:
    resources, recorded = {"A": a_queue()}, record({"A": queue()}, outputs={"Url": "ref of q-1"})
    same = {"Url": {"Value": {"Ref": "A"}}}
    assert planned(resources, recorded, Outputs=same).is_empty
    assert planned(resources, recorded, Outputs={"Url": {"Value": "x"}}).outputs_changed
    assert planned(resources, recorded).outputs_changed
    assert planned(resources, record({"A": queue()}), Outputs=same).outputs_changed


def test_outputs_are_known_as_far_as_their_resources_stay() -> None:
    recorded = record({"A": queue({"Arn": "arn-1"})}, outputs={"Arn": "arn-1", "New": "n"})
    outputs = {
        "Arn": {"Value": {"Fn::GetAtt": "A.Arn"}},
        "New": {"Value": {"Fn::Join": ["-", ["x", {"Ref": "B"}]]}},
    }
    plan = planned({"A": a_queue(VisibilityTimeout=60), "B": a_queue()}, recorded, Outputs=outputs)
    assert plan.output_values == {"Arn": "arn-1", "New": UNKNOWN}


def test_an_output_that_cannot_be_text_is_refused_before_the_first_call() -> None:
    with pytest.raises(InputError, match=r"Url.*a list"):
        planned(
            {"A": a_queue()}, record({"A": queue({"Arn": ["x"]})}), Outputs={"Url": {"Value": {"Fn::GetAtt": "A.Arn"}}}
        )


def test_changed_parameters_are_a_change_unless_the_record_has_none() -> None:
    resources, parameters = {"A": a_queue()}, {"P": {"Type": "String", "Default": "new"}}
    assert planned(resources, record({"A": queue()}), Parameters=parameters).is_empty
    assert planned(resources, record({"A": queue()}, parameters={"P": "new"}), Parameters=parameters).is_empty
    assert planned(resources, record({"A": queue()}, parameters={"P": "old"}), Parameters=parameters).parameters_changed


def test_leftovers_of_earlier_runs_are_deleted_but_never_what_lives() -> None:
    gone = dataclasses.replace(queue(), physical_id=PhysicalId("q-0"), dependencies=(LogicalId("Z"),))
    pending = (PendingDelete(LogicalId("A"), gone), PendingDelete(LogicalId("A"), queue()))
    plan = planned({"A": a_queue()}, record({"A": queue()}, pending_deletes=pending))
    assert [one.resource.physical_id for one in plan.pending_deletes] == ["q-0"]
    assert plan.old_needs[LogicalId("A")] == {"Z"}
    assert len(plan.warnings) == 1
    assert not plan.is_empty


def test_a_removed_resource_may_have_a_leftover_too() -> None:
    gone = dataclasses.replace(queue(), physical_id=PhysicalId("q-0"))
    recorded = record({"A": queue(), "B": queue()}, pending_deletes=(PendingDelete(LogicalId("B"), gone),))
    plan = planned({"A": a_queue()}, recorded)
    assert plan.changes[LogicalId("B")].action is Action.DELETE
    assert len(plan.pending_deletes) == 1
    assert summarise(plan)["delete"] == 2


def test_destroy_deletes_all_that_no_policy_keeps() -> None:
    kept = dataclasses.replace(queue(), deletion_policy="Retain")
    depending = dataclasses.replace(queue(), dependencies=(LogicalId("C"),))
    table = ResourceRecord(PhysicalId("t"), TABLE, KEYS)
    plan = plan_destroy(record({"A": kept, "B": depending, "C": table}), native=native)
    assert actions(plan) == {"A": Action.RETAIN, "B": Action.DELETE, "C": Action.DELETE}
    assert plan.old_needs[LogicalId("B")] == {"C"}
    assert plan.changes[LogicalId("C")].is_stateful
    assert plan.changes[LogicalId("C")].route is Route.NATIVE


def test_once_everything_is_known_a_change_is_definite() -> None:
    arn = {"Endpoint": "arn:q-1", "Protocol": "sqs", "TopicArn": "arn:t"}
    plan = planned(
        {"A": a_queue(QueueName="new"), "B": subscription(Endpoint={"Fn::GetAtt": ["A", "Arn"]})},
        record({"A": queue(QueueName="old"), "B": ResourceRecord(PhysicalId("s"), SUBSCRIPTION, arn)}),
    )
    change = plan.changes[LogicalId("B")]
    assert reconsider(change, arn, native=native).action is Action.KEEP
    assert reconsider(change, {**arn, "Endpoint": "arn:q-2"}, native=native).action is Action.REPLACE


def test_intents_name_every_physical_identity() -> None:
    gone = dataclasses.replace(queue(), physical_id=PhysicalId("q-0"))
    plan = planned(
        {"New": a_queue(), "Other": a_queue(QueueName="new"), "Same": a_queue(), "Update": a_queue(DelaySeconds=1)},
        record(
            {"Other": queue(QueueName="old"), "Same": queue(), "Update": queue(), "Gone": queue()},
            pending_deletes=(PendingDelete(LogicalId("Gone"), gone),),
        ),
    )
    identity = RunIdentity(RunId("20261130T180219995Z-0a1b2c3d"), STACK, EAST, "deploy", "me", "cloudformation", "0")
    intents = intents_for(plan, identity, account="123456789012", region=EAST, native=native)
    assert [(one.logical_id, one.kind, one.physical_id) for one in intents] == [
        ("New", IntentKind.CREATE, None),
        ("Other", IntentKind.CREATE, None),
        ("Other", IntentKind.DELETE, "q-1"),
        ("Update", IntentKind.UPDATE, "q-1"),
        ("Gone", IntentKind.DELETE, "q-1"),
        ("Gone", IntentKind.DELETE, "q-0"),
    ]
    assert intents[0].name is not None
    assert intents[0].name.startswith("Shop-New-")
    assert intents[1].name == "new"
    assert intents[0].token != intents[1].token
    assert intents[0].tags["stackhold:logical-id"] == "New"
    assert summarise(plan) == {
        "create": 1,
        "update": 1,
        "replace": 1,
        "may replace": 0,
        "delete": 2,
        "retain": 0,
        "record only": 0,
        "wait": 0,
        "keep": 1,
    }
    assert short_steps(plan) == (
        {"logicalId": "New", "type": QUEUE, "operation": "create"},
        {"logicalId": "Other", "type": QUEUE, "operation": "replace"},
        {"logicalId": "Update", "type": QUEUE, "operation": "update"},
        {"logicalId": "Gone", "type": QUEUE, "operation": "delete"},
        {"logicalId": "Gone", "type": QUEUE, "operation": "delete"},
    )


@st.composite
def chains(draw: st.DrawFn) -> dict[str, Any]:
    """Queues of which each may depend on some that come before it."""
    count = draw(st.integers(1, 8))
    resources: dict[str, Any] = {}
    for at in range(count):
        earlier = draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set()
        resources[f"R{at}"] = {**a_queue(), "DependsOn": [f"R{one}" for one in sorted(earlier)]}
    return resources


@given(resources=chains(), recorded=st.sets(st.integers(0, 9)))
def test_a_plan_has_one_change_per_resource_and_respects_its_edges(
    resources: dict[str, Any], recorded: set[int]
) -> None:
    before = record({f"R{one}": queue() for one in recorded})
    plan = planned(resources, before)
    assert plan.changes.keys() == resources.keys() | before.resources.keys()
    order = list(plan.changes)
    for logical_id, needs in plan.needs.items():
        assert all(order.index(need) < order.index(logical_id) for need in needs)
    for logical_id, change in plan.changes.items():
        wanted, there = logical_id in resources, logical_id in before.resources
        expected = {(True, False): Action.CREATE, (True, True): Action.KEEP, (False, True): Action.DELETE}
        assert change.action is expected[wanted, there]


CASES = os.environ.get("STACKHOLD_CASES")


@pytest.mark.skipif(not CASES, reason="STACKHOLD_CASES does not point to the shared cases")
def test_a_stack_that_cdkd_deployed_needs_nothing() -> None:
    folder = Path(CASES or "")
    recorded = decode_record((folder / "records/serverless.state.json").read_bytes(), key="state.json")
    template = parse_template(folder / "serverless.template.json")
    inputs = Inputs(
        stack=StackName("Serverless"),
        region=EAST,
        account="000000000000",
        partition="aws",
        url_suffix="amazonaws.com",
        stack_id="arn:aws:cloudformation:us-east-1:000000000000:stack/Serverless/1",
    )
    desired = evaluate(template, inputs)

    def attribute(logical_id: LogicalId, _: ResourceRecord, name: str) -> Any:
        pytest.fail(f"{logical_id}.{name} is not in the record")

    plan = plan_deploy(desired, recorded, needs=edges(desired), attribute=attribute, native=handler_for)
    assert {name: change.changes for name, change in plan.changes.items() if change.action is not Action.KEEP} == {}
    assert plan.is_empty
    assert set(actions(plan_destroy(recorded, native=handler_for)).values()) == {Action.DELETE}


def exported(name: Any, value: Any = "v") -> dict[str, Any]:
    return {"Value": value, "Export": {"Name": name}}


def test_a_plan_knows_what_the_stack_exports_as_far_as_that_is_known() -> None:
    new = {"Fn::GetAtt": ["A", "Arn"]}
    outputs = {"Known": exported("k"), "Value": exported("v", new), "Name": exported(new), "Plain": {"Value": "p"}}
    plan = planned({"A": a_queue()}, Outputs=outputs)
    assert (plan.exports, plan.exports_known) == ({"k": "v", "v": UNKNOWN}, False)
    plan = planned({"A": a_queue()}, record({"A": queue()}), Outputs=outputs)
    assert (plan.exports, plan.exports_known) == ({"k": "v", "v": "arn:q-1", "arn:q-1": "v"}, True)


def test_an_export_name_that_is_empty_or_given_twice_is_refused() -> None:
    arn = {"Fn::GetAtt": ["A", "Arn"]}
    recorded = record({"A": queue()})
    with pytest.raises(InputError, match="'arn:q-1' of output B is another output's too"):
        planned({"A": a_queue()}, recorded, Outputs={"A": exported(arn), "B": exported(arn)})
    with pytest.raises(InputError, match="the export name is empty"):
        planned({"A": a_queue()}, Outputs={"B": exported("")})
