"""What AWS refuses is refused, also where the emulator takes it."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from stackhold.testing.proxy import SlowProxy
from stackhold.testing.strict_aws import strict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.emulator


@pytest.fixture
def proxy(ministack: Emulator) -> Iterator[SlowProxy]:
    with SlowProxy(ministack.url) as made:
        strict(made, ministack)
        yield made


def client(proxy: SlowProxy, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=proxy.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


def zipped() -> bytes:
    """The smallest function."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return 1")
    return packed.getvalue()


def refused(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_second_route_of_a_key_is_refused(proxy: SlowProxy) -> None:
    apis = client(proxy, "apigatewayv2")
    api = apis.create_api(Name="one", ProtocolType="HTTP")["ApiId"]
    apis.create_route(ApiId=api, RouteKey="GET /a")
    with pytest.raises(ClientError) as error:
        apis.create_route(ApiId=api, RouteKey="GET /a")
    assert refused(error) == "ConflictException"
    apis.create_route(ApiId=api, RouteKey="GET /b")


def test_a_second_stage_of_a_name_is_refused(proxy: SlowProxy) -> None:
    apis = client(proxy, "apigatewayv2")
    api = apis.create_api(Name="one", ProtocolType="HTTP")["ApiId"]
    apis.create_stage(ApiId=api, StageName="$default")
    with pytest.raises(ClientError) as error:
        apis.create_stage(ApiId=api, StageName="$default")
    assert refused(error) == "ConflictException"


def test_a_second_mapping_of_a_source_to_a_function_is_refused(proxy: SlowProxy) -> None:
    queues, functions, roles = client(proxy, "sqs"), client(proxy, "lambda"), client(proxy, "iam")
    url = queues.create_queue(QueueName="q")["QueueUrl"]
    source = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    role = roles.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    functions.create_function(
        FunctionName="f", Role=role, Runtime="python3.12", Handler="index.handler", Code={"ZipFile": zipped()}
    )
    functions.create_event_source_mapping(FunctionName="f", EventSourceArn=source)
    with pytest.raises(ClientError) as error:
        functions.create_event_source_mapping(FunctionName="f", EventSourceArn=source)
    assert refused(error) == "ResourceConflictException"


def test_an_overlapping_subnet_and_a_second_route_to_a_destination_are_refused(proxy: SlowProxy) -> None:
    ec2 = client(proxy, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")
    with pytest.raises(ClientError) as error:
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20")
    assert refused(error) == "InvalidSubnet.Conflict"
    ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.2.0/24")
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    with pytest.raises(ClientError) as error:
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    assert refused(error) == "RouteAlreadyExists"
