"""VPC endpoints of every kind.

A create carries a token. Deletes answer with success and list what they could not do, which is read here; an
endpoint is waited for until it is gone, since until then its interfaces and routes hold subnets and route tables.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import documents, ec2_tags, tags
from stackhold.engines.cloudformation.resources.ec2_calls import create_once, describe, find_tagged
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = frozenset({"InvalidVpcEndpoint.NotFound", "InvalidVpcEndpointId.NotFound"})
_TAKEN: Final = frozenset({"RouteAlreadyExists", "InvalidParameter"})
"""Refusals that our own earlier create may have caused, on servers and after times that forget tokens."""
_DELETED_BUDGET_MS: Final = 15 * 60_000
_SETTLED: Final = frozenset({"available", "pendingacceptance", "partial"})
_FAILED: Final = frozenset({"failed", "rejected", "expired", "deleting", "deleted"})
_AT_CREATE: Final = (
    "DnsOptions",
    "IpAddressType",
    "PrivateDnsEnabled",
    "ResourceConfigurationArn",
    "RouteTableIds",
    "SecurityGroupIds",
    "ServiceName",
    "ServiceNetworkArn",
    "ServiceRegion",
    "SubnetIds",
    "VpcEndpointType",
    "VpcId",
)
_LISTS: Final = {
    "RouteTableIds": ("AddRouteTableIds", "RemoveRouteTableIds"),
    "SecurityGroupIds": ("AddSecurityGroupIds", "RemoveSecurityGroupIds"),
    "SubnetIds": ("AddSubnetIds", "RemoveSubnetIds"),
}


class VpcEndpoint(Handler):
    """AWS::EC2::VPCEndpoint."""

    type: ClassVar[TypeName] = TypeName("AWS::EC2::VPCEndpoint")
    properties: ClassVar[frozenset[str]] = frozenset({*_AT_CREATE, "PolicyDocument", "Tags"})
    found_by: ClassVar[FoundBy] = FoundBy.TOKEN
    where: ClassVar[tuple[str, ...]] = ("VpcId",)
    defaults: ClassVar[Mapping[str, Any]] = {
        "PrivateDnsEnabled": False,
        "RouteTableIds": [],
        "SecurityGroupIds": [],
        "SubnetIds": [],
        "Tags": [],
        "VpcEndpointType": "Gateway",
        "PolicyDocument": {
            "Version": "2008-10-17",
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}],
        },
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call. One of a gateway is done at once, one with interfaces takes a minute or two."""
        params: dict[str, Any] = {"TagSpecifications": ec2_tags.specification(want, "vpc-endpoint")}
        for name in _AT_CREATE:
            if want.properties.get(name) not in (None, "", []):
                params[name] = want.properties[name]
        if "DnsOptions" in params:
            params["DnsOptions"] = _dns_options(params["DnsOptions"])
        if want.properties.get("PolicyDocument"):
            params["PolicyDocument"] = documents.as_text(want.properties["PolicyDocument"])
        try:
            endpoint = create_once(ctx, "CreateVpcEndpoint", params, token=want.token)["VpcEndpoint"]
        except AwsError as error:
            if error.code not in _TAKEN:
                raise
            endpoint = self._ours(ctx, want, error)
        is_settled = _state(endpoint) in _SETTLED
        return Made(PhysicalId(endpoint["VpcEndpointId"]), _attributes(endpoint), is_settled=is_settled)

    def _ours(self, ctx: Context, want: Want, refused: AwsError) -> dict[str, Any]:
        """The endpoint of this service in this VPC, if this very create made it earlier."""
        vpc, service = want.properties["VpcId"], want.properties.get("ServiceName") or ""
        filters = {"vpc-id": [vpc], **({"service-name": [service]} if service else {})}
        for endpoint in describe(ctx, "DescribeVpcEndpoints", "VpcEndpoints", filters=filters):
            is_it = endpoint.get("VpcId") == vpc and (not service or endpoint.get("ServiceName") == service)
            if is_it and _state(endpoint) not in _FAILED and tags.are_ours(endpoint.get("Tags"), want):
                return endpoint
        raise refused

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """By its tags."""
        return find_tagged(ctx, lost, "DescribeVpcEndpoints", "VpcEndpoints", key="VpcEndpointId", gone=_FAILED)

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Available, or waiting for whoever runs the service to accept it."""
        endpoint = self._find(ctx, {physical_id: properties}).get(physical_id)
        if endpoint is None:
            return Settle.PENDING, None
        state = _state(endpoint)
        if state in _FAILED:
            why = (endpoint.get("LastError") or {}).get("Message") or endpoint.get("FailureReason") or "no reason given"
            raise ResourceFailed(f"VPC endpoint {physical_id} is {state}: {why}")
        if state in _SETTLED:
            return Settle.DONE, Made(physical_id, _attributes(endpoint))
        return Settle.PENDING, None

    def _find(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[str, dict[str, Any]]:
        """Endpoints by id, looked for in their VPCs: not every server can look for ids without failing for one."""
        vpcs = {properties["VpcId"] for properties in wanted.values()}
        listed = describe(ctx, "DescribeVpcEndpoints", "VpcEndpoints", filters={"vpc-id": vpcs})
        return {item["VpcEndpointId"]: item for item in listed if item["VpcEndpointId"] in wanted}

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The endpoint, unless it is deleted or on its way there."""
        return self.read_many(ctx, {physical_id: properties}).get(physical_id)

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One describe for all."""
        return {
            PhysicalId(key): Seen(self._shape(endpoint, wanted[PhysicalId(key)]), _attributes(endpoint))
            for key, endpoint in self._find(ctx, wanted).items()
            if _state(endpoint) not in ("deleting", "deleted")
        }

    def _shape(self, endpoint: Mapping[str, Any], declared: Props) -> dict[str, Any]:
        seen = {name: endpoint[name] for name in _AT_CREATE if endpoint.get(name) not in (None, "")}
        for name in ("RouteTableIds", "SubnetIds"):
            seen[name] = list(endpoint.get(name) or ())
        seen["SecurityGroupIds"] = [group["GroupId"] for group in endpoint.get("Groups") or ()]
        seen["PrivateDnsEnabled"] = bool(endpoint.get("PrivateDnsEnabled"))
        seen["VpcEndpointType"] = endpoint.get("VpcEndpointType", "Gateway")
        if endpoint.get("PolicyDocument"):
            seen["PolicyDocument"] = documents.as_data(endpoint["PolicyDocument"])
        options, asked = seen.get("DnsOptions"), declared.get("DnsOptions")
        if isinstance(options, dict) and isinstance(asked, dict):
            # AWS answers with a boolean where the template writes text.
            seen["DnsOptions"] = {key: _like(options[key], asked[key]) for key in asked if key in options}
        seen["Tags"] = tags.visible_list(endpoint.get("Tags"))
        return seen

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call for all that differs, and tags."""
        changes = _changes(old, want.properties)
        if changes:
            ctx.aws.call("ec2", "ModifyVpcEndpoint", {"VpcEndpointId": physical_id, **changes})
        ec2_tags.update(ctx, physical_id, old, want)
        return Made(physical_id, is_settled=not changes)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete, read what the answer says was not done, and wait until it is gone."""
        try:
            answer = ctx.aws.call("ec2", "DeleteVpcEndpoints", {"VpcEndpointIds": [physical_id]})
        except AwsError as error:
            if error.code in _GONE:
                return
            raise
        for item in answer.get("Unsuccessful") or ():
            refusal = item.get("Error") or {}
            if refusal.get("Code") in _GONE:
                return
            raise AwsError(
                service="ec2",
                operation="DeleteVpcEndpoints",
                code=refusal.get("Code") or "Unsuccessful",
                reason=refusal.get("Message") or f"{physical_id} was not deleted",
            )

        def look() -> bool | None:
            endpoint = self._find(ctx, {physical_id: properties}).get(physical_id)
            return True if endpoint is None or _state(endpoint) == "deleted" else None

        wait_for(ctx, look, budget_ms=_DELETED_BUDGET_MS, what=f"VPC endpoint {physical_id}: its deletion")


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of ModifyVpcEndpoint that lead from `old` to `new`."""
    changes: dict[str, Any] = {}
    for name, (add, remove) in _LISTS.items():
        before, after = old.get(name) or [], new.get(name) or []
        added, removed = [item for item in after if item not in before], [item for item in before if item not in after]
        changes |= {**({add: added} if added else {}), **({remove: removed} if removed else {})}
    policy = new.get("PolicyDocument")
    if not documents.same(old.get("PolicyDocument") or None, policy or None):
        changes |= {"PolicyDocument": documents.as_text(policy)} if policy else {"ResetPolicy": True}
    if bool(old.get("PrivateDnsEnabled")) != bool(new.get("PrivateDnsEnabled")):
        changes["PrivateDnsEnabled"] = bool(new.get("PrivateDnsEnabled"))
    if new.get("IpAddressType") and old.get("IpAddressType") != new["IpAddressType"]:
        changes["IpAddressType"] = new["IpAddressType"]
    if new.get("DnsOptions") and old.get("DnsOptions") != new["DnsOptions"]:
        changes["DnsOptions"] = _dns_options(new["DnsOptions"])
    return changes


