"""EventBridge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

QUEUE = "arn:aws:sqs:us-east-1:000000000000:inbox"
OTHER_QUEUE = "arn:aws:sqs:us-east-1:000000000000:outbox"


def _rules(client: Client, _: Given) -> int:
    return len(client("events").list_rules()["Rules"])


def _rules_on_bus(client: Client, _: Given) -> int:
    return len(client("events").list_rules(EventBusName="busy")["Rules"])


def _bus(client: Client) -> Given:
    client("events").create_event_bus(Name="busy")
    return {}


def _tags(client: Client, arn: str, _: Given) -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in client("events").list_tags_for_resource(ResourceARN=arn)["Tags"]}


SAMPLES = (
    Sample(
        type="AWS::Events::Rule",
        name="schedule",
        properties=lambda _: {
            "Description": "Now and then",
            "ScheduleExpression": "rate(1 hour)",
            "State": "DISABLED",
            "Tags": [{"Key": "colour", "Value": "red"}],
            "Targets": [{"Id": "One", "Arn": QUEUE, "Input": '{"a":1}'}, {"Id": "Two", "Arn": OTHER_QUEUE}],
        },
        update=lambda _: {
            "Description": "Less often",
            "ScheduleExpression": "rate(2 hours)",
            "State": "ENABLED",
            "Tags": [{"Key": "size", "Value": "l"}],
            "Targets": [{"Id": "One", "Arn": QUEUE, "Input": '{"a":2}'}, {"Id": "Three", "Arn": OTHER_QUEUE}],
        },
        remove=("Description", "State", "Tags", "Targets"),
        count=_rules,
        attributes=frozenset({"Arn", "RuleName"}),
        ref=lambda arn, _: arn.rpartition("/")[2],
        tags=_tags,
    ),
    Sample(
        type="AWS::Events::Rule",
        name="pattern",
        properties=lambda _: {
            "EventBusName": "busy",
            "EventPattern": {"source": ["shop"], "detail": {"kind": ["order"]}},
            "Targets": [{"Id": "One", "Arn": QUEUE, "InputTransformer": {"InputTemplate": '"order"'}}],
        },
        update=lambda _: {"EventPattern": {"source": ["shop"], "detail-type": ["refund"]}},
        prepare=_bus,
        count=_rules_on_bus,
        attributes=frozenset({"Arn"}),
        ref=lambda arn, _: "busy|" + arn.rpartition("/")[2],
        tags=_tags,
    ),
)
