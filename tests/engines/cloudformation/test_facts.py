"""What the account says about the values of parameters, on the emulators."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from stackhold.adapters.aws import AwsSession
from stackhold.engines.cloudformation.facts import AwsFacts
from stackhold.model.ids import Region
from stackhold.testing.proxy import SlowProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.emulator

ABSENT: dict[str, str] = {
    "AWS::EC2::AvailabilityZone::Name": "us-east-1z",
    "AWS::EC2::Image::Id": "ami-0123456789abcdef0",
    "AWS::EC2::Instance::Id": "i-0123456789abcdef0",
    "AWS::EC2::KeyPair::KeyName": "nobody",
    "AWS::EC2::SecurityGroup::GroupName": "nobody",
    "AWS::EC2::SecurityGroup::Id": "sg-0123456789abcdef0",
    "AWS::EC2::Subnet::Id": "subnet-0123456789abcdef0",
    "AWS::EC2::VPC::Id": "vpc-0123456789abcdef0",
    "AWS::EC2::Volume::Id": "vol-0123456789abcdef0",
    "AWS::Route53::HostedZone::Id": "Z0123456789ABCDEFGHIJ",
}


def made(client: Callable[[str], Any]) -> Mapping[str, str]:
    """One of each in the account."""
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.1.0/24")["Subnet"]["SubnetId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.create_key_pair(KeyName="mine")
    group = ec2.create_security_group(GroupName="web", Description="web", VpcId=vpc)["GroupId"]
    started = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, SubnetId=subnet)["Instances"][0]
    volume = ec2.create_volume(Size=1, AvailabilityZone="us-east-1a")["VolumeId"]
    zone = client("route53").create_hosted_zone(Name="example.org", CallerReference="1")["HostedZone"]["Id"]
    return {
        "AWS::EC2::AvailabilityZone::Name": "us-east-1a",
        "AWS::EC2::Image::Id": image,
        "AWS::EC2::Instance::Id": started["InstanceId"],
        "AWS::EC2::KeyPair::KeyName": "mine",
        "AWS::EC2::SecurityGroup::GroupName": "web",
        "AWS::EC2::SecurityGroup::Id": group,
        "AWS::EC2::Subnet::Id": subnet,
        "AWS::EC2::VPC::Id": vpc,
        "AWS::EC2::Volume::Id": volume,
        "AWS::Route53::HostedZone::Id": zone.rpartition("/")[2],
    }


def test_what_exists_is_told_from_what_does_not_by_one_call_per_type(
    moto: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with SlowProxy(moto.url) as proxy:
        for name, value in {**moto.environment(), "AWS_ENDPOINT_URL": proxy.url}.items():
            monkeypatch.setenv(name, value)

        def client(service: str) -> Any:
            return boto3.client(
                service,
                endpoint_url=moto.url,
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )

        there = made(client)
        facts = AwsFacts(AwsSession(region=Region("us-east-1"), profile=None).aws())
        for type_name, value in there.items():
            before = len(proxy.calls)
            assert facts.existing(type_name, [value, ABSENT[type_name], ""]) >= {value}, type_name
            calls = len(proxy.calls) - before
            assert calls == (2 if "HostedZone" in type_name else 1), type_name
            assert not facts.existing(type_name, [ABSENT[type_name], "", "*"]) & {ABSENT[type_name], "", "*"}, type_name
        assert facts.existing("AWS::EC2::VPC::Id", [""]) == frozenset()
