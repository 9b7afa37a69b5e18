"""Calls that the handlers of API Gateway V2 share: reads of one and of many, deletes, tags.

"Not found" is an answer here, not an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.resources import tags
from stackhold.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Want
    from stackhold.engines.cloudformation.values import Props

GONE: Final = "NotFoundException"
EXISTS: Final = "ConflictException"
_LOOKS: Final = 4
_LOOK_PAUSE_MS: Final = 2_000


def with_gone_keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """`new`, and an empty value for each key that was there before."""
    emptied = {key: {} if isinstance(value, dict) else "" for key, value in old.items() if key not in new}
    return {**new, **emptied}


def retag(ctx: Context, path: str, old: Props, want: Want) -> None:
    """Put and take off tags of what has this path in the gateway's ARNs."""
    arn = f"arn:{ctx.partition}:apigateway:{ctx.region}::{path}"
    change = tags.change(old.get("Tags"), tags.of_template(want))
    if change.put:
        ctx.aws.call("apigatewayv2", "TagResource", {"ResourceArn": arn, "Tags": dict(change.put)})
    if change.remove:
        ctx.aws.call("apigatewayv2", "UntagResource", {"ResourceArn": arn, "TagKeys": list(change.remove)})


def items(ctx: Context, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that a list call gives, page by page."""
    for page in ctx.aws.pages("apigatewayv2", operation, params):
        yield from page.get("Items", [])


def children(ctx: Context, operation: str, api_id: str) -> list[dict[str, Any]]:
    """What a list call gives of an API's children; nothing when the API is gone."""
    try:
        return list(items(ctx, operation, {"ApiId": api_id}))
    except AwsError as refused:
        if refused.code == GONE:
            return []
        raise


def look(ctx: Context, find: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Look several times: what was sent may land a little later."""
    for attempt in range(_LOOKS):
        found = find()
        if found is not None:
            return found
        if attempt < _LOOKS - 1:
            ctx.wait(_LOOK_PAUSE_MS)
    return None


def get(ctx: Context, operation: str, **params: str) -> dict[str, Any] | None:
    """A read of one thing; None when it does not exist."""
    try:
        return ctx.aws.call("apigatewayv2", operation, params)
    except AwsError as refused:
        if refused.code == GONE:
            return None
        raise


def delete(ctx: Context, operation: str, **params: str) -> None:
    """A delete; what is gone already is no error."""
    try:
        ctx.aws.call("apigatewayv2", operation, params)
    except AwsError as refused:
        if refused.code != GONE:
            raise