def _dns_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """As the call takes them: the one switch that a template writes as text is a boolean there."""
    name = "PrivateDnsOnlyForInboundResolverEndpoint"
    if name not in options:
        return dict(options)
    text = str(options[name]).lower()
    return {**options, name: text in ("true", "onlyinboundresolver")}


def _like(seen: Any, declared: Any) -> Any:
    """A switch in the spelling of the template, when both mean the same."""
    if isinstance(seen, bool) and isinstance(declared, str):
        is_on = declared.lower() in ("true", "onlyinboundresolver")
        return declared if is_on is seen else str(seen).lower()
    return seen


def _state(endpoint: Mapping[str, Any]) -> str:
    """In lower case: the model and the wire spell it differently."""
    return str(endpoint.get("State") or "available").lower().replace("-", "")


def _attributes(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Id": endpoint["VpcEndpointId"],
        "NetworkInterfaceIds": list(endpoint.get("NetworkInterfaceIds") or ()),
        "DnsEntries": [
            f"{entry.get('HostedZoneId', '')}:{entry.get('DnsName', '')}" for entry in endpoint.get("DnsEntries") or ()
        ],
    }
    created = endpoint.get("CreationTimestamp")
    if created is not None:
        found["CreationTimestamp"] = created.isoformat() if isinstance(created, datetime) else str(created)
    return found
