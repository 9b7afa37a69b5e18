"""Lambda."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCE = "exports.handler = async (event) => ({ ok: true });"


def _role(client: Client) -> str:
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}
        ],
    }
    made = client("iam").create_role(RoleName="runner", AssumeRolePolicyDocument=json.dumps(trust))
    arn: str = made["Role"]["Arn"]
    return arn


def _functions(client: Client, _: Given) -> int:
    return len(client("lambda").list_functions()["Functions"])


def _function_tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    tags: dict[str, str] = client("lambda").get_function(FunctionName=name)["Tags"]
    return tags


def _archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("index.js", SOURCE)
    return buffer.getvalue()


def _in_bucket(client: Client) -> Given:
    s3 = client("s3")
    s3.create_bucket(Bucket="code")
    for key in ("one.zip", "two.zip"):
        s3.put_object(Bucket="code", Key=key, Body=_archive())
    return {"role": _role(client)}


def _function(client: Client) -> Given:
    role = _role(client)
    made = client("lambda").create_function(
        FunctionName="called", Runtime="nodejs22.x", Handler="index.handler", Role=role, Code={"ZipFile": _archive()}
    )
    queue = client("sqs").create_queue(QueueName="inbox")["QueueUrl"]
    attributes = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    return {"function": made["FunctionArn"], "queue": attributes["QueueArn"]}


def _statements(client: Client, _: Given) -> int:
    functions = client("lambda")
    try:
        policy = functions.get_policy(FunctionName="called")["Policy"]
    except functions.exceptions.ResourceNotFoundException:
        return 0
    return len(json.loads(policy)["Statement"])


def _mappings(client: Client, _: Given) -> int:
    listed: list[dict[str, Any]] = client("lambda").list_event_source_mappings()["EventSourceMappings"]
    return len([mapping for mapping in listed if mapping["State"] != "Deleting"])


def _mapping_tags(client: Client, uuid: str, _: Given) -> Mapping[str, str]:
    functions = client("lambda")
    arn = functions.get_event_source_mapping(UUID=uuid).get("EventSourceMappingArn")
    arn = arn or f"arn:aws:lambda:us-east-1:000000000000:event-source-mapping:{uuid}"
    tags: dict[str, str] = functions.list_tags(Resource=arn)["Tags"]
    return tags


SAMPLES = (
    Sample(
        type="AWS::Lambda::Function",
        name="inline",
        properties=lambda given: {
            "Architectures": ["arm64"],
            "Code": {"ZipFile": SOURCE},
            "Description": "Says ok",
            "Environment": {"Variables": {"STAGE": "test"}},
            "EphemeralStorage": {"Size": 1024},
            "Handler": "index.handler",
            "MemorySize": 256,
            "ReservedConcurrentExecutions": 2,
            "Role": given["role"],
            "Runtime": "nodejs22.x",
            "Tags": [{"Key": "colour", "Value": "red"}],
            "Timeout": 30,
            "TracingConfig": {"Mode": "Active"},
        },
        update=lambda _: {
            "Architectures": ["x86_64"],
            "Code": {"ZipFile": SOURCE + "\n// and no more"},
            "Description": "Says ok, again",
            "Environment": {"Variables": {"STAGE": "other", "MORE": "1"}},
            "MemorySize": 512,
            "ReservedConcurrentExecutions": 1,
            "Tags": [{"Key": "size", "Value": "l"}],
            "Timeout": 10,
        },
        remove=(
            "Architectures",
            "Description",
            "Environment",
            "EphemeralStorage",
            "MemorySize",
            "ReservedConcurrentExecutions",
            "Tags",
            "Timeout",
            "TracingConfig",
        ),
        prepare=lambda client: {"role": _role(client)},
        count=_functions,
        attributes=frozenset({"Arn"}),
        tags=_function_tags,
        blind={"moto": frozenset({"Architectures", "Reset:EphemeralStorage", "Reset:TracingConfig"})},
    ),
    Sample(
        type="AWS::Lambda::Function",
        name="bucket",
        properties=lambda given: {
            "Code": {"S3Bucket": "code", "S3Key": "one.zip"},
            "FunctionName": "from-bucket",
            "Handler": "index.handler",
            "Role": given["role"],
            "Runtime": "nodejs22.x",
        },
        update=lambda _: {"Code": {"S3Bucket": "code", "S3Key": "two.zip"}},
        prepare=_in_bucket,
        count=_functions,
        attributes=frozenset({"Arn"}),
        tags=_function_tags,
    ),
    Sample(
        type="AWS::Lambda::Permission",
        properties=lambda given: {
            "Action": "lambda:InvokeFunction",
            "FunctionName": given["function"],
            "Principal": "events.amazonaws.com",
            "SourceArn": "arn:aws:events:us-east-1:000000000000:rule/some-rule",
        },
        prepare=_function,
        count=_statements,
        attributes=frozenset({"Id"}),
    ),
    Sample(
        type="AWS::Lambda::EventSourceMapping",
        properties=lambda given: {
            "BatchSize": 5,
            "EventSourceArn": given["queue"],
            "FunctionName": "called",
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "MaximumBatchingWindowInSeconds": 1,
            "Tags": [{"Key": "colour", "Value": "red"}],
        },
        update=lambda given: {
            "BatchSize": 2,
            "Enabled": False,
            "FunctionName": given["function"],
            "MaximumBatchingWindowInSeconds": 3,
            "Tags": [{"Key": "size", "Value": "l"}],
        },
        remove=("Enabled", "FunctionResponseTypes", "MaximumBatchingWindowInSeconds", "Tags"),
        prepare=_function,
        count=_mappings,
        attributes=frozenset({"Id", "EventSourceMappingArn"}),
        tags=_mapping_tags,
    ),
)
