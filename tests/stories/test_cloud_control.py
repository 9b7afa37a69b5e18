"""Types without a native handler go through Cloud Control, beside native ones in the same stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.testing.cloud_control_server import CloudControlServer, ServedType, cloud_control_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

STREAM, TOPIC = "AWS::Kinesis::Stream", "AWS::SNS::Topic"
TYPES = {
    STREAM: ServedType(
        identifier=("Name",),
        made_up={"Arn": "arn:aws:kinesis:us-east-1:000000000000:stream/{id}"},
        create_only=frozenset({"Name"}),
        defaults={"RetentionPeriodHours": 24},
    ),
    TOPIC: ServedType(identifier=("TopicArn",), create_only=frozenset({"TopicName"})),
}
FLOW = """
Resources:
  Clicks:
    Type: AWS::Kinesis::Stream
    Properties: {Name: clicks-1, ShardCount: 1}
  Address:
    Type: AWS::SSM::Parameter
    Properties: {Name: address, Type: String, Value: !GetAtt Clicks.Arn}
"""
GROWN = FLOW.replace("ShardCount: 1", "ShardCount: 2")


@pytest.fixture
def served(scene: Scene) -> Iterator[CloudControlServer]:
    """A Cloud Control endpoint that all commands of the scene use."""
    with cloud_control_server(TYPES, polls=1) as server:
        scene.environment |= server.environment()
        yield server


def streams(server: CloudControlServer) -> dict[str, dict[str, Any]]:
    """The streams that exist, by name."""
    return {name: state for (kind, name), state in server.model.resources.items() if kind == STREAM}


def asked(server: CloudControlServer, operation: str) -> list[dict[str, Any]]:
    """The calls of an operation."""
    return [body for name, body in server.model.calls if name == operation]


def address(scene: Scene) -> str:
    """The value of the native parameter that refers to the stream."""
    return str(scene.client("ssm").get_parameter(Name="address")["Parameter"]["Value"])


def test_a_type_without_a_native_handler_lives_beside_native_ones(scene: Scene, served: CloudControlServer) -> None:
    scene.write("flow.yaml", FLOW)
    assert "[through Cloud Control]" in scene.run("diff", "flow.yaml").out
    scene.run("deploy", "flow.yaml")
    assert streams(served)["clicks-1"]["ShardCount"] == 1
    assert address(scene) == "arn:aws:kinesis:us-east-1:000000000000:stream/clicks-1"
    clicks = scene.record("flow")["resources"]["Clicks"]
    assert (clicks["physicalId"], clicks["provisionedBy"]) == ("clicks-1", "cc-api")
    assert clicks["observedProperties"]["RetentionPeriodHours"] == 24
    assert scene.run("deploy", "flow.yaml", "--json").json()["isEmpty"] is True
    assert scene.run("drift", "flow", "--json").json()["isDrifted"] is False

    scene.write("flow.yaml", GROWN)
    done = scene.run("deploy", "flow.yaml", "--json").json()
    assert done["counts"] == {"update": 1}
    [update] = asked(served, "UpdateResource")
    [change] = json.loads(update["PatchDocument"])
    assert (change["path"], change["value"]) == ("/ShardCount", 2)
    assert streams(served)["clicks-1"]["ShardCount"] == 2

    served.model.resources[STREAM, "clicks-1"]["RetentionPeriodHours"] = 48
    found = scene.run("drift", "flow", "--json", expect=1).json()
    [drifted] = [each for each in found["resources"] if each["differences"]]
    assert drifted["logicalId"] == "Clicks"
    assert drifted["differences"] == [{"path": "RetentionPeriodHours", "recorded": 24, "observed": 48}]

    assert scene.run("destroy", "flow", "--yes", "--json").json()["counts"] == {"delete": 2}
    assert not streams(served)
    assert not scene.client("ssm").describe_parameters()["Parameters"]


def test_a_replacement_through_cloud_control_makes_the_new_one_first(scene: Scene, served: CloudControlServer) -> None:
    scene.write("flow.yaml", FLOW)
    scene.run("deploy", "flow.yaml")
    scene.write("flow.yaml", FLOW.replace("clicks-1", "clicks-2"))
    scene.run("deploy", "flow.yaml", "--yes")
    order = [name for name, _ in served.model.calls if name in ("CreateResource", "DeleteResource")]
    assert order == ["CreateResource", "CreateResource", "DeleteResource"]
    assert set(streams(served)) == {"clicks-2"}
    assert address(scene).endswith("/clicks-2")


def test_an_update_through_cloud_control_is_taken_back_when_another_resource_fails(
    scene: Scene, served: CloudControlServer
) -> None:
    scene.write("flow.yaml", FLOW)
    scene.run("deploy", "flow.yaml")
    before = scene.record("flow")["resources"]
    scene.client("ssm").put_parameter(Name="taken", Type="String", Value="x")
    taken = "  Taken:\n    Type: AWS::SSM::Parameter\n    DependsOn: Clicks\n"
    scene.write("flow.yaml", GROWN + taken + "    Properties: {Name: taken, Type: String, Value: y}\n")
    failed = scene.run("deploy", "flow.yaml", "--json", expect=1).json()
    fates = {each["logicalId"]: each["wentBack"] for each in failed["resources"]}
    assert fates == {"Clicks": "restored", "Taken": "untouched"}
    assert len(asked(served, "UpdateResource")) == 2
    assert streams(served)["clicks-1"]["ShardCount"] == 1
    assert scene.record("flow")["resources"] == before


def test_a_create_that_cloud_control_fails_leaves_nothing(scene: Scene, served: CloudControlServer) -> None:
    served.model.fail_next("CreateResource", "ServiceLimitExceeded", "no more streams")
    scene.write("flow.yaml", FLOW)
    failed = scene.run("deploy", "flow.yaml", expect=1)
    assert "no more streams" in failed.err
    assert not streams(served)
    assert not scene.file("flow").exists()


def test_a_record_that_calls_such_a_type_native_is_changed_and_deleted_through_cloud_control(
    scene: Scene, served: CloudControlServer
) -> None:
    scene.write("flow.yaml", FLOW)
    scene.run("deploy", "flow.yaml")
    written_natively(scene)
    scene.write("flow.yaml", GROWN)
    scene.run("deploy", "flow.yaml")
    assert streams(served)["clicks-1"]["ShardCount"] == 2
    assert scene.record("flow")["resources"]["Clicks"]["provisionedBy"] == "cc-api"
    written_natively(scene)
    assert scene.run("drift", "flow", "--json").json()["isDrifted"] is False
    scene.run("destroy", "flow", "--yes")
    assert not streams(served)


def written_natively(scene: Scene) -> None:
    """As another tool, which has a handler of its own for the type, would have recorded it."""
    path = scene.file("flow")
    record = json.loads(path.read_text())
    record["resources"]["Clicks"]["provisionedBy"] = "sdk"
    path.write_text(json.dumps(record))


def test_a_property_that_the_native_handler_does_not_send_moves_the_resource_to_cloud_control(
    scene: Scene, served: CloudControlServer
) -> None:
    news = "Resources:\n  News:\n    Type: AWS::SNS::Topic\n    Properties:\n      TopicName: news\n"
    scene.write("news.yaml", news)
    scene.run("deploy", "news.yaml")
    topic = scene.record("news")["resources"]["News"]
    arn = topic["physicalId"]
    assert topic["provisionedBy"] == "sdk"
    assert not asked(served, "CreateResource")

    served.model.resources[TOPIC, arn] = {"TopicArn": arn, "TopicName": "news"}
    scene.write("news.yaml", news + "      Subscription: [{Protocol: sms, Endpoint: '+4930123456'}]\n")
    assert "[through Cloud Control]" in scene.run("diff", "news.yaml").out
    scene.run("deploy", "news.yaml")
    [update] = asked(served, "UpdateResource")
    assert update["Identifier"] == arn
    assert served.model.resources[TOPIC, arn]["Subscription"] == [{"Protocol": "sms", "Endpoint": "+4930123456"}]
    moved = scene.record("news")["resources"]["News"]
    assert (moved["physicalId"], moved["provisionedBy"]) == (arn, "cc-api")
    assert scene.run("deploy", "news.yaml", "--json").json()["isEmpty"] is True
    scene.run("destroy", "news", "--yes")
    assert [body["Identifier"] for body in asked(served, "DeleteResource")] == [arn]
    assert not scene.file("news").exists()


def test_a_type_that_nobody_can_make_is_refused_before_the_first_call(scene: Scene, served: CloudControlServer) -> None:
    scene.write("flow.yaml", FLOW + "  Build: {Type: 'AWS::CodeBuild::Project', Properties: {}}\n")
    refused = scene.run("deploy", "flow.yaml", expect=1)
    assert "Build" in refused.err
    assert "AWS::CodeBuild::Project" in refused.err
    assert not served.model.calls
    assert not scene.file("flow").exists()
