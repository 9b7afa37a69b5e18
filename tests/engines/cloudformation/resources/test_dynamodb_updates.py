"""Which `UpdateTable` comes next."""

from __future__ import annotations

from typing import Any

import pytest

from stackhold.engines.cloudformation.resources.dynamodb_updates import next_update


def _index(name: str, key: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


def _texts(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


TABLE: dict[str, Any] = {
    "TableName": "t",
    "TableStatus": "ACTIVE",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": _texts("id", "a"),
    "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
    "GlobalSecondaryIndexes": [_index("by-a", "a")],
}


def test_a_table_that_is_as_wanted_needs_no_call() -> None:
    targets = {
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [_index("by-a", "a")],
        "DeletionProtectionEnabled": False,
        "SSESpecification": {"SSEEnabled": False},
        "StreamSpecification": None,
        "TableClass": "STANDARD",
    }
    assert next_update(TABLE, targets) is None


def test_what_was_never_declared_is_left_alone() -> None:
    assert next_update({**TABLE, "DeletionProtectionEnabled": True}, {}) is None


def test_an_index_goes_before_another_comes() -> None:
    targets = {"GlobalSecondaryIndexes": [_index("by-b", "b")], "AttributeDefinitions": _texts("id", "b")}
    assert next_update(TABLE, targets) == {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-a"}}]}
    rest = {**TABLE, "GlobalSecondaryIndexes": []}
    assert next_update(rest, targets) == {
        "AttributeDefinitions": _texts("b", "id"),
        "GlobalSecondaryIndexUpdates": [{"Create": _index("by-b", "b")}],
    }


def test_indexes_come_one_at_a_time() -> None:
    targets = {
        "GlobalSecondaryIndexes": [_index("by-a", "a"), _index("by-b", "b"), _index("by-c", "c")],
        "AttributeDefinitions": _texts("id", "a", "b", "c"),
    }
    params = next_update(TABLE, targets)
    assert params is not None
    assert params["GlobalSecondaryIndexUpdates"] == [{"Create": _index("by-b", "b")}]
    assert params["AttributeDefinitions"] == _texts("a", "b", "id")


def test_an_index_with_another_key_is_made_anew() -> None:
    targets = {"GlobalSecondaryIndexes": [_index("by-a", "b")]}
    assert next_update(TABLE, targets) == {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-a"}}]}


def test_a_switch_to_provisioned_sets_throughput_of_table_and_indexes_at_once() -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 2}
    targets = {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units,
        "GlobalSecondaryIndexes": [{**_index("by-a", "a"), "ProvisionedThroughput": units}],
    }
    assert next_update(TABLE, targets) == {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": units,
        "GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "by-a", "ProvisionedThroughput": units}}],
    }


def test_a_stream_of_another_kind_is_turned_off_first() -> None:
    table = {**TABLE, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
    targets = {"StreamSpecification": {"StreamViewType": "NEW_IMAGE"}}
    assert next_update(table, targets) == {"StreamSpecification": {"StreamEnabled": False}}
    assert next_update(TABLE, targets) == {
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    }


@pytest.mark.parametrize("key", ["arn:aws:kms:us-east-1:1:key/k-1", "k-1", None])
def test_the_same_key_by_arn_or_id_needs_no_call(key: str | None) -> None:
    table = {**TABLE, "SSEDescription": {"Status": "ENABLED", "KMSMasterKeyArn": "arn:aws:kms:us-east-1:1:key/k-1"}}
    wanted = {"SSEEnabled": True} if key is None else {"SSEEnabled": True, "KMSMasterKeyId": key}
    assert next_update(table, {"SSESpecification": wanted}) is None


def test_limits_that_are_taken_out_become_none_at_all() -> None:
    table = {**TABLE, "OnDemandThroughput": {"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 5}}
    none = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    assert next_update(table, {"OnDemandThroughput": None}) == {"OnDemandThroughput": none}
