"""Who carries a resource out: its native handler, or Cloud Control for what that does not send.

A type that neither can serve is refused before the first call. What made a recorded resource keeps it: a physical
id may mean something else on the other route.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.plan import Route
from stackhold.engines.cloudformation.resources.handler import Handler
from stackhold.engines.cloudformation.schema import schema_for, schema_types
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.errors import InputError
from stackhold.model.ids import TypeName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.model.ids import LogicalId
    from stackhold.model.record import ResourceRecord

Native = Callable[[TypeName], Handler | None]
"""Gives the native handler of a type."""


def route_for(
    logical_id: LogicalId,
    type_name: TypeName,
    properties: Iterable[str],
    *,
    native: Native,
    recorded: ResourceRecord | None = None,
) -> Route:
    """The route of a resource with these properties set; raises `InputError` naming what no route can do."""
    if recorded is not None and recorded.type == type_name and _is_cloud_controls(recorded):
        return _cloud_control(logical_id, type_name)
    handler = native(type_name)
    if handler is None:
        return _cloud_control(logical_id, type_name)
    others = sorted(set(properties) - handler.properties)
    if not others:
        return Route.NATIVE
    route = _cloud_control(logical_id, type_name, others)
    if recorded is not None and not _is_known_to_cloud_control(recorded):
        raise InputError(
            f"{logical_id} ({type_name}): {', '.join(others)} can only be sent through Cloud Control, which knows this "
            "resource by another id than the one recorded",
            hint="Leave the property out, or declare the resource under another logical id to have it made anew.",
        )
    return route


def route_of(logical_id: LogicalId, recorded: ResourceRecord, *, native: Native) -> Route:
    """The route on which a recorded resource is deleted; raises `InputError` when there is none."""
    if _is_cloud_controls(recorded):
        return _cloud_control(logical_id, recorded.type)
    if native(recorded.type) is not None:
        return Route.NATIVE
    route = _cloud_control(logical_id, recorded.type)
    if not _is_known_to_cloud_control(recorded):
        raise InputError(
            f"{logical_id} ({recorded.type}) can only be deleted through Cloud Control, which knows it by another id "
            "than the one recorded: it would be taken for gone",
            hint="Delete it with the tool that made it.",
        )
    return route


def is_stateful(type_name: TypeName, route: Route, *, native: Native) -> bool:
    """Whether a resource holds data that its replacement or deletion loses."""
    handler = native(type_name) if route is Route.NATIVE else None
    if handler is None:
        from stackhold.engines.cloudformation.resources.cloud_control import CloudControl

        handler = CloudControl(type_name)
    return handler.is_stateful


def _cloud_control(logical_id: LogicalId, type_name: TypeName, others: Iterable[str] = ()) -> Route:
    schema = schema_for(type_name)
    if schema is not None and schema.has_handlers:
        return Route.CLOUD_CONTROL
    named = ", ".join(others)
    if named:
        raise InputError(f"{logical_id} ({type_name}): {named} is not supported, by Cloud Control neither")
    if schema is None:
        raise InputError(
            f"{logical_id}: the resource type {type_name} is not supported",
            hint=did_you_mean(type_name, schema_types()),
        )
    raise InputError(
        f"{logical_id}: the resource type {type_name} is not supported: it has no native handler, and Cloud Control "
        "cannot make it"
    )


def _is_cloud_controls(recorded: ResourceRecord) -> bool:
    return recorded.provisioned_by == Route.CLOUD_CONTROL.value


def _is_known_to_cloud_control(recorded: ResourceRecord) -> bool:
    """Whether the recorded physical id is, as far as can be told, Cloud Control's identifier too."""
    schema = schema_for(recorded.type)
    if schema is None or len(schema.primary_id) != 1:
        return False
    name = schema.primary_id[0][-1]
    sources = (recorded.attributes, recorded.properties, recorded.observed or {})
    known = [source[name] for source in sources if name in source]
    return not known or recorded.physical_id in known
