"""Which account, partition and region a record's resources are in, and the refusal to work on it from anywhere else.

With the credentials of another account every recorded resource looks deleted: a destroy would then delete the record
and leave the resources. The stack id names the place; a record without one is told from the ARNs that AWS gave for
its resources, as long as these agree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from stackhold.engines.cloudformation.reading import refuse_other_region
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.record import ResourceRecord, StateRecord
    from stackhold.ports.aws import Aws

_ARN: Final = re.compile(r"arn:(aws[a-z-]*):[a-z0-9-]+:([a-z0-9-]*):([0-9]{12}):.+", re.DOTALL)


class Place(NamedTuple):
    """Where resources are."""

    partition: str
    account: str


def place_of_record(record: StateRecord) -> Place | None:
    """Where the record's resources are; None when it does not say, or says two things."""
    if (stated := _place(record.stack_id or "", record.region)) is not None:
        return stated
    entries = [*record.resources.values(), *(pending.resource for pending in record.pending_deletes)]
    found = {place for entry in entries for place in _places(entry, record.region)}
    return found.pop() if len(found) == 1 else None


def refuse_elsewhere(aws: Aws, record: StateRecord | None, *, account: str | None = None) -> None:
    """A stack is worked on in its own account and region only. `account` is asked for when it is not given."""
    if record is None:
        return
    refuse_other_region(aws, record.region)
    place = place_of_record(record)
    if place is None:
        return
    ours = account if account is not None else aws.account()
    if place.account != ours:
        raise InputError(
            f"{record.stack} ({record.region}) is in account {place.account}, and these credentials are for {ours}",
            hint=f"Nothing was changed. Name the credentials of account {place.account} with --profile or AWS_PROFILE; "
            "another account's stack needs a store, or a name, of its own.",
        )
    if place.partition != aws.partition:
        raise InputError(
            f"{record.stack} ({record.region}) is in partition {place.partition}, and the calls would go to "
            f"{aws.partition}",
            hint="Nothing was changed. Name the credentials and the region that it was deployed with.",
        )


def _places(entry: ResourceRecord, region: str) -> Iterator[Place]:
    """The places that the ids and attributes of one resource name. A property may name anybody's."""
    for name, value in (("Arn", entry.physical_id), *entry.attributes.items()):
        if isinstance(value, str) and name.endswith(("Arn", "Id")) and (place := _place(value, region)) is not None:
            yield place


def _place(arn: str, region: str) -> Place | None:
    match = _ARN.fullmatch(arn)
    if match is None or match[2] not in ("", region):
        return None
    return Place(match[1], match[3])
