"""What a create does when something is there already, or when its answer is lost."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.errors import AwsError, OutcomeUnknown
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.engines.cloudformation.resources.conftest import World

    from stackhold.engines.cloudformation.resources.handler import Context, Handler
    from stackhold.model.ids import Region
    from stackhold.ports.aws import Aws

pytestmark = pytest.mark.emulator

KEY = {
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class WatchedAws:
    """An `Aws` that counts calls and can lose the answers of one operation after they were carried out."""

    def __init__(self, aws: Aws, *, loses: str = "") -> None:
        self._aws = aws
        self._loses = loses
        self.calls: Counter[str] = Counter()
        self.never_again: set[str] = set()

    @property
    def region(self) -> Region:
        return self._aws.region

    @property
    def partition(self) -> str:
        return self._aws.partition

    def account(self) -> str:
        return self._aws.account()

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        self.calls[operation] += 1
        if resend is Resend.NEVER:
            self.never_again.add(operation)
        answer = self._aws.call(service, operation, params, resend=resend)
        if operation == self._loses:
            raise OutcomeUnknown(service=service, operation=operation, reason="cut")
        return answer

    def guarded(self, check: Callable[[], None]) -> Aws:
        """Itself: a handler never asks for this."""
        return self

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for page in self._aws.pages(service, operation, params):
            self.calls[operation] += 1
            yield page


def _handler(type_name: str) -> Handler:
    handler = handler_for(TypeName(type_name))
    assert handler is not None
    return handler


def _watched(world: World, *, loses: str = "") -> tuple[WatchedAws, Context]:
    aws = WatchedAws(world.context.aws, loses=loses)
    return aws, dataclasses.replace(world.context, aws=aws)


FOREIGN: list[Any] = [
    pytest.param(
        "AWS::SQS::Queue",
        {"QueueName": "taken"},
        lambda world: world.client("sqs").create_queue(QueueName="taken"),
        id="queue",
    ),
    pytest.param(
        "AWS::SNS::Topic",
        {"TopicName": "taken"},
        lambda world: world.client("sns").create_topic(Name="taken"),
        id="topic",
    ),
    pytest.param(
        "AWS::SSM::Parameter",
        {"Name": "taken", "Type": "String", "Value": "b"},
        lambda world: world.client("ssm").put_parameter(Name="taken", Type="String", Value="a"),
        id="parameter",
    ),
    pytest.param(
        "AWS::Logs::LogGroup",
        {"LogGroupName": "taken"},
        lambda world: world.client("logs").create_log_group(logGroupName="taken"),
        id="log group",
    ),
    pytest.param(
        "AWS::S3::Bucket",
        {"BucketName": "taken"},
        lambda world: world.client("s3").create_bucket(Bucket="taken"),
        id="bucket",
    ),
    pytest.param(
        "AWS::DynamoDB::Table",
        {"TableName": "taken", **KEY},
        lambda world: world.client("dynamodb").create_table(TableName="taken", **KEY),
        id="table",
    ),
]


@pytest.mark.parametrize(("type_name", "properties", "make"), FOREIGN)
def test_a_foreign_resource_of_that_name_is_refused_with_a_way_out(
    world: World, type_name: str, properties: dict[str, Any], make: Callable[[World], Any]
) -> None:
    make(world)
    with pytest.raises(AwsError) as refused:
        _handler(type_name).create(world.context, world.want(properties, name="taken"))
    assert "taken" in refused.value.message
    assert "import" in refused.value.hint


@pytest.mark.parametrize(
    ("type_name", "properties"),
    [
        ("AWS::SSM::Parameter", {"Type": "String", "Value": "b"}),
        ("AWS::Logs::LogGroup", {}),
        ("AWS::DynamoDB::Table", KEY),
    ],
)
def test_a_generated_name_that_another_run_holds_is_not_taken_on(
    world: World, type_name: str, properties: dict[str, Any]
) -> None:
    handler = _handler(type_name)
    handler.create(world.context, world.want(properties, name="ours", run="run-1"))
    with pytest.raises(AwsError):
        handler.create(world.context, world.want(properties, name="ours", run="run-2"))


def test_an_api_whose_answer_was_lost_is_found_by_its_tags(world: World) -> None:
    _, context = _watched(world, loses="CreateApi")
    handler = _handler("AWS::ApiGatewayV2::Api")
    properties = {"Name": "shop", "ProtocolType": "HTTP"}
    world.client("apigatewayv2").create_api(Name="shop", ProtocolType="HTTP")
    made = handler.create(context, world.want(properties, name=""))
    apis = world.client("apigatewayv2").get_apis()["Items"]
    assert len(apis) == 2
    (ours,) = [api["ApiId"] for api in apis if "stackhold:run" in api.get("Tags", {})]
    assert made.physical_id == ours


@pytest.mark.parametrize(
    ("type_name", "operation"), [("AWS::SQS::Queue", "CreateQueue"), ("AWS::SNS::Topic", "CreateTopic")]
)
def test_a_queue_or_topic_whose_answer_was_lost_is_found_by_its_name(
    world: World, type_name: str, operation: str
) -> None:
    handler = _handler(type_name)
    _, context = _watched(world, loses=operation)
    noted: list[PhysicalId] = []
    context = dataclasses.replace(context, note=noted.append)
    made = handler.create(context, world.want({}, name="lost-thing"))
    assert made.physical_id.endswith("lost-thing")
    assert noted == [made.physical_id]
    assert handler.read(world.context, made.physical_id, {}) is not None


@pytest.mark.parametrize(
    ("type_name", "properties", "stops_at"),
    [
        ("AWS::S3::Bucket", {"VersioningConfiguration": {"Status": "Enabled"}}, "PutBucketVersioning"),
        ("AWS::Logs::LogGroup", {"RetentionInDays": 7}, "PutRetentionPolicy"),
        (
            "AWS::DynamoDB::Table",
            {**KEY, "TimeToLiveSpecification": {"AttributeName": "t", "Enabled": True}},
            "UpdateTimeToLive",
        ),
    ],
)
def test_a_create_that_stops_half_way_has_said_what_it_made(
    world: World, type_name: str, properties: dict[str, Any], stops_at: str
) -> None:
    handler = _handler(type_name)
    _, context = _watched(world, loses=stops_at)
    noted: list[PhysicalId] = []
    context = dataclasses.replace(context, note=noted.append)
    with pytest.raises(OutcomeUnknown):
        handler.create(context, world.want(properties, name="half-thing"))
    assert noted == ["half-thing"]
    again = handler.create(world.context, world.want(properties, name="half-thing"))
    seen = handler.read(world.context, again.physical_id, properties)
    assert seen is not None
    assert {name: seen.properties[name] for name in properties} == properties


def test_an_integration_whose_answer_was_lost_stays_unknown(world: World) -> None:
    api = world.client("apigatewayv2").create_api(Name="shop", ProtocolType="HTTP")["ApiId"]
    aws, context = _watched(world, loses="CreateIntegration")
    properties = {"ApiId": api, "IntegrationType": "AWS_PROXY", "PayloadFormatVersion": "2.0"}
    with pytest.raises(OutcomeUnknown):
        _handler("AWS::ApiGatewayV2::Integration").create(context, world.want(properties, name=""))
    assert aws.calls["CreateIntegration"] == 1
    assert aws.never_again == {"CreateIntegration"}


def test_a_route_whose_answer_was_lost_is_found_by_its_key(world: World) -> None:
    api = world.client("apigatewayv2").create_api(Name="shop", ProtocolType="HTTP")["ApiId"]
    _, context = _watched(world, loses="CreateRoute")
    properties = {"ApiId": api, "RouteKey": "ANY /"}
    made = _handler("AWS::ApiGatewayV2::Route").create(context, world.want(properties, name=""))
    (route,) = world.client("apigatewayv2").get_routes(ApiId=api)["Items"]
    assert made.physical_id == route["RouteId"]


def test_a_bucket_with_objects_is_refused_and_kept(world: World) -> None:
    handler = _handler("AWS::S3::Bucket")
    made = handler.create(world.context, world.want({}, name="full-bucket"))
    world.client("s3").put_object(Bucket="full-bucket", Key="a", Body=b"b")
    with pytest.raises(AwsError, match="still holds objects") as refused:
        handler.delete(world.context, made.physical_id, {})
    assert refused.value.code == "BucketNotEmpty"
    assert "aws s3 rm" in refused.value.hint
    assert handler.read(world.context, made.physical_id, {}) is not None


BUCKET = {
    "BucketEncryption": {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
    },
    "PublicAccessBlockConfiguration": {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    },
}
COSTS = [
    pytest.param("AWS::S3::Bucket", BUCKET, 3, 4, id="bucket"),
    pytest.param("AWS::DynamoDB::Table", KEY, 1, 0, id="table"),
    pytest.param("AWS::SQS::Queue", {"VisibilityTimeout": 60}, 1, 1, id="queue"),
    pytest.param("AWS::SNS::Topic", {}, 1, 1, id="topic"),
    pytest.param("AWS::SSM::Parameter", {"Type": "String", "Value": "a"}, 1, 0, id="parameter"),
    pytest.param("AWS::Logs::LogGroup", {"RetentionInDays": 7}, 2, 0, id="log group"),
]


@pytest.mark.parametrize(("type_name", "properties", "creates", "reads"), COSTS)
def test_a_create_and_its_baseline_cost_no_more_calls_than_they_must(
    world: World, type_name: str, properties: dict[str, Any], creates: int, reads: int
) -> None:
    aws, context = _watched(world)
    handler = _handler(type_name)
    made = handler.create(context, world.want(properties, name="cheap-thing"))
    assert aws.calls.total() == creates
    if made.observed is None:
        handler.read_many(context, {made.physical_id: properties})
    assert aws.calls.total() == creates + reads


@pytest.mark.parametrize(
    ("type_name", "properties", "reads"),
    [
        ("AWS::SSM::Parameter", {"Type": "String", "Value": "a"}, 3),
        ("AWS::Logs::LogGroup", {}, 1),
        ("AWS::ApiGatewayV2::Api", {"Name": "x", "ProtocolType": "HTTP"}, 1),
    ],
)
def test_many_of_a_type_are_read_with_few_calls(
    world: World, type_name: str, properties: dict[str, Any], reads: int
) -> None:
    handler = _handler(type_name)
    wanted = {}
    for number in range(12):
        want = dataclasses.replace(
            world.want(properties, name=f"thing-{number:02}"), logical_id=LogicalId(f"Thing{number}")
        )
        wanted[handler.create(world.context, want).physical_id] = properties
    wanted[PhysicalId("thing-gone")] = properties
    aws, context = _watched(world)
    seen = handler.read_many(context, wanted)
    assert len(seen) == 12
    assert aws.calls.total() <= reads
    (first, *_) = wanted
    alone = handler.read(world.context, first, properties)
    assert alone is not None
    assert alone.properties == seen[first].properties


def test_integrations_and_routes_of_one_api_are_read_with_one_list_each(world: World) -> None:
    gateway = world.client("apigatewayv2")
    api = gateway.create_api(Name="shop", ProtocolType="HTTP")["ApiId"]
    route = _handler("AWS::ApiGatewayV2::Route")
    wanted = {}
    for path in ("a", "b", "c"):
        properties = {"ApiId": api, "RouteKey": f"GET /{path}"}
        wanted[route.create(world.context, world.want(properties, name="")).physical_id] = properties
    aws, context = _watched(world)
    assert route.read_many(context, wanted).keys() == wanted.keys()
    assert aws.calls == {"GetRoutes": 1}


def test_log_groups_among_many_others_are_read_one_by_one(world: World) -> None:
    logs = world.client("logs")
    for number in range(120):
        logs.create_log_group(logGroupName=f"a{number:03}")
    aws, context = _watched(world)
    wanted: dict[PhysicalId, dict[str, Any]] = {PhysicalId("a000"): {}, PhysicalId("a119"): {}}
    assert _handler("AWS::Logs::LogGroup").read_many(context, wanted).keys() == wanted.keys()
    assert aws.calls.total() <= 5


def test_a_parameters_tags_and_value_change_without_another_create(world: World) -> None:
    handler = _handler("AWS::SSM::Parameter")
    old = {"Type": "String", "Value": "a", "Tags": {"x": "1"}}
    made = handler.create(world.context, world.want(old, name="p"))
    aws, context = _watched(world)
    handler.update(context, made.physical_id, old, world.want({**old, "Tags": {"y": "2"}}, name="p"))
    assert aws.calls == {"AddTagsToResource": 1, "RemoveTagsFromResource": 1}
