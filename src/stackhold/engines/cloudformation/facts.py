"""What a template's evaluation asks the account: availability zones and plain SSM parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.errors import InputError

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.desired import Facts
    from stackhold.ports.aws import Aws

_ZONE = "availability-zone"


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


def _is_usable(zone: dict[str, Any]) -> bool:
    return bool(zone.get("ZoneType", _ZONE) == _ZONE and zone.get("State", "available") == "available")


if TYPE_CHECKING:
    _: type[Facts] = AwsFacts
