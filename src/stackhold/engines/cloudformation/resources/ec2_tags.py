"""Tags of EC2 resources: in the create call for every type that has them, two calls for a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.resources import tags

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.resources.handler import Context, Want
    from stackhold.engines.cloudformation.values import Props


def specification(want: Want, resource_type: str) -> list[dict[str, Any]]:
    """`TagSpecifications` of a create call: the stack's tags, the resource's own and the ownership tags."""
    return [{"ResourceType": resource_type, "Tags": tags.as_list(tags.for_create(want))}]


def update(ctx: Context, resource_id: str, old: Props, want: Want) -> None:
    """From the recorded tags to the wanted ones; ownership tags stay."""
    change = tags.change(old.get("Tags"), tags.of_template(want))
    if change.put:
        ctx.aws.call("ec2", "CreateTags", {"Resources": [resource_id], "Tags": tags.as_list(change.put)})
    if change.remove:
        gone = [{"Key": key} for key in change.remove]
        ctx.aws.call("ec2", "DeleteTags", {"Resources": [resource_id], "Tags": gone})
