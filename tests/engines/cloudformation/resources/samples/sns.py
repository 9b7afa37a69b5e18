"""SNS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _topics(client: Client, _: Given) -> int:
    return len(client("sns").list_topics()["Topics"])


def _tags(client: Client, arn: str, _: Given) -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in client("sns").list_tags_for_resource(ResourceArn=arn)["Tags"]}


def _topic_and_queue(client: Client) -> Given:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"topic": client("sns").create_topic(Name="news")["TopicArn"], "queue": queue}


def _subscriptions(client: Client, _: Given) -> int:
    return len(client("sns").list_subscriptions()["Subscriptions"])


TOPIC_ATTRIBUTES = frozenset({"TopicArn", "TopicName"})

SAMPLES = (
    Sample(
        type="AWS::SNS::Topic",
        properties=lambda _: {"DisplayName": "News", "Tags": [{"Key": "colour", "Value": "red"}]},
        update=lambda _: {"DisplayName": "Other news", "Tags": [{"Key": "size", "Value": "l"}]},
        remove=("DisplayName", "Tags"),
        count=_topics,
        attributes=TOPIC_ATTRIBUTES,
        tags=_tags,
    ),
    Sample(
        type="AWS::SNS::Topic",
        name="fifo",
        properties=lambda _: {"FifoTopic": True, "TopicName": "orders.fifo", "ContentBasedDeduplication": True},
        update=lambda _: {"DisplayName": "Orders"},
        count=_topics,
        attributes=TOPIC_ATTRIBUTES,
        tags=_tags,
    ),
    Sample(
        type="AWS::SNS::Subscription",
        properties=lambda given: {
            "TopicArn": given["topic"],
            "Protocol": "sqs",
            "Endpoint": given["queue"],
            "FilterPolicy": {"kind": ["a"]},
        },
        update=lambda _: {"RawMessageDelivery": True, "FilterPolicy": {"kind": ["b"]}},
        remove=("RawMessageDelivery", "FilterPolicy"),
        prepare=_topic_and_queue,
        count=_subscriptions,
        attributes=frozenset({"Arn"}),
    ),
)
