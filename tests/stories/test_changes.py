"""What a changed template does to a deployed stack: update, replace, delete, keep; nothing else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.inventory import inventory

from stackhold.testing.proxy import SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SHOP = """
Resources:
  Orders:
    Type: AWS::SQS::Queue
    Properties: {QueueName: orders-1, VisibilityTimeout: 30}
  Placed:
    Type: AWS::SNS::Topic
    Properties: {DisplayName: placed}
  Audit:
    Type: AWS::Logs::LogGroup
    DeletionPolicy: Retain
    Properties: {LogGroupName: audit, RetentionInDays: 7}
  Scratch:
    Type: AWS::SSM::Parameter
    Properties: {Name: scratch, Type: String, Value: x}
  Address:
    Type: AWS::SSM::Parameter
    Properties: {Name: address, Type: String, Value: !GetAtt Orders.Arn}
  ToOrders:
    Type: AWS::SNS::Subscription
    Properties: {TopicArn: !Ref Placed, Protocol: sqs, Endpoint: !GetAtt Orders.Arn}
Outputs:
  OrdersUrl: {Value: !Ref Orders}
"""
TABLE = """
Resources:
  Customers:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: customers
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: email, AttributeType: S}]
      KeySchema: [{AttributeName: email, KeyType: HASH}]
"""
READS = ("Get", "List", "Describe")


@pytest.fixture
def proxy(scene: Scene) -> Iterator[SlowProxy]:
    """A proxy that the commands of the scene go through, after the first deploy."""
    scene.write("shop.yaml", SHOP)
    scene.run("deploy", "shop.yaml")
    with SlowProxy(scene.emulator.url) as proxy:
        scene.environment["AWS_ENDPOINT_URL"] = proxy.url
        yield proxy


def writes(proxy: SlowProxy) -> list[str]:
    """The calls that changed something, in the order in which they came."""
    return [call.name for call in proxy.calls if not call.named.operation.startswith(READS)]


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    """What was done to which resource."""
    return {each["logicalId"]: each["operation"] for each in document["resources"]}


def attributes(scene: Scene, name: str) -> dict[str, str]:
    """A queue's attributes."""
    sqs = scene.client("sqs")
    found: dict[str, str] = sqs.get_queue_attributes(
        QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], AttributeNames=["All"]
    )["Attributes"]
    return found


def parameter(scene: Scene, name: str) -> str:
    """A parameter's value."""
    return str(scene.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])


def test_an_in_place_change_updates_that_one_resource(scene: Scene, proxy: SlowProxy) -> None:
    before = scene.record("shop")["resources"]
    scene.write("shop.yaml", SHOP.replace("VisibilityTimeout: 30", "VisibilityTimeout: 45"))
    shown = scene.run("diff", "shop.yaml")
    assert "VisibilityTimeout: 30 → 45" in shown.out
    assert not writes(proxy)
    document = scene.run("deploy", "shop.yaml", "--json").json()
    assert outcomes(document) == {"Orders": "update"}
    assert writes(proxy) == ["sqs:SetQueueAttributes"]
    assert attributes(scene, "orders-1")["VisibilityTimeout"] == "45"
    after = scene.record("shop")["resources"]
    assert after["Orders"]["physicalId"] == before["Orders"]["physicalId"]
    assert after["Orders"]["properties"]["VisibilityTimeout"] == 45
    assert {name: each for name, each in after.items() if name != "Orders"} == {
        name: each for name, each in before.items() if name != "Orders"
    }
    assert scene.run("deploy", "shop.yaml", "--json").json()["isEmpty"] is True


def test_a_create_only_change_makes_the_new_one_moves_what_refers_to_it_and_then_deletes_the_old(
    scene: Scene, proxy: SlowProxy
) -> None:
    old = scene.record("shop")["resources"]["Orders"]["physicalId"]
    scene.write("shop.yaml", SHOP.replace("orders-1", "orders-2"))
    shown = scene.run("diff", "shop.yaml").out
    assert "QueueName" in shown
    document = scene.run("deploy", "shop.yaml", "--yes", "--json").json()
    assert outcomes(document) == {"Orders": "delete", "Address": "update", "ToOrders": "delete"}
    order = writes(proxy)
    made, moved, gone = (order.index(name) for name in ("sqs:CreateQueue", "ssm:PutParameter", "sqs:DeleteQueue"))
    assert made < moved < gone
    assert order.index("sns:Subscribe") < order.index("sns:Unsubscribe")
    assert order.index("sns:Unsubscribe") < gone

    new = scene.record("shop")
    assert new["resources"]["Orders"]["physicalId"] != old
    assert new["resources"]["Orders"]["physicalId"].endswith("/orders-2")
    assert new["outputs"]["OrdersUrl"] == new["resources"]["Orders"]["physicalId"]
    assert not new.get("pendingDeletes")
    [url] = scene.client("sqs").list_queues()["QueueUrls"]
    assert url.endswith("/orders-2")
    assert parameter(scene, "address").endswith(":orders-2")
    [subscription] = scene.client("sns").list_subscriptions()["Subscriptions"]
    assert subscription["Endpoint"].endswith(":orders-2")
    assert scene.run("deploy", "shop.yaml", "--json").json()["isEmpty"] is True


