"""Networks, gateways and routes: costly attributes, slow and failed states, what is there already."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from tests.engines.cloudformation.resources.samples.ec2 import _attached, _network, _vpc
from tests.engines.cloudformation.resources.scripted import scripted, wanted

from stackhold.engines.cloudformation.resources.ec2_gateways import Eip, NatGateway, VpcEndpoint
from stackhold.engines.cloudformation.resources.ec2_network import InternetGateway, Subnet, Vpc, VpcGatewayAttachment
from stackhold.engines.cloudformation.resources.ec2_routing import Route, RouteTable, SubnetRouteTableAssociation
from stackhold.engines.cloudformation.resources.handler import Lost, Settle
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.testing.scripted_aws import ScriptedAws, refused

if TYPE_CHECKING:
    from tests.engines.cloudformation.resources.conftest import World

    from stackhold.engines.cloudformation.resources.handler import Handler

BOTH = pytest.mark.parametrize("world", ["ministack", "moto"], indirect=True)
EVERYWHERE = "0.0.0.0/0"


@pytest.mark.emulator
@BOTH
def test_only_a_single_read_tells_a_vpcs_default_group_and_list(world: World) -> None:
    properties = {"CidrBlock": "10.7.0.0/16"}
    made = Vpc().create(world.context, world.want(properties, name=""))
    costly = {"DefaultSecurityGroup", "DefaultNetworkAcl"}
    seen = Vpc().read(world.context, made.physical_id, properties)
    assert seen is not None
    assert costly <= seen.attributes.keys()
    assert seen.attributes["DefaultSecurityGroup"].startswith("sg-")
    assert seen.attributes["DefaultNetworkAcl"].startswith("acl-")
    many = Vpc().read_many(world.context, {made.physical_id: properties})
    assert not costly & many[made.physical_id].attributes.keys()


@pytest.mark.emulator
@BOTH
def test_a_bulk_read_finds_each_and_leaves_out_the_missing(world: World) -> None:
    made = [
        Vpc().create(world.context, world.want({"CidrBlock": f"10.{n}.0.0/16"}, name="")).physical_id for n in (7, 8)
    ]
    asked: dict[PhysicalId, Any] = {physical_id: {} for physical_id in [*made, PhysicalId("vpc-00000000")]}
    assert Vpc().read_many(world.context, asked).keys() == set(made)


@pytest.mark.parametrize(
    ("handler", "operation", "member", "properties"),
    [
        (Vpc(), "CreateVpc", {"Vpc": {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16"}}, {"CidrBlock": "10.0.0.0/16"}),
        (
            Subnet(),
            "CreateSubnet",
            {"Subnet": {"SubnetId": "subnet-1", "VpcId": "vpc-1", "CidrBlock": "10.0.0.0/24"}},
            {"CidrBlock": "10.0.0.0/24", "VpcId": "vpc-1"},
        ),
        (InternetGateway(), "CreateInternetGateway", {"InternetGateway": {"InternetGatewayId": "igw-1"}}, {}),
        (Eip(), "AllocateAddress", {"AllocationId": "eipalloc-1", "PublicIp": "192.0.2.1"}, {}),
    ],
)
def test_a_create_without_name_or_token_is_never_sent_twice(
    handler: Handler, operation: str, member: dict[str, Any], properties: dict[str, Any]
) -> None:
    aws = ScriptedAws({operation: [member]})
    noted: list[str] = []
    context = dataclasses.replace(scripted(aws), note=noted.append)
    made = handler.create(context, wanted(properties))
    assert aws.never_resent == {operation}
    assert [name for name, _ in aws.calls] == [operation]
    assert noted in ([made.physical_id], [])
    (sent,) = aws.asked(operation)
    there = {tag["Key"] for tag in sent["TagSpecifications"][0]["Tags"]}
    assert "stackhold:logical-id" in there


WITH_TOKEN = pytest.mark.parametrize(
    ("handler", "operation", "member"),
    [
        (NatGateway(), "CreateNatGateway", {"NatGateway": {"NatGatewayId": "nat-1", "State": "pending"}}),
        (RouteTable(), "CreateRouteTable", {"RouteTable": {"RouteTableId": "rtb-1", "VpcId": "vpc-1"}}),
        (VpcEndpoint(), "CreateVpcEndpoint", {"VpcEndpoint": {"VpcEndpointId": "vpce-1", "State": "Pending"}}),
    ],
)


@WITH_TOKEN
def test_a_token_that_was_sent_with_another_request_is_given_up(
    handler: Handler, operation: str, member: dict[str, Any]
) -> None:
    aws = ScriptedAws({operation: [refused(operation, "IdempotentParameterMismatch"), member]})
    want = wanted({"VpcId": "vpc-1", "SubnetId": "subnet-1"})
    handler.create(scripted(aws), want)
    first, second = (sent["ClientToken"] for sent in aws.asked(operation))
    assert first == want.token
    assert second != first
    assert len(second) == len(first)


@pytest.mark.parametrize(
    ("handler", "operation", "member", "key", "state"),
    [
        (NatGateway(), "DescribeNatGateways", "NatGateways", "NatGatewayId", "deleted"),
        (NatGateway(), "DescribeNatGateways", "NatGateways", "NatGatewayId", "failed"),
        (VpcEndpoint(), "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", "Deleting"),
    ],
)
def test_what_is_deleted_and_still_listed_with_our_tags_is_not_there(
    handler: Handler, operation: str, member: str, key: str, state: str
) -> None:
    tags = {"stackhold:run": "run-1", "stackhold:logical-id": "Thing"}
    listed = [{"Key": name, "Value": value} for name, value in tags.items()]
    items = [{key: "old", "State": state, "Tags": listed}, {key: "new", "State": "available", "Tags": listed}]
    lost = Lost(LogicalId("Thing"), "", is_own_name=False, tags=tags, place={"VpcId": "vpc-1"})
    assert handler.find(scripted(ScriptedAws({operation: [{member: items}]})), lost) == "new"
    assert handler.find(scripted(ScriptedAws({operation: [{member: items[:1]}]})), lost) is None


@WITH_TOKEN
def test_a_create_with_a_token_carries_ours(handler: Handler, operation: str, member: dict[str, Any]) -> None:
    aws = ScriptedAws({operation: [member]})
    want = wanted({"VpcId": "vpc-1", "SubnetId": "subnet-1"})
    handler.create(scripted(aws), want)
    assert aws.asked(operation)[0]["ClientToken"] == want.token
    assert aws.never_resent == set()


def test_a_vpc_that_is_not_known_everywhere_yet_gets_its_attribute_later() -> None:
    unknown = refused("ModifyVpcAttribute", "InvalidVpcID.NotFound")
    vpc = {"Vpc": {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16", "State": "pending"}}
    aws = ScriptedAws({"CreateVpc": [vpc], "ModifyVpcAttribute": [unknown, unknown, {}]})
    made = Vpc().create(scripted(aws), wanted({"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True}))
    assert not made.is_settled
    assert len(aws.asked("CreateVpc")) == 1
    assert aws.asked("ModifyVpcAttribute")[-1] == {"VpcId": "vpc-1", "EnableDnsHostnames": {"Value": True}}


def test_dns_support_is_switched_on_first_and_off_last() -> None:
    def order(old: bool, new: bool) -> list[str]:
        aws = ScriptedAws({"ModifyVpcAttribute": [{}]})
        both = ("EnableDnsSupport", "EnableDnsHostnames")
        want = wanted(dict.fromkeys(both, new))
        Vpc().update(scripted(aws), PhysicalId("vpc-1"), dict.fromkeys(both, old), want)
        return [next(name for name in params if name != "VpcId") for params in aws.asked("ModifyVpcAttribute")]

    assert order(False, True) == ["EnableDnsSupport", "EnableDnsHostnames"]
    assert order(True, False) == ["EnableDnsHostnames", "EnableDnsSupport"]


def test_tenancy_changes_in_place_towards_default_only() -> None:
    changed = frozenset({"InstanceTenancy"})
    assert Vpc().replaces({"InstanceTenancy": "dedicated"}, {}, changed) is False
    assert Vpc().replaces({}, {"InstanceTenancy": "dedicated"}, changed) is True


@pytest.mark.emulator
@pytest.mark.parametrize("world", ["moto"], indirect=True)
def test_a_subnet_of_that_range_is_ours_by_its_tags_alone(world: World) -> None:
    vpc = _vpc(world.client)["vpc"]
    properties = {"VpcId": vpc, "CidrBlock": "10.1.5.0/24", "MapPublicIpOnLaunch": True}
    first = Subnet().create(world.context, world.want(properties, name=""))
    again = Subnet().create(world.context, world.want(properties, name=""))
    assert again.physical_id == first.physical_id
    with pytest.raises(AwsError) as caught:
        Subnet().create(world.context, world.want(properties, name="", run="run-2"))
    assert caught.value.code == "InvalidSubnet.Conflict"
    assert "import" in caught.value.hint


def test_a_subnets_ipv6_range_is_changed_in_place_old_one_first() -> None:
    def subnet(*states: tuple[str, str]) -> dict[str, Any]:
        entries = [
            {"AssociationId": f"a-{block}", "Ipv6CidrBlock": block, "Ipv6CidrBlockState": {"State": state}}
            for block, state in states
        ]
        return {"Subnets": [{"SubnetId": "subnet-1", "Ipv6CidrBlockAssociationSet": entries}]}

    aws = ScriptedAws(
        {
            "DescribeSubnets": [
                subnet(("old", "associated")),
                subnet(("old", "disassociating")),
                subnet(("old", "disassociated")),
            ],
            "DisassociateSubnetCidrBlock": [{}],
            "AssociateSubnetCidrBlock": [{}],
        }
    )
    old, new = {"Ipv6CidrBlock": "old"}, {"Ipv6CidrBlock": "new"}
    made = Subnet().update(scripted(aws), PhysicalId("subnet-1"), old, wanted(new))
    assert made.attributes == {"Ipv6CidrBlocks": ["new"]}
    assert aws.asked("DisassociateSubnetCidrBlock") == [{"AssociationId": "a-old"}]
    assert [name for name, _ in aws.calls][-1] == "AssociateSubnetCidrBlock"


@pytest.mark.parametrize(
    ("old", "new", "calls"),
    [
        ({}, {"MapPublicIpOnLaunch": False}, []),
        ({"MapPublicIpOnLaunch": True}, {}, [{"MapPublicIpOnLaunch": {"Value": False}}]),
        (
            {},
            {"PrivateDnsNameOptionsOnLaunch": {"HostnameType": "resource-name", "EnableResourceNameDnsARecord": True}},
            [
                {"PrivateDnsHostnameTypeOnLaunch": "resource-name"},
                {"EnableResourceNameDnsARecordOnLaunch": {"Value": True}},
            ],
        ),
        (
            {"PrivateDnsNameOptionsOnLaunch": {"HostnameType": "resource-name"}},
            {},
            [{"PrivateDnsHostnameTypeOnLaunch": "ip-name"}],
        ),
        ({"EnableLniAtDeviceIndex": 1}, {}, [{"DisableLniAtDeviceIndex": {"Value": True}}]),
    ],
)
def test_each_attribute_of_a_subnet_is_one_call(
    old: dict[str, Any], new: dict[str, Any], calls: list[dict[str, Any]]
) -> None:
    aws = ScriptedAws({"ModifySubnetAttribute": [{}]})
    Subnet().update(scripted(aws), PhysicalId("subnet-1"), old, wanted(new))
    assert aws.asked("ModifySubnetAttribute") == [{"SubnetId": "subnet-1", **call} for call in calls]


@pytest.mark.emulator
def test_an_attachment_that_is_there_already_is_as_wanted(world: World) -> None:
    there = _network(world.client)
    properties = {"InternetGatewayId": there["gateways"][0], "VpcId": there["vpc"]}
    first = VpcGatewayAttachment().create(world.context, world.want(properties, name=""))
    again = VpcGatewayAttachment().create(world.context, world.want(properties, name=""))
    assert first.physical_id == again.physical_id == f"IGW|{there['vpc']}"


def test_an_attachment_of_another_gateway_is_refused() -> None:
    aws = ScriptedAws(
        {
            "AttachInternetGateway": [refused("AttachInternetGateway", "Resource.AlreadyAssociated")],
            "DescribeInternetGateways": [
                {"InternetGateways": [{"InternetGatewayId": "igw-2", "Attachments": [{"VpcId": "vpc-1"}]}]}
            ],
        }
    )
    with pytest.raises(AwsError):
        VpcGatewayAttachment().create(scripted(aws), wanted({"InternetGatewayId": "igw-1", "VpcId": "vpc-1"}))


def test_a_vpn_gateway_is_attached_when_aws_says_so() -> None:
    def gateway(state: str) -> dict[str, Any]:
        return {"VpnGateways": [{"VpnGatewayId": "vgw-1", "VpcAttachments": [{"VpcId": "vpc-1", "State": state}]}]}

    aws = ScriptedAws(
        {
            "AttachVpnGateway": [{"VpcAttachment": {"VpcId": "vpc-1", "State": "attaching"}}],
            "DescribeVpnGateways": [gateway("attaching"), gateway("attached")],
        }
    )
    properties = {"VpnGatewayId": "vgw-1", "VpcId": "vpc-1"}
    made = VpcGatewayAttachment().create(scripted(aws), wanted(properties))
    assert (made.physical_id, made.is_settled) == ("VGW|vpc-1", False)
    states = [VpcGatewayAttachment().settled(scripted(aws), made.physical_id, properties)[0] for _ in range(2)]
    assert states == [Settle.PENDING, Settle.DONE]


@pytest.mark.emulator
@pytest.mark.parametrize("form", ["{ip}", "{ip}|{allocation}"])
def test_an_address_that_another_tool_recorded_by_its_ip_is_found_and_released(world: World, form: str) -> None:
    made = Eip().create(world.context, world.want({"Domain": "vpc"}, name=""))
    recorded = PhysicalId(form.format(ip=made.attributes["PublicIp"], allocation=made.physical_id))
    assert Eip().ref(recorded, {}, {}) == made.attributes["PublicIp"]
    assert Eip().read(world.context, recorded, {}) is not None
    Eip().delete(world.context, recorded, {})
    assert world.client("ec2").describe_addresses()["Addresses"] == []
    Eip().delete(world.context, recorded, {})


def test_an_address_moves_from_instance_to_instance() -> None:
    address = {"AllocationId": "eipalloc-1", "PublicIp": "192.0.2.1", "AssociationId": "eipassoc-1"}
    aws = ScriptedAws(
        {"DescribeAddresses": [{"Addresses": [address]}], "DisassociateAddress": [{}], "AssociateAddress": [{}]}
    )
    Eip().update(scripted(aws), PhysicalId("eipalloc-1"), {"InstanceId": "i-1"}, wanted({"InstanceId": "i-2"}))
    assert aws.asked("DisassociateAddress") == [{"AssociationId": "eipassoc-1"}]
    assert aws.asked("AssociateAddress") == [{"AllocationId": "eipalloc-1", "InstanceId": "i-2"}]


def nat(state: str, **more: Any) -> dict[str, Any]:
    return {"NatGateways": [{"NatGatewayId": "nat-1", "SubnetId": "subnet-1", "State": state, **more}]}


def test_a_nat_gateway_tells_its_interface_once_it_is_available() -> None:
    addresses = [{"AllocationId": "eipalloc-1", "NetworkInterfaceId": "eni-1", "IsPrimary": True}]
    aws = ScriptedAws({"DescribeNatGateways": [nat("pending"), nat("available", NatGatewayAddresses=addresses)]})
    assert NatGateway().settled(scripted(aws), PhysicalId("nat-1"), {}) == (Settle.PENDING, None)
    state, made = NatGateway().settled(scripted(aws), PhysicalId("nat-1"), {})
    assert state is Settle.DONE
    assert made is not None
    assert made.attributes == {"NatGatewayId": "nat-1", "EniId": "eni-1"}


def test_a_nat_gateway_that_fails_says_why() -> None:
    failed = nat("failed", FailureCode="Gateway.NotAttached", FailureMessage="no internet gateway")
    aws = ScriptedAws({"DescribeNatGateways": [failed]})
    with pytest.raises(ResourceFailed, match=r"Gateway\.NotAttached: no internet gateway"):
        NatGateway().settled(scripted(aws), PhysicalId("nat-1"), {})


def test_a_deleted_nat_gateway_is_waited_for_and_then_gone_though_listed() -> None:
    aws = ScriptedAws(
        {"DeleteNatGateway": [{}], "DescribeNatGateways": [nat("deleting"), nat("deleting"), nat("deleted")]}
    )
    NatGateway().delete(scripted(aws), PhysicalId("nat-1"), {})
    assert len(aws.asked("DescribeNatGateways")) == 3
    assert NatGateway().read(scripted(aws), PhysicalId("nat-1"), {}) is None


def test_an_endpoint_that_was_not_deleted_is_an_error_though_the_call_succeeded() -> None:
    def unsuccessful(code: str) -> dict[str, Any]:
        return {"Unsuccessful": [{"ResourceId": "vpce-1", "Error": {"Code": code, "Message": "no"}}]}

    aws = ScriptedAws({"DeleteVpcEndpoints": [unsuccessful("OperationNotPermitted")]})
    with pytest.raises(AwsError) as caught:
        VpcEndpoint().delete(scripted(aws), PhysicalId("vpce-1"), {"VpcId": "vpc-1"})
    assert caught.value.code == "OperationNotPermitted"
    gone = ScriptedAws({"DeleteVpcEndpoints": [unsuccessful("InvalidVpcEndpoint.NotFound")]})
    VpcEndpoint().delete(scripted(gone), PhysicalId("vpce-1"), {"VpcId": "vpc-1"})


def test_an_endpoints_policy_is_reset_when_it_is_taken_out() -> None:
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "*"}]}
    aws = ScriptedAws({"ModifyVpcEndpoint": [{}]})
    old = {"VpcId": "vpc-1", "PolicyDocument": policy, "RouteTableIds": ["rtb-1", "rtb-2"]}
    new = {"VpcId": "vpc-1", "RouteTableIds": ["rtb-2", "rtb-3"]}
    VpcEndpoint().update(scripted(aws), PhysicalId("vpce-1"), old, wanted(new))
    assert aws.asked("ModifyVpcEndpoint") == [
        {
            "VpcEndpointId": "vpce-1",
            "AddRouteTableIds": ["rtb-3"],
            "RemoveRouteTableIds": ["rtb-1"],
            "ResetPolicy": True,
        }
    ]


@pytest.mark.parametrize("state", ["Failed", "rejected", "deleted"])
def test_an_endpoint_that_fails_says_so(state: str) -> None:
    endpoint = {"VpcEndpointId": "vpce-1", "State": state, "LastError": {"Message": "too many"}}
    aws = ScriptedAws({"DescribeVpcEndpoints": [{"VpcEndpoints": [endpoint]}]})
    with pytest.raises(ResourceFailed, match="too many"):
        VpcEndpoint().settled(scripted(aws), PhysicalId("vpce-1"), {"VpcId": "vpc-1"})


@pytest.mark.emulator
@BOTH
def test_a_route_gets_another_target_in_one_step(world: World) -> None:
    there = _attached(world.client)
    old = {"RouteTableId": there["tables"][0], "DestinationCidrBlock": EVERYWHERE, "GatewayId": there["gateways"][0]}
    new = {"RouteTableId": there["tables"][0], "DestinationCidrBlock": EVERYWHERE, "NatGatewayId": there["nat"]}
    made = Route().create(world.context, world.want(old, name=""))
    Route().update(world.context, made.physical_id, old, world.want(new, name=""))
    seen = Route().read(world.context, made.physical_id, new)
    assert seen is not None
    assert seen.properties["NatGatewayId"] == there["nat"]


@pytest.mark.emulator
@pytest.mark.parametrize("world", ["moto"], indirect=True)
def test_a_route_that_is_there_is_taken_on_only_with_the_same_target(world: World) -> None:
    there = _attached(world.client)
    properties = {
        "RouteTableId": there["tables"][0],
        "DestinationCidrBlock": EVERYWHERE,
        "GatewayId": there["gateways"][0],
    }
    first = Route().create(world.context, world.want(properties, name=""))
    assert Route().create(world.context, world.want(properties, name="")).physical_id == first.physical_id
    other = {"RouteTableId": there["tables"][0], "DestinationCidrBlock": EVERYWHERE, "NatGatewayId": there["nat"]}
    with pytest.raises(AwsError) as caught:
        Route().create(world.context, world.want(other, name=""))
    assert caught.value.code == "RouteAlreadyExists"


def test_routes_are_told_in_the_words_of_the_template() -> None:
    routes = [
        {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "vpce-1"},
        {"DestinationIpv6CidrBlock": "2001:db8::/32", "InstanceId": "i-1", "NetworkInterfaceId": "eni-1"},
    ]
    aws = ScriptedAws({"DescribeRouteTables": [{"RouteTables": [{"RouteTableId": "rtb-1", "Routes": routes}]}]})
    declared: dict[PhysicalId, dict[str, Any]] = {
        PhysicalId("one"): {"DestinationCidrBlock": "10.0.3.4/16", "VpcEndpointId": "vpce-1"},
        PhysicalId("two"): {"DestinationIpv6CidrBlock": "2001:0db8::/32", "NetworkInterfaceId": "eni-1"},
        PhysicalId("none"): {"DestinationCidrBlock": EVERYWHERE, "GatewayId": "igw-1"},
    }
    wanted = {key: {"RouteTableId": "rtb-1", **value} for key, value in declared.items()}
    seen = Route().read_many(scripted(aws), wanted)
    assert {key: one.properties for key, one in seen.items()} == {
        key: wanted[key] for key in (PhysicalId("one"), PhysicalId("two"))
    }
    assert len(aws.calls) == 1


@pytest.mark.emulator
def test_a_subnet_moves_to_another_table_under_a_new_association(world: World) -> None:
    there = _network(world.client)
    old = {"RouteTableId": there["tables"][0], "SubnetId": there["subnets"][0]}
    new = {**old, "RouteTableId": there["tables"][1]}
    handler = SubnetRouteTableAssociation()
    made = handler.create(world.context, world.want(old, name=""))
    moved = handler.update(world.context, made.physical_id, old, world.want(new, name=""))
    seen = handler.read(world.context, moved.physical_id, new)
    assert seen is not None
    assert seen.properties == new
    assert moved.attributes == {"Id": moved.physical_id}


def test_a_subnet_that_uses_another_table_already_is_not_taken_over() -> None:
    association = {"RouteTableAssociationId": "rtbassoc-1", "SubnetId": "subnet-1", "RouteTableId": "rtb-2"}
    table = {"RouteTableId": "rtb-2", "Associations": [association]}
    aws = ScriptedAws(
        {
            "AssociateRouteTable": [refused("AssociateRouteTable", "Resource.AlreadyAssociated")],
            "DescribeRouteTables": [{"RouteTables": [table]}],
        }
    )
    handler = SubnetRouteTableAssociation()
    with pytest.raises(AwsError) as caught:
        handler.create(scripted(aws), wanted({"RouteTableId": "rtb-1", "SubnetId": "subnet-1"}))
    assert "import" in caught.value.hint
    made = handler.create(scripted(aws), wanted({"RouteTableId": "rtb-2", "SubnetId": "subnet-1"}))
    assert made.physical_id == "rtbassoc-1"
