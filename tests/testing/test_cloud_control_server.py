"""The test server as boto3 sees it: it answers as AWS documents Cloud Control."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from stackhold.testing.cloud_control_server import CloudControlServer, ServedType, cloud_control_server

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = {
    "AWS::Test::Thing": ServedType(
        identifier=("Name",),
        made_up={"Arn": "arn:{id}"},
        create_only=frozenset({"Name"}),
        write_only=frozenset({"Password"}),
    )
}


@pytest.fixture
def server() -> Iterator[CloudControlServer]:
    with cloud_control_server(TYPES, polls=1) as running:
        yield running


@pytest.fixture
def client(server: CloudControlServer) -> Any:
    return boto3.client(
        "cloudcontrol",
        region_name="us-east-1",
        endpoint_url=server.url,
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )


def create(client: Any, name: str = "a", **more: Any) -> Any:
    desired = json.dumps({"Name": name, "Password": "p", **more.pop("properties", {})})
    return client.create_resource(TypeName="AWS::Test::Thing", DesiredState=desired, **more)["ProgressEvent"]


def finish(client: Any, event: Any) -> Any:
    return client.get_resource_request_status(RequestToken=event["RequestToken"])["ProgressEvent"]


def refused(call: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value.response["Error"]["Code"])


def test_a_request_is_in_progress_and_then_done(client: Any) -> None:
    event = create(client)
    assert (event["OperationStatus"], event["Operation"]) == ("IN_PROGRESS", "CREATE")
    done = finish(client, event)
    assert (done["OperationStatus"], done["Identifier"]) == ("SUCCESS", "a")
    found = client.get_resource(TypeName="AWS::Test::Thing", Identifier="a")["ResourceDescription"]
    assert json.loads(found["Properties"]) == {"Name": "a", "Arn": "arn:a"}


def test_a_name_is_made_up_when_none_is_sent(client: Any) -> None:
    event = client.create_resource(TypeName="AWS::Test::Thing", DesiredState="{}")["ProgressEvent"]
    assert finish(client, event)["Identifier"].startswith("name-")


def test_a_token_stands_for_one_request(client: Any, server: CloudControlServer) -> None:
    first = create(client, ClientToken="t")
    assert create(client, ClientToken="t")["RequestToken"] == first["RequestToken"]
    assert refused(lambda: create(client, "b", ClientToken="t")) == "ClientTokenConflictException"
    finish(client, first)
    server.model.forget_tokens()
    again = create(client, ClientToken="t")
    assert again["RequestToken"] != first["RequestToken"]
    assert finish(client, again)["ErrorCode"] == "AlreadyExists"


def test_one_request_at_a_time_for_one_resource(client: Any, server: CloudControlServer) -> None:
    finish(client, create(client))
    client.delete_resource(TypeName="AWS::Test::Thing", Identifier="a")
    again = lambda: client.delete_resource(TypeName="AWS::Test::Thing", Identifier="a")  # noqa: E731
    assert refused(again) == "ConcurrentOperationException"
    assert server.model.resources == {}


@pytest.mark.parametrize(
    ("patch", "outcome"),
    [
        ([{"op": "add", "path": "/Size", "value": 1}], "SUCCESS"),
        ([{"op": "remove", "path": "/Nothing"}], "InvalidRequest"),
        ([{"op": "replace", "path": "/Name", "value": "b"}], "NotUpdatable"),
        ([{"op": "replace", "path": "/Arn", "value": "b"}], "InvalidRequest"),
    ],
)
def test_a_patch_is_applied_for_real(client: Any, patch: Any, outcome: str) -> None:
    finish(client, create(client))
    event = client.update_resource(TypeName="AWS::Test::Thing", Identifier="a", PatchDocument=json.dumps(patch))[
        "ProgressEvent"
    ]
    done = finish(client, event)
    assert outcome in (done["OperationStatus"], done.get("ErrorCode"))


def test_an_update_forgets_write_only_properties_that_it_does_not_send(client: Any, server: CloudControlServer) -> None:
    finish(client, create(client))
    assert server.model.resources["AWS::Test::Thing", "a"]["Password"] == "p"
    patch = json.dumps([{"op": "add", "path": "/Size", "value": 1}])
    event = client.update_resource(TypeName="AWS::Test::Thing", Identifier="a", PatchDocument=patch)
    finish(client, event["ProgressEvent"])
    assert "Password" not in server.model.resources["AWS::Test::Thing", "a"]


def test_read_only_properties_cannot_be_sent(client: Any) -> None:
    assert finish(client, create(client, properties={"Arn": "x"}))["ErrorCode"] == "InvalidRequest"


def test_a_request_can_be_cancelled(client: Any) -> None:
    event = create(client)
    client.cancel_resource_request(RequestToken=event["RequestToken"])
    assert finish(client, event)["OperationStatus"] == "CANCEL_COMPLETE"


def test_what_is_not_there_is_refused(client: Any) -> None:
    kind = "AWS::Test::Thing"
    assert refused(lambda: client.get_resource(TypeName=kind, Identifier="x")) == "ResourceNotFoundException"
    assert refused(lambda: client.get_resource(TypeName="AWS::No::No", Identifier="x")) == "TypeNotFoundException"
    unknown = lambda: client.get_resource_request_status(RequestToken="x")  # noqa: E731
    assert refused(unknown) == "RequestTokenNotFoundException"
    not_json = lambda: client.create_resource(TypeName=kind, DesiredState="{")  # noqa: E731
    assert refused(not_json) == "InvalidRequestException"
    gone = client.delete_resource(TypeName=kind, Identifier="x")["ProgressEvent"]
    assert finish(client, gone)["ErrorCode"] == "NotFound"
    changed = client.update_resource(TypeName=kind, Identifier="x", PatchDocument="[]")["ProgressEvent"]
    assert finish(client, changed)["ErrorCode"] == "NotFound"


def test_lists_come_in_pages(client: Any) -> None:
    for name in "abc":
        finish(client, create(client, name))
    first = client.list_resources(TypeName="AWS::Test::Thing", MaxResults=2)
    second = client.list_resources(TypeName="AWS::Test::Thing", MaxResults=2, NextToken=first["NextToken"])
    found = [item["Identifier"] for item in first["ResourceDescriptions"] + second["ResourceDescriptions"]]
    assert found == ["a", "b", "c"]
    assert "NextToken" not in second
    create(client, "d")
    wanted = {"Operations": ["CREATE"], "OperationStatuses": ["IN_PROGRESS"]}
    listed = client.list_resource_requests(ResourceRequestStatusFilter=wanted)["ResourceRequestStatusSummaries"]
    assert [event["OperationStatus"] for event in listed] == ["IN_PROGRESS"]


def test_failures_come_on_demand(client: Any, server: CloudControlServer) -> None:
    server.model.refuse_next("CreateResource", "ThrottlingException")
    assert refused(lambda: create(client)) == "ThrottlingException"
    server.model.fail_next("CreateResource", "NotStabilized", "too slow", leaves=True)
    done = finish(client, create(client))
    assert (done["OperationStatus"], done["ErrorCode"], done["StatusMessage"]) == (
        "FAILED",
        "NotStabilized",
        "too slow",
    )
    assert ("AWS::Test::Thing", "a") in server.model.resources
