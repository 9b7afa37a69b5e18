"""What a plan refuses, since going on would fail half-way or lose data: each with the ways out.

CloudFormation refuses most of these too. The plan says so before the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.template.desired import DesiredResource
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.model.record import ResourceRecord

DELETE = "Delete"
RETAIN = "Retain"
RETAIN_EXCEPT_ON_CREATE = "RetainExceptOnCreate"
SNAPSHOT = "Snapshot"


def effective_policy(type_name: TypeName, policy: str | None, properties: Mapping[str, Any]) -> str:
    """A deletion policy, or what its absence means: a snapshot for database clusters and lone instances."""
    if policy:
        return policy
    is_lone_instance = type_name == "AWS::RDS::DBInstance" and not properties.get("DBClusterIdentifier")
    return SNAPSHOT if type_name == "AWS::RDS::DBCluster" or is_lone_instance else DELETE


def policy_that_keeps(policy: str) -> str | None:
    """The policy if it keeps a resource that is removed or replaced."""
    return policy if policy in (RETAIN, RETAIN_EXCEPT_ON_CREATE) else None


def refuse_snapshot(logical_id: LogicalId, type_name: TypeName, policy: str, *, what: str) -> None:
    """No handler takes snapshots yet, and to delete without one is not what was asked."""
    if policy == SNAPSHOT:
        raise InputError(
            f"{logical_id} ({type_name}) would be {what}, and its policy asks for a snapshot first, which cannot be "
            "taken yet",
            hint="Deploy it with the policy Retain, or with Delete if its data may go, and then repeat this.",
        )


def refuse_other_type(desired: DesiredResource, recorded: ResourceRecord) -> None:
    """A logical id stands for one resource; another type under it is another resource."""
    raise InputError(
        f"{desired.logical_id} is recorded as {recorded.type} and the template makes it {desired.type}: the type of a "
        "resource cannot change",
        hint=f"Give the new resource another logical id, or replace it with --replace {desired.logical_id}.",
    )


def refuse_same_name(logical_id: LogicalId, type_name: TypeName, name: str, causes: tuple[str, ...]) -> None:
    """The new one cannot be made while the old one has the name that the template asks for."""
    raise InputError(
        f"{logical_id} ({type_name}) must be replaced, as {', '.join(causes)} changes, and its explicit name {name} is "
        "taken by the old one until that is deleted",
        hint=f"Change the name or leave it open, or have the old one deleted first with --replace {logical_id}.",
    )


def explicit_name(type_name: TypeName, properties: Mapping[str, Any], *, native: Native) -> str | None:
    """What the properties call the resource, where that must be unique; None when AWS or we choose the name.

    Compound names come joined. Names that only AWS gives, and those not known yet, are none.
    """
    handler = native(type_name)
    if handler is not None and handler.name_rule is not None:
        return _text(properties.get(handler.name_rule.property))
    schema = schema_for(type_name)
    if schema is None:
        return None
    parts = [properties.get(pointer[0]) if len(pointer) == 1 else None for pointer in schema.primary_id]
    texts = [_text(part) for part in parts]
    return "|".join(text for text in texts if text) if texts and all(texts) else None


def refuse_reserved_name(
    logical_id: LogicalId, type_name: TypeName, properties: Mapping[str, Any], *, native: Native
) -> None:
    """A name that AWS keeps for itself, for a resource that is to be made."""
    handler = native(type_name)
    name = explicit_name(type_name, properties, native=native)
    if handler is None or handler.name_rule is None or name is None:
        return
    reserved = handler.name_rule.reserved_part(name)
    if reserved:
        raise InputError(
            f"{logical_id} ({type_name}) would be created as {name}, and AWS keeps names with {reserved} for itself",
            hint="Choose another name, or leave it open.",
        )


def _text(value: Any) -> str | None:
    if value is None or has_unknown(value) or isinstance(value, dict | list):
        return None
    return str(value) or None
