"""Targets of EventBridge rules between template and API: the same shape, but for the ECS parameters' spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_ECS: Final = "EcsParameters"
_VPC: Final = ("AwsVpcConfiguration", "awsvpcConfiguration")
_LOWER_INSIDE: Final = {
    "CapacityProviderStrategy": "CapacityProviderStrategy",
    "PlacementConstraints": "PlacementConstraints",
    "PlacementStrategies": "PlacementStrategy",
}
"""Lists of objects whose keys the API writes with a small first letter, by the template's name."""


def to_api(target: Mapping[str, Any]) -> dict[str, Any]:
    """As PutTargets takes it."""
    if _ECS not in target:
        return dict(target)
    ecs: dict[str, Any] = {}
    for name, value in target[_ECS].items():
        if name in _LOWER_INSIDE:
            ecs[_LOWER_INSIDE[name]] = [{key[0].lower() + key[1:]: item[key] for key in item} for item in value]
        elif name == "NetworkConfiguration":
            ecs[name] = {_VPC[1] if key == _VPC[0] else key: item for key, item in value.items()}
        else:
            ecs["Tags" if name == "TagList" else name] = value
    return {**target, _ECS: ecs}


def from_api(target: Mapping[str, Any]) -> dict[str, Any]:
    """As a template writes it."""
    if _ECS not in target:
        return dict(target)
    names = {api: template for template, api in _LOWER_INSIDE.items()}
    ecs: dict[str, Any] = {}
    for name, value in target[_ECS].items():
        if name in names:
            ecs[names[name]] = [{key[0].upper() + key[1:]: item[key] for key in item} for item in value]
        elif name == "NetworkConfiguration":
            ecs[name] = {_VPC[0] if key == _VPC[1] else key: item for key, item in value.items()}
        else:
            ecs["TagList" if name == "Tags" else name] = value
    return {**target, _ECS: ecs}
