"""VPCs, internet gateways and what attaches gateways to a VPC; subnets are next door in `ec2_subnets`.

VPC and gateway have neither name nor token: a create whose answer is lost is found again by its tags. Attributes
that need a call of their own are set only where they differ from what a new VPC has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import ec2_tags, tags
from stackhold.engines.cloudformation.resources.ec2_calls import (
    association_state,
    call_on_new,
    call_unless_gone,
    describe,
    describe_by_id,
    find_tagged,
    ipv6_blocks,
)
from stackhold.engines.cloudformation.resources.ec2_subnets import Subnet
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

__all__ = ["InternetGateway", "Subnet", "Vpc", "VpcGatewayAttachment"]

_NO_VPC: Final = "InvalidVpcID.NotFound"
_NO_GATEWAY: Final = "InvalidInternetGatewayID.NotFound"


class Vpc(Handler):
    """AWS::EC2::VPC."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::VPC")
    properties: ClassVar[frozenset[str]] = frozenset(
        {
            "CidrBlock",
            "EnableDnsHostnames",
            "EnableDnsSupport",
            "InstanceTenancy",
            "Ipv4IpamPoolId",
            "Ipv4NetmaskLength",
            "Tags",
        }
    )
    found_by: ClassVar[FoundBy] = FoundBy.TAG
    write_only: ClassVar[frozenset[str]] = frozenset({"Ipv4IpamPoolId", "Ipv4NetmaskLength"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "EnableDnsHostnames": False,
        "EnableDnsSupport": True,
        "InstanceTenancy": "default",
        "Tags": [],
    }
    _ATTRIBUTES: ClassVar[tuple[str, ...]] = ("EnableDnsSupport", "EnableDnsHostnames")
    """In the order that suits switching on: host names need DNS support."""

    def create(self, ctx: Context, want: Want) -> Made:
        """CreateVpc, then each attribute that a new VPC has otherwise."""
        params: dict[str, Any] = {"TagSpecifications": ec2_tags.specification(want, "vpc")}
        for name in ("CidrBlock", "InstanceTenancy", "Ipv4IpamPoolId", "Ipv4NetmaskLength"):
            if want.properties.get(name) is not None:
                params[name] = want.properties[name]
        vpc = ctx.aws.call("ec2", "CreateVpc", params, resend=Resend.NEVER)["Vpc"]
        physical_id = PhysicalId(vpc["VpcId"])
        ctx.note(physical_id)
        self._change_attributes(ctx, physical_id, {}, want.properties)
        observed = self._shape(vpc)
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        observed |= {name: want.properties.get(name, self.defaults[name]) for name in self._ATTRIBUTES}
        is_settled = vpc.get("State", "available") == "available"
        return Made(physical_id, _vpc_attributes(vpc), is_settled=is_settled, observed=observed)

    def _change_attributes(self, ctx: Context, vpc: str, old: Props, new: Props) -> None:
        before = {name: old.get(name, self.defaults[name]) for name in self._ATTRIBUTES}
        after = {name: new.get(name, self.defaults[name]) for name in self._ATTRIBUTES}
        order = self._ATTRIBUTES if after["EnableDnsSupport"] else tuple(reversed(self._ATTRIBUTES))
        for name in order:
            if before[name] != after[name]:
                params = {"VpcId": vpc, name: {"Value": after[name]}}
                call_on_new(ctx, "ModifyVpcAttribute", params, unknown=_NO_VPC)

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Available."""
        found = self._find(ctx, [physical_id])
        is_available = physical_id in found and found[physical_id].get("State") == "available"
        return (Settle.DONE if is_available else Settle.PENDING), None

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeVpcs", "Vpcs", key="VpcId")

    def _find(self, ctx: Context, ids: Any) -> dict[str, dict[str, Any]]:
        return describe_by_id(ctx, "DescribeVpcs", "Vpcs", key="VpcId", filter_name="vpc-id", ids=ids)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The VPC with everything; the ids of its default group and access list take a call each."""
        seen = self.read_many(ctx, {physical_id: properties}).get(physical_id)
        if seen is None:
            return None
        groups = describe(
            ctx,
            "DescribeSecurityGroups",
            "SecurityGroups",
            filters={"vpc-id": [physical_id], "group-name": ["default"]},
        )
        lists = describe(
            ctx, "DescribeNetworkAcls", "NetworkAcls", filters={"vpc-id": [physical_id], "default": ["true"]}
        )
        more: dict[str, Any] = {}
        for group in groups:
            if group.get("VpcId") == physical_id and group.get("GroupName") == "default":
                more["DefaultSecurityGroup"] = group["GroupId"]
        for acl in lists:
            if acl.get("VpcId") == physical_id and acl.get("IsDefault"):
                more["DefaultNetworkAcl"] = acl["NetworkAclId"]
        return Seen(seen.properties, {**seen.attributes, **more})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all, and one call per VPC and attribute, which AWS tells no other way."""
        found: dict[PhysicalId, Seen] = {}
        for vpc_id, vpc in self._find(ctx, wanted).items():
            try:
                flags = {name: self._attribute(ctx, vpc_id, name) for name in self._ATTRIBUTES}
            except AwsError as error:
                if error.code != _NO_VPC:
                    raise
                continue
            found[PhysicalId(vpc_id)] = Seen({**self._shape(vpc), **flags}, _vpc_attributes(vpc))
        return found

    def _attribute(self, ctx: Context, vpc: str, name: str) -> bool:
        asked = name[0].lower() + name[1:]
        answer = ctx.aws.call("ec2", "DescribeVpcAttribute", {"VpcId": vpc, "Attribute": asked})
        return bool(answer[name]["Value"])

    def _shape(self, vpc: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "CidrBlock": vpc["CidrBlock"],
            "InstanceTenancy": vpc.get("InstanceTenancy", "default"),
            "Tags": tags.visible_list(vpc.get("Tags")),
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Attributes, tenancy (towards `default` only) and tags."""
        self._change_attributes(ctx, physical_id, old, want.properties)
        tenancy = want.properties.get("InstanceTenancy", "default")
        if old and tenancy != old.get("InstanceTenancy", "default"):
            ctx.aws.call("ec2", "ModifyVpcTenancy", {"VpcId": physical_id, "InstanceTenancy": tenancy})
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id)

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """Tenancy changes in place from `dedicated` to `default`, and no other way."""
        if "InstanceTenancy" not in changed:
            return None
        return bool(new.get("InstanceTenancy", "default") != "default")

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; what still is in it is AWS's DependencyViolation."""
        call_unless_gone(ctx, "DeleteVpc", {"VpcId": physical_id}, gone=(_NO_VPC,))


