"""Elastic IP addresses and NAT gateways; VPC endpoints are next door in `ec2_endpoints`.

A NAT gateway's create carries a token, so that the same create gives the same gateway again; an address has
neither name nor token and is found by its tags. Deleted and failed NAT gateways stay listed for an hour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import ec2_tags, tags
from stackhold.engines.cloudformation.resources.ec2_calls import (
    call_on_new,
    call_unless_gone,
    create_once,
    describe,
    describe_by_id,
    find_tagged,
)
from stackhold.engines.cloudformation.resources.ec2_endpoints import VpcEndpoint
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

__all__ = ["Eip", "NatGateway", "VpcEndpoint"]

_NO_ADDRESS: Final = ("InvalidAllocationID.NotFound", "InvalidAddress.NotFound")
_NO_ASSOCIATION: Final = "InvalidAssociationID.NotFound"
_NO_NAT: Final = "NatGatewayNotFound"
_DELETED_BUDGET_MS: Final = 15 * 60_000


class Eip(Handler):
    """AWS::EC2::EIP. The physical id is the allocation's id; `Ref` gives the public address."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::EIP")
    properties: ClassVar[frozenset[str]] = frozenset(
        {"Address", "Domain", "InstanceId", "IpamPoolId", "NetworkBorderGroup", "PublicIpv4Pool", "Tags"}
    )
    found_by: ClassVar[FoundBy] = FoundBy.TAG
    write_only: ClassVar[frozenset[str]] = frozenset({"Address", "IpamPoolId"})
    defaults: ClassVar[Mapping[str, Any]] = {"Domain": "vpc", "InstanceId": "", "Tags": []}

    def create(self, ctx: Context, want: Want) -> Made:
        """Allocate, and associate with an instance where one is named."""
        properties = want.properties
        params: dict[str, Any] = {
            "Domain": properties.get("Domain") or "vpc",
            "TagSpecifications": ec2_tags.specification(want, "elastic-ip"),
        }
        for name in ("Address", "IpamPoolId", "NetworkBorderGroup", "PublicIpv4Pool"):
            if properties.get(name):
                params[name] = properties[name]
        address = ctx.aws.call("ec2", "AllocateAddress", params, resend=Resend.NEVER)
        physical_id = PhysicalId(address.get("AllocationId") or address["PublicIp"])
        ctx.note(physical_id)
        if properties.get("InstanceId"):
            self._associate(ctx, physical_id, properties["InstanceId"])
        observed = self._shape({**address, "InstanceId": properties.get("InstanceId") or ""})
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        return Made(physical_id, _address_attributes(address), observed=observed)

    def _associate(self, ctx: Context, allocation: str, instance: str) -> None:
        params = {"AllocationId": allocation, "InstanceId": instance}
        call_on_new(ctx, "AssociateAddress", params, unknown=_NO_ADDRESS[0])

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The address."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        found = self._find(ctx, wanted)
        return {
            PhysicalId(key): Seen(self._shape(address), _address_attributes(address)) for key, address in found.items()
        }

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeAddresses", "Addresses", key="AllocationId", by_pages=False)

    def _find(self, ctx: Context, physical_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Addresses by the physical ids asked for, which may be allocations, public addresses, or `both|both`."""
        wanted = {physical_id: frozenset(physical_id.split("|")) for physical_id in physical_ids}
        parts = frozenset().union(*wanted.values())
        allocations = [part for part in parts if part.startswith("eipalloc-")]
        addresses = [part for part in parts if not part.startswith("eipalloc-")]
        listed: list[dict[str, Any]] = []
        for name, values in (("allocation-id", allocations), ("public-ip", addresses)):
            if values:
                listed += describe(ctx, "DescribeAddresses", "Addresses", filters={name: values}, by_pages=False)
        return {
            physical_id: item
            for physical_id, names in wanted.items()
            for item in listed
            if item.get("AllocationId") in names or item.get("PublicIp") in names
        }

    def _shape(self, address: Mapping[str, Any]) -> dict[str, Any]:
        seen: dict[str, Any] = {"Domain": address.get("Domain", "vpc"), "InstanceId": address.get("InstanceId") or ""}
        for name in ("NetworkBorderGroup", "PublicIpv4Pool"):
            if address.get(name):
                seen[name] = address[name]
        seen["Tags"] = tags.visible_list(address.get("Tags"))
        return seen

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """The instance, and tags."""
        before, after = old.get("InstanceId") or "", want.properties.get("InstanceId") or ""
        address = {"AllocationId": physical_id}
        if before != after or "|" in physical_id or not physical_id.startswith("eipalloc-"):
            address = self._find(ctx, [physical_id]).get(physical_id) or address
        allocation = address["AllocationId"]
        if before != after:
            if before:
                self._disassociate(ctx, address)
            if after:
                self._associate(ctx, allocation, after)
        ec2_tags.update(ctx, allocation, old, want)
        return Made(physical_id)

    def _disassociate(self, ctx: Context, address: Mapping[str, Any]) -> None:
        if address.get("AssociationId"):
            params = {"AssociationId": address["AssociationId"]}
            call_unless_gone(ctx, "DisassociateAddress", params, gone=(_NO_ASSOCIATION,))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Take it off its own instance and release it; one that something else uses is AWS's refusal."""
        allocation = physical_id
        if properties.get("InstanceId") or not physical_id.startswith("eipalloc-"):
            address = self._find(ctx, [physical_id]).get(physical_id)
            if address is None:
                return
            if properties.get("InstanceId"):
                self._disassociate(ctx, address)
            allocation = address["AllocationId"]
        params = {"AllocationId": allocation}
        if properties.get("NetworkBorderGroup"):
            params["NetworkBorderGroup"] = properties["NetworkBorderGroup"]
        call_unless_gone(ctx, "ReleaseAddress", params, gone=_NO_ADDRESS)

    def ref(self, physical_id: PhysicalId, properties: Props, attributes: Mapping[str, Any]) -> Any:
        """The public address; a record of another tool may have it as the id itself."""
        public = attributes.get("PublicIp")
        return public or next(
            (part for part in physical_id.split("|") if not part.startswith("eipalloc-")), physical_id
        )


def _address_attributes(address: Mapping[str, Any]) -> dict[str, Any]:
    return {name: address[name] for name in ("AllocationId", "PublicIp") if address.get(name)}


class NatGateway(Handler):
    """AWS::EC2::NatGateway."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::NatGateway")
    properties: ClassVar[frozenset[str]] = frozenset(
        {"AllocationId", "ConnectivityType", "PrivateIpAddress", "SubnetId", "Tags"}
    )
    found_by: ClassVar[FoundBy] = FoundBy.TOKEN
    defaults: ClassVar[Mapping[str, Any]] = {"ConnectivityType": "public", "Tags": []}
    dependents_wait: ClassVar[bool] = False

    def create(self, ctx: Context, want: Want) -> Made:
        """One call; it takes a minute or two until it is available."""
        params: dict[str, Any] = {"TagSpecifications": ec2_tags.specification(want, "natgateway")}
        for name in ("AllocationId", "ConnectivityType", "PrivateIpAddress", "SubnetId"):
            if want.properties.get(name):
                params[name] = want.properties[name]
        nat = create_once(ctx, "CreateNatGateway", params, token=want.token)["NatGateway"]
        is_settled = nat.get("State") == "available"
        return Made(PhysicalId(nat["NatGatewayId"]), _nat_attributes(nat), is_settled=is_settled)

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Available, with its interface then known."""
        nat = self._find(ctx, [physical_id]).get(physical_id)
        if nat is None:
            return Settle.PENDING, None
        state = nat.get("State", "available")
        if state == "available":
            return Settle.DONE, Made(physical_id, _nat_attributes(nat))
        if state == "pending":
            return Settle.PENDING, None
        why = f"{nat.get('FailureCode') or 'no code'}: {nat.get('FailureMessage') or 'no reason given'}"
        raise ResourceFailed(f"NAT gateway {physical_id} is {state} ({why})")

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags. A deleted or failed one stays listed with them for an hour."""
        gone = ("deleted", "deleting", "failed")
        return find_tagged(
            ctx, lost, "DescribeNatGateways", "NatGateways", key="NatGatewayId", gone=gone, parameter="Filter"
        )

    def _find(self, ctx: Context, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        return describe_by_id(
            ctx,
            "DescribeNatGateways",
            "NatGateways",
            key="NatGatewayId",
            filter_name="nat-gateway-id",
            ids=ids,
            parameter="Filter",
        )

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The gateway, unless it is deleted or on its way there."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        found: dict[PhysicalId, Seen] = {}
        for key, nat in self._find(ctx, wanted).items():
            if nat.get("State") in ("deleted", "deleting"):
                continue
            seen: dict[str, Any] = {
                "SubnetId": nat["SubnetId"],
                "ConnectivityType": nat.get("ConnectivityType", "public"),
                "Tags": tags.visible_list(nat.get("Tags")),
            }
            address = _primary_address(nat)
            for name, source in (("AllocationId", "AllocationId"), ("PrivateIpAddress", "PrivateIp")):
                # Neither can change: a server that tells no addresses at all does not mean that there are none.
                value = address.get(source) if address else wanted[PhysicalId(key)].get(name)
                if value:
                    seen[name] = value
            found[PhysicalId(key)] = Seen(seen, _nat_attributes(nat))
        return found

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """Tags; everything else replaces."""
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete and wait until it is: until then it holds its address, its subnet and the VPC's gateway."""
        try:
            ctx.aws.call("ec2", "DeleteNatGateway", {"NatGatewayId": physical_id})
        except AwsError as error:
            if error.code != _NO_NAT:
                raise
            return

        def look() -> bool | None:
            nat = self._find(ctx, [physical_id]).get(physical_id)
            return True if nat is None or nat.get("State") in ("deleted", "failed") else None

        wait_for(ctx, look, budget_ms=_DELETED_BUDGET_MS, what=f"NAT gateway {physical_id}: its deletion")


def _primary_address(nat: Mapping[str, Any]) -> Mapping[str, Any]:
    addresses = nat.get("NatGatewayAddresses") or [{}]
    primary: Mapping[str, Any] = next((item for item in addresses if item.get("IsPrimary")), addresses[0])
    return primary


def _nat_attributes(nat: Mapping[str, Any]) -> dict[str, Any]:
    found = {"NatGatewayId": nat["NatGatewayId"]}
    interface = _primary_address(nat).get("NetworkInterfaceId")
    return {**found, "EniId": interface} if interface else found
