"""Route tables, their routes, and which subnet uses which table.

A table's create carries a token. A route is one per table and destination, an association one per subnet: what is
there already is taken on when it is exactly what is wanted, and never bent to it silently.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import ec2_tags, tags
from stackhold.engines.cloudformation.resources.ec2_calls import (
    call_unless_gone,
    create_once,
    describe,
    describe_by_id,
    find_tagged,
)
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_NO_TABLE: Final = "InvalidRouteTableID.NotFound"


def _tables(ctx: Context, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    return describe_by_id(
        ctx, "DescribeRouteTables", "RouteTables", key="RouteTableId", filter_name="route-table-id", ids=ids
    )


class RouteTable(Handler):
    """AWS::EC2::RouteTable."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::RouteTable")
    properties: ClassVar[frozenset[str]] = frozenset({"Tags", "VpcId"})
    found_by: ClassVar[FoundBy] = FoundBy.TOKEN
    defaults: ClassVar[Mapping[str, Any]] = {"Tags": []}

    def create(self, ctx: Context, want: Want) -> Made:
        """One call."""
        params = {
            "VpcId": want.properties["VpcId"],
            "TagSpecifications": ec2_tags.specification(want, "route-table"),
        }
        table = create_once(ctx, "CreateRouteTable", params, token=want.token)["RouteTable"]
        physical_id = PhysicalId(table["RouteTableId"])
        observed = {"VpcId": table["VpcId"], "Tags": tags.visible_list(tags.of_template(want))}
        return Made(physical_id, {"RouteTableId": str(physical_id)}, observed=observed)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeRouteTables", "RouteTables", key="RouteTableId")

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """Its VPC and tags."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        return {
            PhysicalId(key): Seen(
                {"VpcId": table["VpcId"], "Tags": tags.visible_list(table.get("Tags"))}, {"RouteTableId": key}
            )
            for key, table in _tables(ctx, wanted).items()
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Tags."""
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; one that a subnet uses is AWS's DependencyViolation."""
        call_unless_gone(ctx, "DeleteRouteTable", {"RouteTableId": physical_id}, gone=(_NO_TABLE,))


_DESTINATIONS: Final = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
_TARGETS: Final = (
    "CarrierGatewayId",
    "CoreNetworkArn",
    "EgressOnlyInternetGatewayId",
    "GatewayId",
    "InstanceId",
    "LocalGatewayId",
    "NatGatewayId",
    "NetworkInterfaceId",
    "OdbNetworkArn",
    "TransitGatewayId",
    "VpcEndpointId",
    "VpcPeeringConnectionId",
)


class Route(Handler):
    """AWS::EC2::Route. The physical id is `<table>|<destination>`."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::Route")
    properties: ClassVar[frozenset[str]] = frozenset({*_DESTINATIONS, *_TARGETS, "RouteTableId"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("RouteTableId", *_DESTINATIONS, *_TARGETS)

    def create(self, ctx: Context, want: Want) -> Made:
        """One call; a route of that destination with that very target is as wanted."""
        properties = want.properties
        table, destination = properties["RouteTableId"], _destination(properties)
        try:
            ctx.aws.call("ec2", "CreateRoute", _sent(properties))
        except AwsError as error:
            if error.code != "RouteAlreadyExists":
                raise
            there = _route_to(_tables(ctx, [table]).get(table, {}), properties)
            if there is None or _target(there, properties) != _target(properties, properties):
                raise tags.foreign(
                    "route", f"{table} to {destination}", service="ec2", operation="CreateRoute", code=error.code
                ) from error
        return Made(PhysicalId(f"{table}|{destination}"), _route_attributes(properties), observed=_sent(properties))

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The table's route to this destination. In a table that is not the stack's only one to this very target."""
        table = str(lost.place["RouteTableId"])
        there = _route_to(_tables(ctx, [table]).get(table, {}), lost.place)
        physical_id = PhysicalId(f"{table}|{_destination(lost.place)}")
        if there is None or physical_id in lost.known or there.get("GatewayId") == "local":
            return None
        is_ours = table in lost.stack or _target(there, lost.place) == _target(lost.place, lost.place)
        return physical_id if is_ours else None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The route to this destination."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all tables."""
        tables = _tables(ctx, [properties["RouteTableId"] for properties in wanted.values()])
        found: dict[PhysicalId, Seen] = {}
        for physical_id, properties in wanted.items():
            table = properties["RouteTableId"]
            route = _route_to(tables.get(table, {}), properties)
            if route is not None:
                where = {name: properties[name] for name in _DESTINATIONS if properties.get(name)}
                seen = {"RouteTableId": table, **where, **_target(route, properties)}
                found[physical_id] = Seen(seen, _route_attributes(properties))
        return found

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Another target replaces the old one in one step."""
        if _target(old, old) != _target(want.properties, want.properties):
            ctx.aws.call("ec2", "ReplaceRoute", _sent(want.properties))
        return Made(physical_id, _route_attributes(want.properties))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; a table that is gone took it along."""
        params = {"RouteTableId": properties["RouteTableId"]}
        params |= {name: properties[name] for name in _DESTINATIONS if properties.get(name)}
        call_unless_gone(ctx, "DeleteRoute", params, gone=("InvalidRoute.NotFound", _NO_TABLE))


def _sent(properties: Mapping[str, Any]) -> dict[str, Any]:
    names = ("RouteTableId", *_DESTINATIONS, *_TARGETS)
    return {name: properties[name] for name in names if properties.get(name)}


