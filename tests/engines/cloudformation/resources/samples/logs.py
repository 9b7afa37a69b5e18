"""CloudWatch Logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _groups(client: Client, _: Given) -> int:
    return len(client("logs").describe_log_groups()["logGroups"])


def _tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    logs = client("logs")
    arn = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"][0]["arn"].removesuffix(":*")
    tags: Mapping[str, str] = logs.list_tags_for_resource(resourceArn=arn)["tags"]
    return tags


SAMPLES = (
    Sample(
        type="AWS::Logs::LogGroup",
        properties=lambda _: {"RetentionInDays": 7, "Tags": [{"Key": "colour", "Value": "red"}]},
        update=lambda _: {"RetentionInDays": 30, "Tags": [{"Key": "colour", "Value": "blue"}]},
        remove=("RetentionInDays", "Tags"),
        count=_groups,
        attributes=frozenset({"Arn"}),
        tags=_tags,
    ),
    Sample(
        type="AWS::Logs::LogGroup",
        name="named",
        properties=lambda _: {"LogGroupName": "/shop/web"},
        update=lambda _: {"RetentionInDays": 1},
        count=_groups,
        attributes=frozenset({"Arn"}),
        tags=_tags,
    ),
)
