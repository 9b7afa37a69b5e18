"""When a resource fails: what the run made goes, what it updated is as before, and it is said what became of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.inventory import inventory

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SHOP = """
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties: {QueueName: orders-1, VisibilityTimeout: 30, Tags: [{Key: team, Value: one}]}
  Address:
    Type: AWS::SSM::Parameter
    Properties: {Name: address, Type: String, Value: !GetAtt Orders.Arn}
"""
UPDATED = SHOP.replace("VisibilityTimeout: 30", "VisibilityTimeout: 99").replace("Value: one", "Value: two")
LATE = """
  Early:
    Type: AWS::SNS::Topic
    DependsOn: Address
  Late:
    Type: AWS::Logs::LogGroup
    DependsOn: Early
    Properties: {LogGroupName: late}
"""
REFUSAL = Answer(400, "LimitExceededException", "too many")


@pytest.fixture
def proxy(scene: Scene) -> Iterator[SlowProxy]:
    """A proxy that every command goes through and that refuses to make the log group."""
    with SlowProxy(scene.emulator.url) as proxy:
        scene.environment["AWS_ENDPOINT_URL"] = proxy.url
        proxy.add(Rule(service="logs", operation="CreateLogGroup", answer=REFUSAL))
        yield proxy


def queue(scene: Scene) -> dict[str, Any]:
    """What AWS has of the only queue."""
    sqs = scene.client("sqs")
    [url] = sqs.list_queues()["QueueUrls"]
    own = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "QueueArn"])["Attributes"]
    tags = sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
    return {**own, "team": tags.get("team")}


def journal(scene: Scene) -> dict[str, Any]:
    """The rollback journal as it lies in the store."""
    found: dict[str, Any] = json.loads(scene.file("shop", "rollback-journal.json").read_text())
    return found


def test_a_first_deploy_that_fails_leaves_nothing_and_no_record(scene: Scene, proxy: SlowProxy) -> None:
    before = inventory(scene.client)
    scene.write("shop.yaml", SHOP + LATE)
    failed = scene.run("deploy", "shop.yaml", expect=1)
    assert "Late: " in failed.err
    assert "too many" in failed.err
    told = failed.err[failed.err.index("What became of each resource:") :]
    assert [line.split()[0] for line in told.splitlines()[1:5]] == ["Orders", "Address", "Early", "Late"]
    assert told.count("deleted again") == 3
    assert "it never came to be" in told
    assert inventory(scene.client) == before
    assert not [path for path in scene.file("shop").parent.iterdir() if path.suffix == ".json"]
    [run] = scene.run("events", "shop", "--json").json()["runs"]
    assert (run["outcome"], run["exitCode"]) == ("failed", 1)
    assert "no stack shop in us-east-1 in " in scene.run("destroy", "shop", "--yes", expect=1).err

    proxy.reset()
    scene.run("deploy", "shop.yaml")
    assert set(scene.record("shop")["resources"]) == {"Orders", "Address", "Early", "Late"}


def test_what_a_failed_deploy_made_goes_and_what_it_updated_gets_its_recorded_properties_back(
    scene: Scene, proxy: SlowProxy
) -> None:
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    before, was = scene.record("shop"), inventory(scene.client)
    had = queue(scene)
    scene.write("shop.yaml", UPDATED + LATE)
    failed = scene.run("deploy", "shop.yaml", "--json", expect=1).json()
    assert failed["outcome"] == "failed"
    fates = {each["logicalId"]: each["wentBack"] for each in failed["resources"]}
    assert fates == {"Orders": "restored", "Early": "deleted", "Late": "untouched"}
    assert proxy.count(service="sqs", operation="SetQueueAttributes") == 2
    assert queue(scene) == had
    assert inventory(scene.client) == was
    after = scene.record("shop")
    assert after["resources"] == before["resources"]
    assert after["outputs"] == before["outputs"]
    assert scene.lock("shop") is None
    assert not scene.file("shop", "rollback-journal.json").exists()

    scene.write("shop.yaml", SHOP)
    assert scene.run("deploy", "shop.yaml", "--json").json()["isEmpty"] is True
    assert scene.run("drift", "shop", "--json").json()["isDrifted"] is False


def test_a_failed_deploy_says_to_people_what_became_of_each_resource(scene: Scene, proxy: SlowProxy) -> None:
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    scene.write("shop.yaml", UPDATED + LATE)
    failed = scene.run("deploy", "shop.yaml", expect=1)
    told = [line.strip() for line in failed.err[failed.err.index("What became of each resource:") :].splitlines()]
    [orders] = [line for line in told if line.startswith("Orders ")]
    [early] = [line for line in told if line.startswith("Early ")]
    assert "update: its recorded properties are back" in orders
    assert "create: deleted again" in early
    assert told[-1] == "What this run did was undone. Mend the cause and run the same deploy again."


def test_a_replacement_that_goes_back_leaves_the_old_one_and_what_refers_to_it(scene: Scene, proxy: SlowProxy) -> None:
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    before, had = scene.record("shop"), queue(scene)
    scene.write("shop.yaml", SHOP.replace("orders-1", "orders-2") + LATE)
    failed = scene.run("deploy", "shop.yaml", "--yes", "--json", expect=1).json()
    fates = {each["logicalId"]: each["wentBack"] for each in failed["resources"]}
    assert fates == {"Orders": "restored", "Address": "restored", "Early": "deleted", "Late": "untouched"}
    assert queue(scene) == had
    value = scene.client("ssm").get_parameter(Name="address")["Parameter"]["Value"]
    assert value == had["QueueArn"]
    after = scene.record("shop")
    assert after["resources"] == before["resources"]
    assert not after.get("pendingDeletes")


def test_a_value_that_the_service_refuses_goes_back_too(scene: Scene) -> None:
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    before, had = scene.record("shop")["resources"], queue(scene)
    scene.client("logs").create_log_group(logGroupName="late")
    scene.write("shop.yaml", UPDATED + LATE)
    failed = scene.run("deploy", "shop.yaml", expect=1)
    assert "Late: " in failed.err
    assert queue(scene) == had
    assert scene.record("shop")["resources"] == before
    [kept] = scene.client("logs").describe_log_groups()["logGroups"]
    assert kept["logGroupName"] == "late"


def test_without_going_back_what_was_done_stays_recorded_and_journalled(scene: Scene, proxy: SlowProxy) -> None:
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    scene.write("shop.yaml", UPDATED + LATE)
    failed = scene.run("deploy", "shop.yaml", "--no-rollback", expect=2)
    assert "too many" in failed.err
    assert "Run the same deploy again" in failed.err
    assert queue(scene)["VisibilityTimeout"] == "99"
    record = scene.record("shop")["resources"]
    assert set(record) == {"Orders", "Address", "Early"}
    assert record["Orders"]["properties"]["VisibilityTimeout"] == 99
    assert scene.lock("shop") is None
    [segment] = journal(scene)["segments"]
    assert {each["logicalId"]: each["changeType"] for each in segment["operations"]} == {
        "Orders": "UPDATE",
        "Early": "CREATE",
    }
    [updated] = [each for each in segment["operations"] if each["logicalId"] == "Orders"]
    assert updated["previousState"]["properties"]["VisibilityTimeout"] == 30

    proxy.reset()
    going_on = scene.run("deploy", "shop.yaml", "--json").json()
    assert going_on["counts"] == {"create": 1}
    assert not scene.file("shop", "rollback-journal.json").exists()


def test_what_cannot_be_undone_is_named_and_kept_in_the_record(scene: Scene, proxy: SlowProxy) -> None:
    proxy.add(Rule(service="sns", operation="DeleteTopic", answer=Answer(403, "AuthorizationError", "not you")))
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    more = "\n  Other: {Type: 'AWS::SSM::Parameter', Properties: {Name: other, Type: String, Value: x}}"
    scene.write("shop.yaml", UPDATED + LATE.replace("DependsOn: Early", "DependsOn: [Early, Other]") + more)
    failed = scene.run("deploy", "shop.yaml", expect=2)
    told = failed.err[failed.err.index("What became of each resource:") :].splitlines()
    lines = {line.split()[0]: line for line in told[1:] if line.startswith("  ")}
    assert "could not be undone" in lines["Early"]
    assert "not you" in lines["Early"]
    assert "waits for Early" in lines["Orders"]
    assert "deleted again" in lines["Other"]
    assert set(scene.record("shop")["resources"]) == {"Orders", "Address", "Early"}
    assert len(scene.client("sns").list_topics()["Topics"]) == 1
    assert "Early" in {each["logicalId"] for each in journal(scene)["segments"][-1]["operations"]}
    proxy.reset()
    assert scene.run("deploy", "shop.yaml", "--json").json()["counts"] == {"create": 2}
    assert len(scene.client("sns").list_topics()["Topics"]) == 1
