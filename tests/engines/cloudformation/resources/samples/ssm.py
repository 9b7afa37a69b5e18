"""SSM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _parameters(client: Client, _: Given) -> int:
    return len(client("ssm").describe_parameters()["Parameters"])


def _tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    answer = client("ssm").list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
    return {tag["Key"]: tag["Value"] for tag in answer["TagList"]}


SAMPLES = (
    Sample(
        type="AWS::SSM::Parameter",
        properties=lambda _: {
            "Type": "String",
            "Value": "one",
            "Description": "A number",
            "Tags": {"colour": "red", "size": "l"},
        },
        update=lambda _: {"Value": "two", "Description": "Another", "Tags": {"colour": "blue"}},
        remove=("Description", "Tags"),
        count=_parameters,
        attributes=frozenset({"Type", "Value"}),
        tags=_tags,
    ),
    Sample(
        type="AWS::SSM::Parameter",
        name="path",
        properties=lambda _: {"Type": "StringList", "Value": "a,b", "Name": "/shop/colours"},
        update=lambda _: {"Value": "a,b,c"},
        count=_parameters,
        attributes=frozenset({"Type", "Value"}),
        tags=_tags,
    ),
)
