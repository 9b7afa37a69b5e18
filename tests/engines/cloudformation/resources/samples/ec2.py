"""EC2: networks, gateways and routes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

RED = [{"Key": "Name", "Value": "suite"}, {"Key": "colour", "Value": "red"}]
BLUE = [{"Key": "Name", "Value": "suite"}, {"Key": "colour", "Value": "blue"}]


def _count(operation: str, member: str) -> Callable[[Client, Given], int]:
    def count(client: Client, _: Given) -> int:
        items: list[dict[str, Any]] = getattr(client("ec2"), operation)()[member]
        return len([item for item in items if item.get("State") not in ("deleted", "deleting")])

    return count


def _tags(operation: str, member: str, key: str) -> Callable[[Client, str, Given], Mapping[str, str]]:
    """From the resource's own describe call, since not every server lists tags by themselves."""

    def tags(client: Client, physical_id: str, _: Given) -> Mapping[str, str]:
        items = getattr(client("ec2"), operation)()[member]
        (item,) = [item for item in items if item[key] == physical_id]
        return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}

    return tags


def _vpc(client: Client) -> Given:
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    return {"vpc": vpc}


def _network(client: Client) -> Given:
    ec2 = client("ec2")
    vpc = _vpc(client)["vpc"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone="us-east-1a")["Subnet"][
            "SubnetId"
        ]
        for number in range(2)
    ]
    tables = [ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"] for _ in range(2)]
    gateways = [ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"] for _ in range(2)]
    return {"vpc": vpc, "subnets": subnets, "tables": tables, "gateways": gateways}


def _attached(client: Client) -> Given:
    given = _network(client)
    ec2 = client("ec2")
    ec2.attach_internet_gateway(InternetGatewayId=given["gateways"][0], VpcId=given["vpc"])
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=given["subnets"][0], AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    return {**given, "nat": nat}


def _with_address(client: Client) -> Given:
    return {**_network(client), "allocation": client("ec2").allocate_address(Domain="vpc")["AllocationId"]}


def _interface(client: Client) -> Given:
    given = _network(client)
    ec2 = client("ec2")
    groups = [
        ec2.create_security_group(GroupName=name, Description=name, VpcId=given["vpc"])["GroupId"]
        for name in ("one", "two")
    ]
    return {**given, "groups": groups}


def _routes(client: Client, given: Given) -> int:
    (table,) = client("ec2").describe_route_tables(RouteTableIds=[given["tables"][0]])["RouteTables"]
    return len([route for route in table["Routes"] if route.get("GatewayId") != "local"])


def _associations(client: Client, given: Given) -> int:
    tables = client("ec2").describe_route_tables()["RouteTables"]
    associations = [item for table in tables for item in table.get("Associations", [])]
    return len([item for item in associations if item.get("SubnetId") == given["subnets"][0]])


def _attachments(client: Client, given: Given) -> int:
    gateways = client("ec2").describe_internet_gateways()["InternetGateways"]
    return len([item for gateway in gateways for item in gateway["Attachments"] if item["VpcId"] == given["vpc"]])


class _Address:
    """Equal to any IPv4 address: which one AWS gives cannot be known."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", other) is not None

    def __hash__(self) -> int:
        return 0


SAMPLES = (
    Sample(
        type="AWS::EC2::VPC",
        properties=lambda _: {
            "CidrBlock": "10.7.0.0/16",
            "EnableDnsHostnames": True,
            "EnableDnsSupport": True,
            "InstanceTenancy": "default",
            "Tags": RED,
        },
        update=lambda _: {"EnableDnsHostnames": False, "EnableDnsSupport": False, "Tags": BLUE},
        remove=("EnableDnsHostnames", "EnableDnsSupport", "Tags"),
        count=_count("describe_vpcs", "Vpcs"),
        attributes=frozenset({"VpcId", "CidrBlock", "CidrBlockAssociations", "Ipv6CidrBlocks"}),
        tags=_tags("describe_vpcs", "Vpcs", "VpcId"),
    ),
    Sample(
        type="AWS::EC2::Subnet",
        properties=lambda given: {
            "AvailabilityZone": "us-east-1b",
            "CidrBlock": "10.1.9.0/24",
            "MapPublicIpOnLaunch": True,
            "Tags": RED,
            "VpcId": given["vpc"],
        },
        update=lambda _: {"MapPublicIpOnLaunch": False, "Tags": BLUE},
        remove=("MapPublicIpOnLaunch", "Tags"),
        prepare=_vpc,
        count=_count("describe_subnets", "Subnets"),
        attributes=frozenset({"SubnetId", "VpcId", "CidrBlock", "AvailabilityZone", "Ipv6CidrBlocks"}),
        tags=_tags("describe_subnets", "Subnets", "SubnetId"),
    ),
    Sample(
        type="AWS::EC2::InternetGateway",
        properties=lambda _: {"Tags": RED},
        update=lambda _: {"Tags": BLUE},
        remove=("Tags",),
        count=_count("describe_internet_gateways", "InternetGateways"),
        attributes=frozenset({"InternetGatewayId"}),
        tags=_tags("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
    ),
    Sample(
        type="AWS::EC2::VPCGatewayAttachment",
        properties=lambda given: {"InternetGatewayId": given["gateways"][0], "VpcId": given["vpc"]},
        update=lambda given: {"InternetGatewayId": given["gateways"][1]},
        prepare=_network,
        count=_attachments,
        attributes=frozenset({"AttachmentType"}),
    ),
    Sample(
        type="AWS::EC2::EIP",
        properties=lambda _: {"Domain": "vpc", "Tags": RED},
        update=lambda _: {"Tags": BLUE},
        remove=("Tags",),
        count=_count("describe_addresses", "Addresses"),
        attributes=frozenset({"AllocationId", "PublicIp"}),
        ref=lambda _id, _given: _Address(),
        tags=_tags("describe_addresses", "Addresses", "AllocationId"),
    ),
    Sample(
        type="AWS::EC2::NatGateway",
        properties=lambda given: {
            "AllocationId": given["allocation"],
            "SubnetId": given["subnets"][0],
            "Tags": RED,
        },
        update=lambda _: {"Tags": BLUE},
        remove=("Tags",),
        prepare=_with_address,
        count=_count("describe_nat_gateways", "NatGateways"),
        attributes=frozenset({"NatGatewayId"}),
        tags=_tags("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ),
    Sample(
        type="AWS::EC2::VPCEndpoint",
        name="gateway",
        properties=lambda given: {
            "RouteTableIds": [given["tables"][0]],
            "ServiceName": "com.amazonaws.us-east-1.s3",
            "Tags": RED,
            "VpcEndpointType": "Gateway",
            "VpcId": given["vpc"],
        },
        update=lambda given: {"RouteTableIds": [given["tables"][1]], "Tags": BLUE},
        remove=("Tags",),
        prepare=_network,
        count=_count("describe_vpc_endpoints", "VpcEndpoints"),
        attributes=frozenset({"Id", "DnsEntries", "NetworkInterfaceIds"}),
        emulators=("ministack",),
        tags=_tags("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ),
    Sample(
        type="AWS::EC2::VPCEndpoint",
        name="interface",
        properties=lambda given: {
            "PrivateDnsEnabled": True,
            "SecurityGroupIds": [given["groups"][0]],
            "ServiceName": "com.amazonaws.us-east-1.sqs",
            "SubnetIds": given["subnets"],
            "VpcEndpointType": "Interface",
            "VpcId": given["vpc"],
        },
        update=lambda given: {"SubnetIds": given["subnets"][:1]},
        prepare=_interface,
        count=_count("describe_vpc_endpoints", "VpcEndpoints"),
        attributes=frozenset({"Id", "NetworkInterfaceIds"}),
        blind={"ministack": frozenset({"PrivateDnsEnabled", "SecurityGroupIds"})},
        tags=_tags("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ),
    Sample(
        type="AWS::EC2::RouteTable",
        properties=lambda given: {"VpcId": given["vpc"], "Tags": RED},
        update=lambda _: {"Tags": BLUE},
        remove=("Tags",),
        prepare=_vpc,
        count=_count("describe_route_tables", "RouteTables"),
        attributes=frozenset({"RouteTableId"}),
        tags=_tags("describe_route_tables", "RouteTables", "RouteTableId"),
    ),
    Sample(
        type="AWS::EC2::Route",
        properties=lambda given: {
            "DestinationCidrBlock": "0.0.0.0/0",
            "GatewayId": given["gateways"][0],
            "RouteTableId": given["tables"][0],
        },
        prepare=_attached,
        count=_routes,
        attributes=frozenset({"CidrBlock"}),
    ),
    Sample(
        type="AWS::EC2::SubnetRouteTableAssociation",
        properties=lambda given: {"RouteTableId": given["tables"][0], "SubnetId": given["subnets"][0]},
        prepare=_network,
        count=_associations,
        attributes=frozenset({"Id"}),
    ),
)
