"""Subnets.

A subnet has neither name nor token, but its range is taken once per VPC: the refusal of a second one leads to the
first, which is ours when it carries our tags. Attributes beyond the create call take one call each and are set
only where they differ from what a new subnet has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import ec2_tags, tags
from stackhold.engines.cloudformation.resources.ec2_calls import (
    call_on_new,
    call_unless_gone,
    describe,
    describe_by_id,
    find_tagged,
    ipv6_blocks,
)
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "InvalidSubnetID.NotFound"
_TAKEN: Final = "InvalidSubnet.Conflict"
_AT_CREATE: Final = (
    "AvailabilityZone",
    "AvailabilityZoneId",
    "CidrBlock",
    "Ipv4IpamPoolId",
    "Ipv4NetmaskLength",
    "Ipv6CidrBlock",
    "Ipv6IpamPoolId",
    "Ipv6Native",
    "Ipv6NetmaskLength",
    "OutpostArn",
    "VpcId",
)
_FLAGS: Final = ("AssignIpv6AddressOnCreation", "EnableDns64", "MapPublicIpOnLaunch")
_NAME_OPTIONS: Final = "PrivateDnsNameOptionsOnLaunch"
_LOCAL_INTERFACE: Final = "EnableLniAtDeviceIndex"


class Subnet(Handler):
    """AWS::EC2::Subnet."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::Subnet")
    properties: ClassVar[frozenset[str]] = frozenset({*_AT_CREATE, *_FLAGS, _NAME_OPTIONS, _LOCAL_INTERFACE, "Tags"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("VpcId", "CidrBlock")
    write_only: ClassVar[frozenset[str]] = frozenset(
        {"Ipv4IpamPoolId", "Ipv4NetmaskLength", "Ipv6IpamPoolId", "Ipv6NetmaskLength", _LOCAL_INTERFACE}
    )
    defaults: ClassVar[Mapping[str, Any]] = {
        "AssignIpv6AddressOnCreation": False,
        "EnableDns64": False,
        "Ipv6CidrBlock": "",
        "Ipv6Native": False,
        "MapPublicIpOnLaunch": False,
        "Tags": [],
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """CreateSubnet, then each attribute that a new subnet has otherwise."""
        properties = want.properties
        params: dict[str, Any] = {"TagSpecifications": ec2_tags.specification(want, "subnet")}
        params |= {name: properties[name] for name in _AT_CREATE if properties.get(name) not in (None, "")}
        try:
            subnet = ctx.aws.call("ec2", "CreateSubnet", params, resend=Resend.NEVER)["Subnet"]
        except AwsError as error:
            if error.code != _TAKEN:
                raise
            subnet = self._ours(ctx, want, error)
        physical_id = PhysicalId(subnet["SubnetId"])
        ctx.note(physical_id)
        observed = self._shape(subnet, properties)
        self._change_attributes(ctx, physical_id, {}, properties)
        observed |= {name: properties[name] for name in (*_FLAGS, _NAME_OPTIONS) if properties.get(name) is not None}
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        is_settled = subnet.get("State", "available") == "available"
        return Made(physical_id, _attributes(subnet), is_settled=is_settled, observed=observed)

    def _ours(self, ctx: Context, want: Want, refused: AwsError) -> dict[str, Any]:
        """The subnet with this very range in this VPC, if this very create made it earlier."""
        vpc, block = want.properties["VpcId"], want.properties.get("CidrBlock", "")
        if not block:
            raise refused
        filters = {"vpc-id": [vpc], "cidr-block": [block]}
        for subnet in describe(ctx, "DescribeSubnets", "Subnets", filters=filters):
            if subnet["VpcId"] == vpc and subnet["CidrBlock"] == block and tags.are_ours(subnet.get("Tags"), want):
                return subnet
        raise tags.foreign(
            "subnet", f"{block} of {vpc}", service="ec2", operation="CreateSubnet", code=refused.code
        ) from refused

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeSubnets", "Subnets", key="SubnetId")

    def _change_attributes(self, ctx: Context, subnet: str, old: Props, new: Props) -> None:
        """One call per attribute that differs; each may be made again."""
        for change in _attribute_changes(old, new):
            call_on_new(ctx, "ModifySubnetAttribute", {"SubnetId": subnet, **change}, unknown=_GONE)

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Available."""
        found = self._find(ctx, [physical_id])
        is_available = physical_id in found and found[physical_id].get("State") == "available"
        return (Settle.DONE if is_available else Settle.PENDING), None

    def _find(self, ctx: Context, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        return describe_by_id(ctx, "DescribeSubnets", "Subnets", key="SubnetId", filter_name="subnet-id", ids=ids)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The subnet; the id of its access list's association takes a call of its own."""
        seen = self.read_many(ctx, {physical_id: properties}).get(physical_id)
        if seen is None:
            return None
        more: dict[str, Any] = {}
        filters = {"association.subnet-id": [physical_id]}
        for acl in describe(ctx, "DescribeNetworkAcls", "NetworkAcls", filters=filters):
            for association in acl.get("Associations") or ():
                if association.get("SubnetId") == physical_id:
                    more["NetworkAclAssociationId"] = association["NetworkAclAssociationId"]
        return Seen(seen.properties, {**seen.attributes, **more})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        return {
            PhysicalId(key): Seen(self._shape(subnet, wanted[PhysicalId(key)]), _attributes(subnet))
            for key, subnet in self._find(ctx, wanted).items()
        }

    def _shape(self, subnet: Mapping[str, Any], declared: Props) -> dict[str, Any]:
        names = ("AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "OutpostArn", "VpcId", *_FLAGS, "Ipv6Native")
        seen = {name: subnet[name] for name in names if subnet.get(name) is not None}
        blocks = ipv6_blocks(subnet)
        seen["Ipv6CidrBlock"] = blocks[0] if blocks else ""
        options = subnet.get(_NAME_OPTIONS)
        if options:
            asked = declared.get(_NAME_OPTIONS)
            names = tuple(asked) if isinstance(asked, dict) else tuple(options)
            seen[_NAME_OPTIONS] = {key: value for key, value in options.items() if key in names}
        seen["Tags"] = tags.visible_list(subnet.get("Tags"))
        return seen

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """IPv6 range, attributes and tags."""
        new = want.properties
        before, after = old.get("Ipv6CidrBlock") or "", new.get("Ipv6CidrBlock") or ""
        more: dict[str, Any] = {}
        if old and before != after:
            self._change_ipv6(ctx, physical_id, after)
            more["Ipv6CidrBlocks"] = [after] if after else []
        self._change_attributes(ctx, physical_id, old, new)
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id, more)

    def _change_ipv6(self, ctx: Context, subnet: str, block: str) -> None:
        """A subnet has one IPv6 range: what is there goes first, and only then the new one fits."""

        def others() -> list[dict[str, Any]]:
            found = self._find(ctx, [subnet]).get(subnet, {})
            return [
                entry
                for entry in found.get("Ipv6CidrBlockAssociationSet") or ()
                if entry["Ipv6CidrBlock"] != block
                and (entry.get("Ipv6CidrBlockState") or {}).get("State") != "disassociated"
            ]

        for entry in others():
            params = {"AssociationId": entry["AssociationId"]}
            gone = ("InvalidSubnetCidrBlockAssociationID.NotFound",)
            call_unless_gone(ctx, "DisassociateSubnetCidrBlock", params, gone=gone)
        wait_for(
            ctx,
            lambda: None if others() else True,
            budget_ms=self.settle_timeout_ms,
            what=f"subnet {subnet}: giving up its IPv6 range",
        )
        if block:
            ctx.aws.call("ec2", "AssociateSubnetCidrBlock", {"SubnetId": subnet, "Ipv6CidrBlock": block})

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """The IPv6 range, the only conditional property, changes in place."""
        return False if "Ipv6CidrBlock" in changed else None

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; what still is in it is AWS's DependencyViolation."""
        call_unless_gone(ctx, "DeleteSubnet", {"SubnetId": physical_id}, gone=(_GONE,))


def _attribute_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parameters of each ModifySubnetAttribute call that leads from `old` to `new`."""
    for name in _FLAGS:
        if bool(old.get(name)) != bool(new.get(name)):
            yield {name: {"Value": bool(new.get(name))}}
    yield from _name_option_changes(old.get(_NAME_OPTIONS) or {}, new.get(_NAME_OPTIONS) or {}, new)
    index = new.get(_LOCAL_INTERFACE)
    if index != old.get(_LOCAL_INTERFACE):
        yield {"DisableLniAtDeviceIndex": {"Value": True}} if index is None else {_LOCAL_INTERFACE: index}


def _name_option_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], properties: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    if old.get("HostnameType") != new.get("HostnameType"):
        usual = "resource-name" if properties.get("Ipv6Native") else "ip-name"
        yield {"PrivateDnsHostnameTypeOnLaunch": new.get("HostnameType") or usual}
    for name in ("EnableResourceNameDnsARecord", "EnableResourceNameDnsAAAARecord"):
        if bool(old.get(name)) != bool(new.get(name)):
            yield {f"{name}OnLaunch": {"Value": bool(new.get(name))}}


def _attributes(subnet: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        name: subnet[name]
        for name in ("SubnetId", "VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId", "OutpostArn")
        if subnet.get(name) is not None
    }
    found["Ipv6CidrBlocks"] = ipv6_blocks(subnet)
    states = subnet.get("BlockPublicAccessStates") or {}
    if states.get("InternetGatewayBlockMode"):
        found["BlockPublicAccessStates.InternetGatewayBlockMode"] = states["InternetGatewayBlockMode"]
    return found