def _vpc_attributes(vpc: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "VpcId": vpc["VpcId"],
        "CidrBlock": vpc["CidrBlock"],
        "CidrBlockAssociations": [
            entry["AssociationId"]
            for entry in vpc.get("CidrBlockAssociationSet") or ()
            if association_state(entry, "CidrBlockState") in ("associated", "associating")
        ],
        "Ipv6CidrBlocks": ipv6_blocks(vpc),
    }


class InternetGateway(Handler):
    """AWS::EC2::InternetGateway."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::InternetGateway")
    properties: ClassVar[frozenset[str]] = frozenset({"Tags"})
    found_by: ClassVar[FoundBy] = FoundBy.TAG
    defaults: ClassVar[Mapping[str, Any]] = {"Tags": []}

    def create(self, ctx: Context, want: Want) -> Made:
        """One call."""
        params = {"TagSpecifications": ec2_tags.specification(want, "internet-gateway")}
        gateway = ctx.aws.call("ec2", "CreateInternetGateway", params, resend=Resend.NEVER)["InternetGateway"]
        physical_id = PhysicalId(gateway["InternetGatewayId"])
        observed = {"Tags": tags.visible_list(tags.of_template(want))}
        return Made(physical_id, {"InternetGatewayId": str(physical_id)}, observed=observed)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeInternetGateways", "InternetGateways", key="InternetGatewayId")

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """Its tags."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        found = describe_by_id(
            ctx,
            "DescribeInternetGateways",
            "InternetGateways",
            key="InternetGatewayId",
            filter_name="internet-gateway-id",
            ids=wanted,
        )
        return {
            PhysicalId(key): Seen({"Tags": tags.visible_list(item.get("Tags"))}, {"InternetGatewayId": key})
            for key, item in found.items()
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Tags."""
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; an attached one is AWS's DependencyViolation."""
        params = {"InternetGatewayId": physical_id}
        call_unless_gone(ctx, "DeleteInternetGateway", params, gone=(_NO_GATEWAY,))


_INTERNET: Final = "IGW"
_PRIVATE: Final = "VGW"


class VpcGatewayAttachment(Handler):
    """AWS::EC2::VPCGatewayAttachment. The physical id is `IGW|<vpc>` or `VGW|<vpc>`."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::VPCGatewayAttachment")
    properties: ClassVar[frozenset[str]] = frozenset({"InternetGatewayId", "VpcId", "VpnGatewayId"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("InternetGatewayId", "VpcId", "VpnGatewayId")

    def create(self, ctx: Context, want: Want) -> Made:
        """Attach; what is attached to this very VPC already is as wanted."""
        properties = want.properties
        vpc = properties["VpcId"]
        physical_id = PhysicalId(f"{_kind(properties)}|{vpc}")
        is_settled = True
        if properties.get("InternetGatewayId"):
            self._attach_internet(ctx, properties["InternetGatewayId"], vpc)
        else:
            params = {"VpnGatewayId": properties["VpnGatewayId"], "VpcId": vpc}
            answer = ctx.aws.call("ec2", "AttachVpnGateway", params)
            is_settled = (answer.get("VpcAttachment") or {}).get("State", "attached") == "attached"
        observed = {name: value for name, value in properties.items() if name in self.properties}
        attributes = {"AttachmentType": _kind(properties)}
        return Made(physical_id, attributes, is_settled=is_settled, observed=observed)

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """Whether this very gateway is attached to this VPC."""
        name = "InternetGatewayId" if lost.place.get("InternetGatewayId") else "VpnGatewayId"
        physical_id = PhysicalId(f"{_kind(lost.place)}|{lost.place['VpcId']}")
        seen = self.read(ctx, physical_id, lost.place)
        is_it = seen is not None and seen.properties[name] == lost.place[name]
        return physical_id if is_it and physical_id not in lost.known else None

    def _attach_internet(self, ctx: Context, gateway: str, vpc: str) -> None:
        try:
            ctx.aws.call("ec2", "AttachInternetGateway", {"InternetGatewayId": gateway, "VpcId": vpc})
        except AwsError as error:
            if error.code != "Resource.AlreadyAssociated" or gateway not in _internet_gateways(ctx, [vpc]).get(vpc, ()):
                raise

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Attached; only VPN gateways take their time."""
        vpc = properties["VpcId"]
        gateway = properties.get("VpnGatewayId")
        if not gateway or gateway in _vpn_gateways(ctx, [vpc], ("attached",)).get(vpc, ()):
            return Settle.DONE, None
        return Settle.PENDING, None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The gateway of that kind on the VPC."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe per kind of gateway."""
        vpcs: dict[str, list[str]] = {_INTERNET: [], _PRIVATE: []}
        for properties in wanted.values():
            vpcs[_kind(properties)].append(properties["VpcId"])
        attached = {
            _INTERNET: _internet_gateways(ctx, vpcs[_INTERNET]),
            _PRIVATE: _vpn_gateways(ctx, vpcs[_PRIVATE], ("attached", "attaching")),
        }
        found: dict[PhysicalId, Seen] = {}
        for physical_id, properties in wanted.items():
            kind, vpc = _kind(properties), properties["VpcId"]
            gateways = attached[kind].get(vpc)
            if gateways:
                name = "InternetGatewayId" if kind == _INTERNET else "VpnGatewayId"
                declared = properties.get(name)
                seen = {"VpcId": vpc, name: declared if declared in gateways else gateways[0]}
                found[physical_id] = Seen(seen, {"AttachmentType": kind})
        return found

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Another gateway: the old one has to leave first."""
        names = ("InternetGatewayId", "VpnGatewayId")
        if old and any(old.get(name) != want.properties.get(name) for name in names):
            self.delete(ctx, physical_id, old)
        return self.create(ctx, want)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Detach; not attached, or either side gone, is done."""
        vpc = properties["VpcId"]
        gone = ("Gateway.NotAttached", _NO_GATEWAY, _NO_VPC)
        if properties.get("InternetGatewayId"):
            params = {"InternetGatewayId": properties["InternetGatewayId"], "VpcId": vpc}
            call_unless_gone(ctx, "DetachInternetGateway", params, gone=gone)
        if properties.get("VpnGatewayId"):
            params = {"VpnGatewayId": properties["VpnGatewayId"], "VpcId": vpc}
            gone = (_NO_VPC, "InvalidVpnGatewayAttachment.NotFound", "InvalidVpnGatewayID.NotFound")
            call_unless_gone(ctx, "DetachVpnGateway", params, gone=gone)


def _kind(properties: Mapping[str, Any]) -> str:
    if properties.get("InternetGatewayId"):
        return _INTERNET
    if properties.get("VpnGatewayId"):
        return _PRIVATE
    raise ResourceFailed("a gateway attachment needs InternetGatewayId or VpnGatewayId")


def _internet_gateways(ctx: Context, vpcs: list[str]) -> dict[str, list[str]]:
    """Internet gateways by the VPC that they are attached to."""
    if not vpcs:
        return {}
    filters = {"attachment.vpc-id": vpcs}
    found: dict[str, list[str]] = {}
    for gateway in describe(ctx, "DescribeInternetGateways", "InternetGateways", filters=filters):
        for attachment in gateway.get("Attachments") or ():
            found.setdefault(attachment["VpcId"], []).append(gateway["InternetGatewayId"])
    return found


def _vpn_gateways(ctx: Context, vpcs: list[str], states: tuple[str, ...]) -> dict[str, list[str]]:
    """VPN gateways by the VPC that they are attached to, in one of these states."""
    if not vpcs:
        return {}
    filters = {"attachment.vpc-id": vpcs}
    found: dict[str, list[str]] = {}
    for gateway in describe(ctx, "DescribeVpnGateways", "VpnGateways", filters=filters, by_pages=False):
        for attachment in gateway.get("VpcAttachments") or ():
            if attachment.get("State") in states:
                found.setdefault(attachment["VpcId"], []).append(gateway["VpnGatewayId"])
    return found
