"""SQS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _queues(client: Client, _: Given) -> int:
    return len(client("sqs").list_queues().get("QueueUrls", []))


def _tags(client: Client, url: str, _: Given) -> Mapping[str, str]:
    tags: Mapping[str, str] = client("sqs").list_queue_tags(QueueUrl=url).get("Tags", {})
    return tags


def _two_queues(client: Client) -> Given:
    sqs = client("sqs")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("first", "second")]
    return {"first": urls[0], "second": urls[1]}


def _policies(client: Client, given: Given) -> int:
    sqs = client("sqs")
    answer = sqs.get_queue_attributes(QueueUrl=given["first"], AttributeNames=["Policy"])
    return int(bool(answer.get("Attributes", {}).get("Policy")))


def _policy(action: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"Service": "sns.amazonaws.com"}, "Action": action, "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _dead_letter(client: Client) -> Given:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="dead")["QueueUrl"]
    return {"arn": sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]}


QUEUE_ATTRIBUTES = frozenset({"Arn", "QueueUrl", "QueueName"})

SAMPLES = (
    Sample(
        type="AWS::SQS::Queue",
        properties=lambda given: {
            "VisibilityTimeout": 60,
            "MessageRetentionPeriod": 86400,
            "RedrivePolicy": {"deadLetterTargetArn": given["arn"], "maxReceiveCount": 3},
            "Tags": [{"Key": "colour", "Value": "red"}, {"Key": "size", "Value": "l"}],
        },
        update=lambda _: {
            "VisibilityTimeout": 45,
            "ReceiveMessageWaitTimeSeconds": 20,
            "Tags": [{"Key": "colour", "Value": "blue"}],
        },
        remove=("VisibilityTimeout", "ReceiveMessageWaitTimeSeconds", "RedrivePolicy", "Tags"),
        prepare=_dead_letter,
        count=_queues,
        attributes=QUEUE_ATTRIBUTES,
        tags=_tags,
    ),
    Sample(
        type="AWS::SQS::Queue",
        name="fifo",
        properties=lambda _: {
            "FifoQueue": True,
            "QueueName": "orders.fifo",
            "ContentBasedDeduplication": True,
            "DelaySeconds": 5,
        },
        update=lambda _: {"ContentBasedDeduplication": False},
        remove=("DelaySeconds",),
        count=_queues,
        attributes=QUEUE_ATTRIBUTES,
        tags=_tags,
    ),
    Sample(
        type="AWS::SQS::QueuePolicy",
        properties=lambda given: {
            "PolicyDocument": _policy("sqs:SendMessage"),
            "Queues": [given["first"], given["second"]],
        },
        update=lambda given: {"PolicyDocument": _policy("sqs:*"), "Queues": [given["first"]]},
        prepare=_two_queues,
        count=_policies,
        attributes=frozenset({"Id"}),
    ),
)
