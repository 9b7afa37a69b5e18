"""What a template's evaluation asks the account: zones, plain SSM parameters, and whether what parameters name exists.

What exists is asked for by filter, one call per type: a value that is not there is then left out of the answer and
fails no call. A hosted zone has no filter and is asked for by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import AwsError, Bug, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackhold.engines.cloudformation.template.desired import Facts
    from stackhold.ports.aws import Aws

_ZONE = "availability-zone"
_MOST_VALUES = 200
"""Of one filter."""
_HOSTED_ZONE = "AWS::Route53::HostedZone::Id"
_NO_ZONE = frozenset({"NoSuchHostedZone", "InvalidInput", "ParamValidation"})
"""Of that id; the last two for an id that no zone can have."""


@dataclass(frozen=True, slots=True)
class _Describe:
    """How the values of one parameter type are looked for: what is called, by which filter, and where they stand."""

    operation: str
    by: str
    items: str
    key: str
    more: Mapping[str, Any] = field(default_factory=dict)

    def found(self, page: Mapping[str, Any]) -> Iterator[str]:
        """The values in an answer."""
        for item in page.get(self.items, ()):
            yield from (str(each[self.key]) for each in item.get("Instances", (item,)) if self.key in each)


_DESCRIBED: Final = {
    "AWS::EC2::AvailabilityZone::Name": _Describe(
        "DescribeAvailabilityZones", "zone-name", "AvailabilityZones", "ZoneName"
    ),
    "AWS::EC2::Image::Id": _Describe("DescribeImages", "image-id", "Images", "ImageId", {"IncludeDeprecated": True}),
    "AWS::EC2::Instance::Id": _Describe("DescribeInstances", "instance-id", "Reservations", "InstanceId"),
    "AWS::EC2::KeyPair::KeyName": _Describe("DescribeKeyPairs", "key-name", "KeyPairs", "KeyName"),
    "AWS::EC2::SecurityGroup::GroupName": _Describe(
        "DescribeSecurityGroups", "group-name", "SecurityGroups", "GroupName"
    ),
    "AWS::EC2::SecurityGroup::Id": _Describe("DescribeSecurityGroups", "group-id", "SecurityGroups", "GroupId"),
    "AWS::EC2::Subnet::Id": _Describe("DescribeSubnets", "subnet-id", "Subnets", "SubnetId"),
    "AWS::EC2::VPC::Id": _Describe("DescribeVpcs", "vpc-id", "Vpcs", "VpcId"),
    "AWS::EC2::Volume::Id": _Describe("DescribeVolumes", "volume-id", "Volumes", "VolumeId"),
}


class AwsFacts:
    """The account's own answers."""

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    def availability_zones(self, region: str) -> list[str]:
        """Sorted; the zones with a default subnet if there are any, else all. Local zones never; none of another
        region."""
        if region not in ("", self._aws.region):
            return []
        answer = self._aws.call("ec2", "DescribeAvailabilityZones", {})
        usable = {zone["ZoneName"] for zone in answer.get("AvailabilityZones", ()) if _is_usable(zone)}
        filters = [{"Name": "default-for-az", "Values": ["true"]}]
        with_subnet = {
            subnet["AvailabilityZone"]
            for page in self._aws.pages("ec2", "DescribeSubnets", {"Filters": filters})
            for subnet in page.get("Subnets", ())
            if subnet.get("DefaultForAz")
        }
        return sorted(usable & with_subnet or usable)

    def ssm_parameter(self, name: str) -> str:
        """The value of a plain parameter; raises `AwsError`, and `InputError` for a SecureString."""
        answer = self._aws.call("ssm", "GetParameter", {"Name": name, "WithDecryption": False})
        parameter = answer["Parameter"]
        if parameter.get("Type") == "SecureString":
            raise InputError(f"the SSM parameter {name} is a SecureString, which a template parameter cannot use")
        return str(parameter["Value"])

    def existing(self, type_name: str, values: Sequence[str]) -> frozenset[str]:
        """Those of the values that there are of an AWS-specific parameter type; raises `AwsError`."""
        if type_name == _HOSTED_ZONE:
            return frozenset(value for value in values if self._has_zone(value))
        how = _DESCRIBED.get(type_name)
        if how is None:
            raise Bug(f"values of {type_name} cannot be looked for")
        named = [value for value in values if value]
        found: set[str] = set()
        for start in range(0, len(named), _MOST_VALUES):
            filters = [{"Name": how.by, "Values": named[start : start + _MOST_VALUES]}]
            for page in self._aws.pages("ec2", how.operation, {"Filters": filters, **how.more}):
                found.update(how.found(page))
        return frozenset(found)

    def _has_zone(self, zone: str) -> bool:
        if not zone:
            return False
        try:
            self._aws.call("route53", "GetHostedZone", {"Id": zone})
        except AwsError as error:
            if error.code in _NO_ZONE:
                return False
            raise
        return True


def _is_usable(zone: dict[str, Any]) -> bool:
    return bool(zone.get("ZoneType", _ZONE) == _ZONE and zone.get("State", "available") == "available")


if TYPE_CHECKING:
    _: type[Facts] = AwsFacts
