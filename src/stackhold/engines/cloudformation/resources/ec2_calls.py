"""What the EC2 handlers have in common: bulk reads, deletes of what may be gone, calls right after a create.

A describe call is given a filter rather than ids, since one unknown id would fail it for all; servers that do not
know a filter answer with everything, so that every answer is matched again by id.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.names import RUN_TAG
from stackhold.engines.cloudformation.resources import finding
from stackhold.engines.cloudformation.resources.polling import wait_visible
from stackhold.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost
    from stackhold.model.ids import PhysicalId

OTHER_REQUEST: Final = "IdempotentParameterMismatch"
"""A token that was sent before, with other parameters."""
_VALUES_PER_FILTER: Final = 200


def describe(
    ctx: Context,
    operation: str,
    member: str,
    *,
    filters: Mapping[str, Iterable[str]],
    parameter: str = "Filters",
    by_pages: bool = True,
) -> list[dict[str, Any]]:
    """All items of `member` that a describe call gives for these filters; the first may hold any number of values."""
    (first, values), *others = [(name, sorted(set(wanted))) for name, wanted in filters.items()]
    found: list[dict[str, Any]] = []
    for start in range(0, len(values), _VALUES_PER_FILTER):
        chunk = [(first, values[start : start + _VALUES_PER_FILTER]), *others]
        params = {parameter: [{"Name": name, "Values": wanted} for name, wanted in chunk]}
        answers = ctx.aws.pages("ec2", operation, params) if by_pages else [ctx.aws.call("ec2", operation, params)]
        found += [item for answer in answers for item in answer.get(member) or ()]
    return found


def describe_by_id(
    ctx: Context,
    operation: str,
    member: str,
    *,
    key: str,
    filter_name: str,
    ids: Iterable[str],
    parameter: str = "Filters",
    by_pages: bool = True,
) -> dict[str, dict[str, Any]]:
    """The items with these ids, by id; those that do not exist are left out."""
    wanted = set(ids)
    found = describe(ctx, operation, member, filters={filter_name: wanted}, parameter=parameter, by_pages=by_pages)
    return {item[key]: item for item in found if item.get(key) in wanted}


def find_tagged(
    ctx: Context,
    lost: Lost,
    operation: str,
    member: str,
    *,
    key: str,
    gone: Iterable[str] = (),
    parameter: str = "Filters",
    by_pages: bool = True,
) -> PhysicalId | None:
    """What carries our tags; those in a state of `gone` are only still listed."""
    run = lost.tags.get(RUN_TAG, "")
    found = describe(ctx, operation, member, filters={f"tag:{RUN_TAG}": [run]}, parameter=parameter, by_pages=by_pages)
    ended = frozenset(gone)
    return finding.tagged(lost, (item for item in found if str(item.get("State")).lower() not in ended), key=key)


def call_unless_gone(ctx: Context, operation: str, params: Mapping[str, Any], *, gone: Iterable[str]) -> None:
    """A delete or detach that succeeds when what it names does not exist."""
    try:
        ctx.aws.call("ec2", operation, params)
    except AwsError as error:
        if error.code not in gone:
            raise


def call_on_new(ctx: Context, operation: str, params: Mapping[str, Any], *, unknown: str) -> dict[str, Any]:
    """A call on a resource that was made a moment ago and may not be known everywhere yet."""
    return wait_visible(ctx, lambda: ctx.aws.call("ec2", operation, params), codes=(unknown,))


def association_state(entry: Mapping[str, Any], key: str) -> str:
    """The state of a range's association with a VPC or subnet; servers that tell none mean `associated`."""
    return str((entry.get(key) or {}).get("State", "associated"))


def create_once(ctx: Context, operation: str, params: Mapping[str, Any], *, token: str) -> dict[str, Any]:
    """A create under a token. One that AWS knows from another request, before the template was changed, is of no use:
    what that request made has been looked for by its tags, so this one goes under a token of its own."""
    try:
        return ctx.aws.call("ec2", operation, {**params, "ClientToken": token})
    except AwsError as error:
        if error.code != OTHER_REQUEST:
            raise
    other = hashlib.sha256(f"{token} once more".encode()).hexdigest()[: len(token)]
    return ctx.aws.call("ec2", operation, {**params, "ClientToken": other})


def ipv6_blocks(item: Mapping[str, Any]) -> list[str]:
    """The IPv6 ranges that a VPC or subnet has or is getting."""
    return [
        entry["Ipv6CidrBlock"]
        for entry in item.get("Ipv6CidrBlockAssociationSet") or ()
        if association_state(entry, "Ipv6CidrBlockState") in ("associated", "associating")
    ]