def _destination(properties: Mapping[str, Any]) -> str:
    for name in _DESTINATIONS:
        if properties.get(name):
            return str(properties[name])
    raise ResourceFailed("a route needs DestinationCidrBlock, DestinationIpv6CidrBlock or DestinationPrefixListId")


def _route_attributes(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"CidrBlock": _destination(properties)}


def _route_to(table: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any] | None:
    """The table's route to the destination of these properties; ranges compare as AWS writes them."""
    wanted = _canonical(_destination(properties))
    routes: list[dict[str, Any]] = table.get("Routes") or []
    for route in routes:
        if any(route.get(name) and _canonical(route[name]) == wanted for name in _DESTINATIONS):
            return route
    return None


def _canonical(destination: str) -> str:
    try:
        return str(ipaddress.ip_network(destination, strict=False))
    except ValueError:
        return destination


def _target(route: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Where a route leads, under the names of the template.

    An endpoint's id is told as a gateway's, and an instance together with its interface.
    """
    seen = {name: route[name] for name in _TARGETS if route.get(name)}
    gateway = seen.get("GatewayId", "")
    if declared.get("VpcEndpointId") and gateway.startswith("vpce-"):
        seen["VpcEndpointId"] = seen.pop("GatewayId")
    if declared.get("InstanceId") and "InstanceId" in seen:
        seen.pop("NetworkInterfaceId", None)
    elif declared.get("NetworkInterfaceId"):
        seen.pop("InstanceId", None)
    return seen


class SubnetRouteTableAssociation(Handler):
    """AWS::EC2::SubnetRouteTableAssociation. The physical id is the association's id."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::SubnetRouteTableAssociation")
    properties: ClassVar[frozenset[str]] = frozenset({"RouteTableId", "SubnetId"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("RouteTableId", "SubnetId")

    def create(self, ctx: Context, want: Want) -> Made:
        """One call; a subnet that uses this very table already is as wanted."""
        wanted = {"RouteTableId": want.properties["RouteTableId"], "SubnetId": want.properties["SubnetId"]}
        try:
            answer = ctx.aws.call("ec2", "AssociateRouteTable", wanted)
        except AwsError as error:
            if error.code != "Resource.AlreadyAssociated":
                raise
            answer = self._as_wanted(ctx, wanted, error)
        return self._made(answer["AssociationId"], answer, wanted)

    def _made(self, association: str, answer: Mapping[str, Any], wanted: Props) -> Made:
        is_settled = (answer.get("AssociationState") or {}).get("State", "associated") == "associated"
        return Made(PhysicalId(association), {"Id": association}, is_settled=is_settled, observed=dict(wanted))

    def _as_wanted(self, ctx: Context, wanted: Props, refused: AwsError) -> dict[str, Any]:
        for association in _associations(ctx, [wanted["SubnetId"]]).values():
            if association["SubnetId"] == wanted["SubnetId"] and association["RouteTableId"] == wanted["RouteTableId"]:
                return {"AssociationId": association["RouteTableAssociationId"]}
        raise tags.foreign(
            "route table association",
            f"of {wanted['SubnetId']}",
            service="ec2",
            operation="AssociateRouteTable",
            code=refused.code,
        ) from refused

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The subnet's association with this table."""
        for name, association in _associations(ctx, [str(lost.place["SubnetId"])]).items():
            physical_id = PhysicalId(name)
            if association["RouteTableId"] == lost.place["RouteTableId"] and physical_id not in lost.known:
                return physical_id
        return None

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Associated."""
        association = _associations(ctx, [properties["SubnetId"]]).get(physical_id, {})
        state = (association.get("AssociationState") or {}).get("State", "associated" if association else "associating")
        if state == "failed":
            raise ResourceFailed(f"route table association {physical_id} failed")
        return (Settle.DONE if state == "associated" else Settle.PENDING), None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The association, if the subnet still has it."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all subnets."""
        there = _associations(ctx, [properties["SubnetId"] for properties in wanted.values()])
        return {
            physical_id: Seen(
                {name: there[physical_id][name] for name in ("RouteTableId", "SubnetId")}, {"Id": str(physical_id)}
            )
            for physical_id in wanted
            if physical_id in there
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Another table, without a moment in between; the association gets a new id."""
        table = want.properties["RouteTableId"]
        if old.get("RouteTableId", table) == table:
            return Made(physical_id, {"Id": str(physical_id)})
        params = {"AssociationId": physical_id, "RouteTableId": table}
        answer = ctx.aws.call("ec2", "ReplaceRouteTableAssociation", params)
        return self._made(answer["NewAssociationId"], answer, want.properties)

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """A subnet can be moved to another table in place."""
        return False if changed == {"RouteTableId"} else None

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Disassociate; the subnet falls back to the VPC's main table."""
        params = {"AssociationId": physical_id}
        call_unless_gone(ctx, "DisassociateRouteTable", params, gone=("InvalidAssociationID.NotFound",))


def _associations(ctx: Context, subnets: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The associations of these subnets by their ids."""
    wanted = set(subnets)
    filters = {"association.subnet-id": wanted}
    return {
        association["RouteTableAssociationId"]: {"RouteTableId": table["RouteTableId"], **association}
        for table in describe(ctx, "DescribeRouteTables", "RouteTables", filters=filters)
        for association in table.get("Associations") or ()
        if association.get("SubnetId") in wanted
        and (association.get("AssociationState") or {}).get("State") not in ("disassociating", "disassociated")
    }
