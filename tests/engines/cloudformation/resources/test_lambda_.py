"""Functions, permissions and mappings where the life of one resource does not reach."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.cloudformation.resources.samples.lambda_ import SOURCE, _function, _role
from tests.engines.cloudformation.resources.scripted import scripted, wanted

from stackhold.engines.cloudformation.resources import lambda_code, lambda_names
from stackhold.engines.cloudformation.resources.handler import Settle
from stackhold.engines.cloudformation.resources.lambda_ import EventSourceMapping, Function, Permission
from stackhold.errors import AwsError, InputError, ResourceFailed
from stackhold.model.ids import PhysicalId
from stackhold.testing.scripted_aws import ScriptedAws, refused

if TYPE_CHECKING:
    from tests.engines.cloudformation.resources.conftest import World

    from stackhold.engines.cloudformation.resources.handler import Made

BOTH = pytest.mark.parametrize("world", ["ministack", "moto"], indirect=True)
ARN = "arn:aws:lambda:us-east-1:000000000000:function:fn"
ACTIVE = {"FunctionName": "fn", "FunctionArn": ARN, "State": "Active", "LastUpdateStatus": "Successful"}
UPDATING = {**ACTIVE, "LastUpdateStatus": "InProgress"}
PENDING = {**ACTIVE, "State": "Pending"}


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.sampled_from(["nodejs22.x", "python3.13", "ruby3.3"]))
def test_equal_source_gives_an_equal_archive_with_one_file(source: str, runtime: str) -> None:
    archive = lambda_code.archive(source, runtime)
    assert archive == lambda_code.archive(source, runtime)
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.namelist() == [lambda_code.inline_file(runtime)]
        assert opened.read(opened.namelist()[0]).decode() == source


def test_source_cannot_be_inlined_for_a_compiled_runtime() -> None:
    with pytest.raises(InputError, match=r"Code\.ZipFile .* java21"):
        lambda_code.archive("class A {}", "java21")


def test_another_language_needs_another_archive_though_the_source_is_the_same() -> None:
    code = {"Code": {"ZipFile": "x = 1"}}
    assert lambda_code.differs({**code, "Runtime": "nodejs22.x"}, {**code, "Runtime": "python3.13"})
    assert not lambda_code.differs({**code, "Runtime": "nodejs20.x"}, {**code, "Runtime": "nodejs22.x"})


@pytest.mark.parametrize(
    ("text", "name", "qualifier"),
    [
        ("fn", "fn", None),
        ("fn:live", "fn", "live"),
        (ARN, "fn", None),
        (f"{ARN}:$LATEST", "fn", "$LATEST"),
        ("000000000000:function:fn:2", "fn", "2"),
        ("function:fn", "fn", None),
    ],
)
def test_every_way_to_write_a_function_is_understood(text: str, name: str, qualifier: str | None) -> None:
    assert lambda_names.parse(text) == (name, qualifier)


def test_a_new_function_becomes_active_before_its_concurrency_is_set() -> None:
    aws = ScriptedAws(
        {
            "CreateFunction": [PENDING],
            "GetFunctionConfiguration": [PENDING, PENDING, ACTIVE],
            "PutFunctionConcurrency": [{}],
        }
    )
    properties = {"Code": {"ZipFile": SOURCE}, "Runtime": "nodejs22.x", "ReservedConcurrentExecutions": 1}
    made = Function().create(scripted(aws), wanted(properties))
    assert made.is_settled
    assert [name for name, _ in aws.calls][-2:] == ["GetFunctionConfiguration", "PutFunctionConcurrency"]


def test_configuration_waits_for_the_code_before_it() -> None:
    aws = ScriptedAws(
        {
            "UpdateFunctionCode": [UPDATING],
            "GetFunctionConfiguration": [UPDATING, ACTIVE],
            "UpdateFunctionConfiguration": [UPDATING],
        }
    )
    old = {"Code": {"ZipFile": SOURCE}, "Runtime": "nodejs22.x", "Timeout": 3, "MemorySize": 256}
    new = {"Code": {"ZipFile": "2"}, "Runtime": "nodejs22.x", "Timeout": 9}
    made = Function().update(scripted(aws), PhysicalId("fn"), old, wanted(new))
    assert [name for name, _ in aws.calls] == [
        "UpdateFunctionCode",
        "GetFunctionConfiguration",
        "GetFunctionConfiguration",
        "UpdateFunctionConfiguration",
    ]
    assert aws.asked("UpdateFunctionConfiguration") == [{"FunctionName": "fn", "Timeout": 9, "MemorySize": 128}]
    assert not made.is_settled


def test_an_update_in_progress_is_waited_out() -> None:
    aws = ScriptedAws(
        {
            "UpdateFunctionConfiguration": [
                refused("UpdateFunctionConfiguration", "ResourceConflictException"),
                ACTIVE,
            ],
            "GetFunctionConfiguration": [UPDATING, ACTIVE],
        }
    )
    code = {"Code": {"ZipFile": SOURCE}, "Runtime": "nodejs22.x"}
    Function().update(scripted(aws), PhysicalId("fn"), code, wanted({**code, "Timeout": 9}))
    assert len(aws.asked("UpdateFunctionConfiguration")) == 2


@pytest.mark.parametrize(
    "configuration",
    [
        {**ACTIVE, "State": "Failed", "StateReasonCode": "InvalidSubnet", "StateReason": "there is none"},
        {
            **ACTIVE,
            "LastUpdateStatus": "Failed",
            "LastUpdateStatusReasonCode": "InvalidSubnet",
            "LastUpdateStatusReason": "there is none",
        },
    ],
)
def test_a_function_that_fails_says_why(configuration: dict[str, Any]) -> None:
    aws = ScriptedAws({"GetFunctionConfiguration": [configuration]})
    with pytest.raises(ResourceFailed, match="InvalidSubnet: there is none"):
        Function().settled(scripted(aws), PhysicalId("fn"), {})


def test_a_function_that_is_coming_up_is_pending() -> None:
    aws = ScriptedAws({"GetFunctionConfiguration": [PENDING, UPDATING, ACTIVE]})
    states = [Function().settled(scripted(aws), PhysicalId("fn"), {})[0] for _ in range(3)]
    assert states == [Settle.PENDING, Settle.PENDING, Settle.DONE]


@pytest.mark.emulator
def test_a_function_that_another_made_is_refused_and_left_alone(world: World) -> None:
    _function(world.client)
    properties = {"Code": {"ZipFile": "2"}, "Handler": "index.handler", "Runtime": "nodejs22.x", "Role": "?"}
    properties["Role"] = world.client("iam").get_role(RoleName="runner")["Role"]["Arn"]
    before = world.client("lambda").get_function(FunctionName="called")["Configuration"]["CodeSha256"]
    with pytest.raises(AwsError) as caught:
        Function().create(world.context, world.want(properties, name="called"))
    assert "import" in caught.value.hint
    assert world.client("lambda").get_function(FunctionName="called")["Configuration"]["CodeSha256"] == before


@pytest.mark.emulator
def test_the_inline_file_is_named_for_the_language(world: World) -> None:
    properties = {
        "Code": {"ZipFile": "def handler(event, context): return 1"},
        "Handler": "index.handler",
        "Runtime": "python3.13",
        "Role": _role(world.client),
    }
    made = Function().create(world.context, world.want(properties, name="py"))
    assert made.attributes["Arn"].endswith(":function:py")
    location = world.client("lambda").get_function(FunctionName="py")["Code"].get("Location", "")
    assert location


def permission(world: World, properties: dict[str, Any], *, name: str) -> Made:
    return Permission().create(world.context, world.want(properties, name=name))


@pytest.mark.emulator
@BOTH
def test_a_permission_can_be_made_beside_the_one_that_it_replaces(world: World) -> None:
    function = _function(world.client)["function"]
    old = {"Action": "lambda:InvokeFunction", "FunctionName": function, "Principal": "sns.amazonaws.com"}
    new = {**old, "Principal": "events.amazonaws.com"}
    permission(world, old, name="old")
    permission(world, new, name="new")
    Permission().delete(world.context, PhysicalId("old"), old)
    many = Permission().read_many(world.context, {PhysicalId("old"): old, PhysicalId("new"): new})
    assert {key: seen.properties["Principal"] for key, seen in many.items()} == {"new": "events.amazonaws.com"}


@pytest.mark.emulator
def test_a_permission_that_is_ours_already_is_taken_on_and_another_refused(world: World) -> None:
    function = _function(world.client)["function"]
    ours = {"Action": "lambda:InvokeFunction", "FunctionName": function, "Principal": "sns.amazonaws.com"}
    assert permission(world, ours, name="same").physical_id == "same"
    assert permission(world, ours, name="same").physical_id == "same"
    with pytest.raises(AwsError, match="same exists already"):
        permission(world, {**ours, "Principal": "events.amazonaws.com"}, name="same")


@pytest.mark.emulator
def test_every_condition_of_a_permission_is_read_back(world: World) -> None:
    function = _function(world.client)["function"]
    properties = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": function,
        "Principal": "s3.amazonaws.com",
        "SourceAccount": "000000000000",
        "SourceArn": "arn:aws:s3:::some-bucket",
    }
    permission(world, properties, name="all")
    seen = Permission().read(world.context, PhysicalId("all"), properties)
    assert seen is not None
    assert seen.properties == properties


def test_an_account_is_read_back_as_it_was_written() -> None:
    statement = {
        "Sid": "s",
        "Action": "lambda:InvokeFunction",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
        "Condition": {
            "StringEquals": {"aws:PrincipalOrgID": "o-1234567890ab", "lambda:FunctionUrlAuthType": "AWS_IAM"},
            "Bool": {"lambda:InvokedViaFunctionUrl": "true"},
        },
    }
    aws = ScriptedAws({"GetPolicy": [{"Policy": json.dumps({"Statement": [statement]})}]})
    properties = {"FunctionName": "fn:live", "Principal": "123456789012"}
    seen = Permission().read(scripted(aws), PhysicalId("s"), properties)
    assert seen is not None
    assert seen.properties == {
        "Action": "lambda:InvokeFunction",
        "FunctionName": "fn:live",
        "FunctionUrlAuthType": "AWS_IAM",
        "InvokedViaFunctionUrl": True,
        "Principal": "123456789012",
        "PrincipalOrgID": "o-1234567890ab",
    }
    assert aws.asked("GetPolicy") == [{"FunctionName": "fn", "Qualifier": "live"}]


def test_a_permission_waits_for_a_busy_function() -> None:
    busy = refused("AddPermission", "ResourceConflictException", reason="an update is in progress")
    no_policy = refused("GetPolicy", "ResourceNotFoundException")
    aws = ScriptedAws({"AddPermission": [busy, busy, {}], "GetPolicy": [no_policy]})
    properties = {"Action": "lambda:InvokeFunction", "FunctionName": "fn", "Principal": "sns.amazonaws.com"}
    assert Permission().create(scripted(aws), wanted(properties, name="sid")).physical_id == "sid"


@pytest.mark.emulator
@BOTH
def test_a_mapping_is_looked_for_before_it_is_made(world: World) -> None:
    there = _function(world.client)
    properties = {"EventSourceArn": there["queue"], "FunctionName": "called"}
    first = EventSourceMapping().create(world.context, world.want(properties, name=""))
    again = EventSourceMapping().create(world.context, world.want(properties, name=""))
    assert again.physical_id == first.physical_id
    with pytest.raises(AwsError) as caught:
        EventSourceMapping().create(world.context, world.want(properties, name="", run="run-2"))
    assert caught.value.code == "ResourceConflictException"


def mapping(state: str) -> dict[str, Any]:
    return {"UUID": "u", "FunctionArn": ARN, "EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:q", "State": state}


def test_a_mapping_that_is_being_deleted_is_waited_out() -> None:
    listed: list[dict[str, Any]] = [{"EventSourceMappings": [mapping("Deleting")]}, {"EventSourceMappings": []}]
    aws = ScriptedAws({"ListEventSourceMappings": listed, "CreateEventSourceMapping": [mapping("Creating")]})
    properties = {"EventSourceArn": mapping("")["EventSourceArn"], "FunctionName": "fn"}
    made = EventSourceMapping().create(scripted(aws), wanted(properties))
    assert not made.is_settled
    assert aws.never_resent == {"CreateEventSourceMapping"}


def test_a_mapping_that_is_being_deleted_is_gone() -> None:
    aws = ScriptedAws({"GetEventSourceMapping": [mapping("Deleting")]})
    assert EventSourceMapping().read(scripted(aws), PhysicalId("u"), {}) is None


def test_a_mapping_is_settled_when_enabled_or_disabled() -> None:
    states = ["Creating", "Enabling", "Enabled", "Disabled"]
    aws = ScriptedAws({"GetEventSourceMapping": [mapping(state) for state in states]})
    seen = [EventSourceMapping().settled(scripted(aws), PhysicalId("u"), {})[0] for _ in states]
    assert seen == [Settle.PENDING, Settle.PENDING, Settle.DONE, Settle.DONE]


def test_what_a_mapping_reads_from_is_never_changed_silently() -> None:
    old = {"FunctionName": "fn", "Topics": ["one"]}
    with pytest.raises(InputError, match="Topics"):
        EventSourceMapping().update(
            scripted(ScriptedAws({})), PhysicalId("u"), old, wanted({"FunctionName": "fn", "Topics": ["two"]})
        )
