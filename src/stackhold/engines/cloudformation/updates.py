"""What a record says of a resource that an unfinished update may have changed in part."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.diff import diff_properties
from stackhold.engines.cloudformation.schema import schema_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.engines.cloudformation.resources.handler import Handler, Seen
    from stackhold.model.record import ResourceRecord


def as_it_is_now(recorded: ResourceRecord, seen: Seen, changed: Iterable[str], *, handler: Handler) -> ResourceRecord:
    """The record with what is there of the properties that were to change.

    What no read shows is recorded no longer, so that the next plan sends it again.
    """
    schema = schema_for(recorded.type)
    hidden = {pointer[0] for pointer in schema.write_only} if schema else set()
    properties = dict(recorded.properties)
    for name in changed:
        if name in hidden or name in handler.write_only or name not in seen.properties:
            properties.pop(name, None)
        elif name not in properties or _differs(recorded, name, seen):
            properties[name] = seen.properties[name]
    return recorded if properties == recorded.properties else dataclasses.replace(recorded, properties=properties)


def _differs(recorded: ResourceRecord, name: str, seen: Seen) -> bool:
    old, new = {name: recorded.properties[name]}, {name: seen.properties[name]}
    return bool(diff_properties(recorded.type, old, new))
