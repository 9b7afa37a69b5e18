"""Rules: names that are taken, entries that fail inside a successful answer, buses, ECS targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engines.cloudformation.resources.samples.events import OTHER_QUEUE, QUEUE
from tests.engines.cloudformation.resources.scripted import scripted, wanted

from stackhold.engines.cloudformation.resources.events import Rule
from stackhold.engines.cloudformation.resources.events_targets import from_api, to_api
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId
from stackhold.testing.scripted_aws import ScriptedAws, refused

if TYPE_CHECKING:
    from tests.engines.cloudformation.resources.conftest import World

BOTH = pytest.mark.parametrize("world", ["ministack", "moto"], indirect=True)
ARN = PhysicalId("arn:aws:events:us-east-1:000000000000:rule/busy/ours")


@pytest.mark.emulator
@BOTH
def test_a_rule_that_another_made_is_not_overwritten(world: World) -> None:
    events = world.client("events")
    events.put_rule(Name="taken", ScheduleExpression="rate(9 hours)")
    want = world.want({"Name": "taken", "ScheduleExpression": "rate(1 hour)"}, name="taken")
    with pytest.raises(AwsError, match="taken exists already"):
        Rule().create(world.context, want)
    assert events.describe_rule(Name="taken")["ScheduleExpression"] == "rate(9 hours)"


@pytest.mark.emulator
def test_a_rule_with_a_chosen_name_that_is_ours_is_taken_on(world: World) -> None:
    properties = {
        "Name": "mine",
        "ScheduleExpression": "rate(1 hour)",
        "Targets": [{"Id": "One", "Arn": QUEUE}],
    }
    first = Rule().create(world.context, world.want(properties, name="mine"))
    world.client("events").remove_targets(Rule="mine", Ids=["One"])
    again = Rule().create(world.context, world.want(properties, name="mine"))
    assert again.physical_id == first.physical_id
    assert len(world.client("events").list_targets_by_rule(Rule="mine")["Targets"]) == 1


def test_a_target_that_fails_in_a_successful_answer_is_an_error() -> None:
    failed = {"TargetId": "One", "ErrorCode": "ConcurrentModificationException", "ErrorMessage": "wait"}
    aws = ScriptedAws({"PutTargets": [{"FailedEntryCount": 1, "FailedEntries": [failed]}]})
    context = scripted(aws)
    new = {"ScheduleExpression": "rate(1 hour)", "Targets": [{"Id": "One", "Arn": QUEUE}]}
    with pytest.raises(AwsError) as caught:
        Rule().update(context, ARN, {"ScheduleExpression": "rate(1 hour)"}, wanted(new))
    assert caught.value.code == "ConcurrentModificationException"


def test_targets_that_the_record_does_not_know_go_before_the_rule() -> None:
    aws = ScriptedAws(
        {
            "RemoveTargets": [{"FailedEntryCount": 0}],
            "DeleteRule": [refused("DeleteRule", "ValidationException"), {}],
            "ListTargetsByRule": [{"Targets": [{"Id": "Foreign", "Arn": OTHER_QUEUE}]}],
        }
    )
    Rule().delete(scripted(aws), ARN, {"Targets": [{"Id": "One", "Arn": QUEUE}]})
    assert [params["Ids"] for params in aws.asked("RemoveTargets")] == [["One"], ["Foreign"]]
    assert aws.asked("DeleteRule")[0] == {"Name": "ours", "EventBusName": "busy"}


@pytest.mark.parametrize(
    ("physical_id", "properties", "ref"),
    [
        ("arn:aws:events:us-east-1:000000000000:rule/ours", {}, "ours"),
        ("arn:aws:events:us-east-1:000000000000:rule/aws.partner/x/y/ours", {}, "aws.partner/x/y|ours"),
        ("ours", {}, "ours"),
        ("ours", {"EventBusName": "arn:aws:events:us-east-1:000000000000:event-bus/busy"}, "busy|ours"),
        ("busy|ours", {}, "busy|ours"),
    ],
)
def test_ref_names_the_bus_where_it_is_not_the_default_one(
    physical_id: str, properties: dict[str, Any], ref: str
) -> None:
    assert Rule().ref(PhysicalId(physical_id), properties, {}) == ref


def test_the_same_bus_written_otherwise_is_no_other_rule() -> None:
    arn = "arn:aws:events:us-east-1:000000000000:event-bus/default"
    changed = frozenset({"EventBusName"})
    assert Rule().replaces({}, {"EventBusName": arn}, changed) is False
    assert Rule().replaces({}, {"EventBusName": "busy"}, changed) is True
    assert Rule().replaces({}, {"Description": "x"}, frozenset({"Description"})) is None


def test_ecs_parameters_come_back_as_they_went() -> None:
    target = {
        "Id": "Task",
        "Arn": "arn:aws:ecs:us-east-1:000000000000:cluster/c",
        "EcsParameters": {
            "TaskDefinitionArn": "arn:aws:ecs:us-east-1:000000000000:task-definition/t",
            "NetworkConfiguration": {"AwsVpcConfiguration": {"Subnets": ["subnet-1"], "AssignPublicIp": "DISABLED"}},
            "CapacityProviderStrategy": [{"CapacityProvider": "FARGATE", "Weight": 1}],
            "PlacementConstraints": [{"Type": "distinctInstance"}],
            "PlacementStrategies": [{"Type": "spread", "Field": "host"}],
            "TagList": [{"Key": "a", "Value": "b"}],
        },
    }
    sent = to_api(target)
    assert sent["EcsParameters"]["NetworkConfiguration"].keys() == {"awsvpcConfiguration"}
    assert sent["EcsParameters"]["PlacementStrategy"] == [{"type": "spread", "field": "host"}]
    assert from_api(sent) == target
