"""DynamoDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _tables(client: Client, _: Given) -> int:
    return len(client("dynamodb").list_tables()["TableNames"])


def _tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    dynamodb = client("dynamodb")
    arn = dynamodb.describe_table(TableName=name)["Table"]["TableArn"]
    return {tag["Key"]: tag["Value"] for tag in dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]}


def _index(name: str, key: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


def _texts(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


KEY = [{"AttributeName": "id", "KeyType": "HASH"}]

SAMPLES = (
    Sample(
        type="AWS::DynamoDB::Table",
        properties=lambda _: {
            "AttributeDefinitions": _texts("id", "mail"),
            "KeySchema": KEY,
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [_index("by-mail", "mail")],
            "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
            "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True},
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            "Tags": [{"Key": "colour", "Value": "red"}],
        },
        update=lambda _: {
            "AttributeDefinitions": _texts("city", "id"),
            "GlobalSecondaryIndexes": [_index("by-city", "city")],
            "DeletionProtectionEnabled": True,
            "Tags": [{"Key": "size", "Value": "l"}],
        },
        remove=(
            "StreamSpecification",
            "TimeToLiveSpecification",
            "PointInTimeRecoverySpecification",
            "DeletionProtectionEnabled",
            "Tags",
        ),
        count=_tables,
        attributes=frozenset({"Arn", "TableName"}),
        tags=_tags,
    ),
    Sample(
        type="AWS::DynamoDB::Table",
        name="provisioned",
        properties=lambda _: {
            "TableName": "ledger",
            "AttributeDefinitions": _texts("id"),
            "KeySchema": KEY,
            "ProvisionedThroughput": {"ReadCapacityUnits": 2, "WriteCapacityUnits": 1},
            "SSESpecification": {"SSEEnabled": False},
        },
        update=lambda _: {"ProvisionedThroughput": {"ReadCapacityUnits": 4, "WriteCapacityUnits": 3}},
        count=_tables,
        attributes=frozenset({"Arn", "TableName"}),
        tags=_tags,
    ),
    Sample(
        type="AWS::DynamoDB::Table",
        name="stream",
        properties=lambda _: {
            "AttributeDefinitions": _texts("id"),
            "KeySchema": KEY,
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
            "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True},
        },
        update=lambda _: {
            "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
            "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": False},
        },
        remove=("StreamSpecification",),
        count=_tables,
        attributes=frozenset({"Arn", "TableName", "StreamArn"}),
        tags=_tags,
        emulators=("ministack",),
    ),
)