def test_a_removed_resource_goes_and_a_retained_one_stays_and_is_named(scene: Scene, proxy: SlowProxy) -> None:
    fewer = SHOP[: SHOP.index("  Audit:")] + SHOP[SHOP.index("  Address:") :]
    scene.write("shop.yaml", fewer)
    planned = scene.run("diff", "shop.yaml", "--json").json()
    assert (planned["counts"]["delete"], planned["counts"]["retain"]) == (1, 1)
    told = scene.run("deploy", "shop.yaml", "--yes")
    assert "Audit" in told.out + told.err
    assert "kept in the cloud (Retain), no longer in the record" in told.out + told.err
    assert writes(proxy) == ["ssm:DeleteParameter"]
    found = inventory(scene.client)
    assert found["log groups"] == ["audit"]
    assert found["parameters"] == ["address"]
    assert set(scene.record("shop")["resources"]) == {"Orders", "Placed", "Address", "ToOrders"}


def test_a_destroy_keeps_and_names_what_is_to_be_retained(scene: Scene, proxy: SlowProxy) -> None:
    told = scene.run("destroy", "shop", "--yes")
    assert "Audit" in told.out + told.err
    found = inventory(scene.client)
    assert found["log groups"] == ["audit"]
    assert not found["queues"] + found["topics"] + found["parameters"] + found["subscriptions"]
    assert proxy.count(service="logs", operation="DeleteLogGroup") == 0
    assert not scene.file("shop").exists()


def test_a_replaced_resource_that_its_policy_keeps_stays_and_is_named(scene: Scene, proxy: SlowProxy) -> None:
    kept = SHOP.replace("orders-1", "orders-2").replace("  Orders:\n", "  Orders:\n    UpdateReplacePolicy: Retain\n")
    scene.write("shop.yaml", kept)
    told = scene.run("deploy", "shop.yaml", "--yes")
    assert "the old one is kept in the cloud" in told.out + told.err
    assert "orders-1" in told.out + told.err
    assert len(scene.client("sqs").list_queues()["QueueUrls"]) == 2
    assert proxy.count(service="sqs", operation="DeleteQueue") == 0


def test_a_change_of_policy_or_order_alone_makes_no_call_and_is_recorded_once(scene: Scene, proxy: SlowProxy) -> None:
    more = SHOP.replace("  Scratch:\n", "  Scratch:\n    DeletionPolicy: Retain\n    DependsOn: Placed\n")
    scene.write("shop.yaml", more)
    scene.run("deploy", "shop.yaml")
    assert not writes(proxy)
    scratch = scene.record("shop")["resources"]["Scratch"]
    assert (scratch["deletionPolicy"], scratch["dependencies"]) == ("Retain", ["Placed"])
    assert scene.run("deploy", "shop.yaml", "--json").json()["isEmpty"] is True


def test_a_replacement_under_the_same_explicit_name_is_refused_until_it_is_asked_for(scene: Scene) -> None:
    scene.write("table.yaml", TABLE)
    scene.run("deploy", "table.yaml")
    scene.write("table.yaml", TABLE.replace("email", "region"))
    with SlowProxy(scene.emulator.url) as proxy:
        scene.environment["AWS_ENDPOINT_URL"] = proxy.url
        refused = scene.run("deploy", "table.yaml", "--yes", expect=1)
        assert "Customers" in refused.err
        assert "--replace Customers" in refused.err
        assert not writes(proxy)
        scene.run("deploy", "table.yaml", "--yes", "--replace", "Customers")
        assert [name for name in writes(proxy) if name.startswith("dynamodb:")] == [
            "dynamodb:DeleteTable",
            "dynamodb:CreateTable",
        ]
        assert scene.run("deploy", "table.yaml", "--json").json()["isEmpty"] is True
    found = scene.client("dynamodb").describe_table(TableName="customers")["Table"]
    assert found["KeySchema"] == [{"AttributeName": "region", "KeyType": "HASH"}]
