"""What stands in the way of a delete: asked of AWS once the delete was refused as still in use. Only reads.

Some of it goes by itself, such as the network interfaces of a deleted function; what is named as lasting does not, so
that waiting for it is in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stackhold.errors import AwsError, CloudError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.ports.aws import Aws

_MOST_NAMED: Final = 5
_INTERFACE_FILTERS: Final = {"SubnetId": "subnet-id", "GroupId": "group-id", "VpcId": "vpc-id"}


class Blockers(NamedTuple):
    """Those that were found. Empty names: nothing was, or it cannot be asked."""

    names: tuple[str, ...] = ()
    are_lasting: bool = False
    hint: str = ""

    @property
    def text(self) -> str:
        """The first few of them."""
        more = len(self.names) - _MOST_NAMED
        return ", ".join(self.names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def blockers_of(aws: Aws, error: AwsError, params: Mapping[str, Any]) -> Blockers:
    """What a refused delete hangs on."""
    try:
        if (error.service, error.operation) == ("iam", "DeleteRole"):
            return _on_role(aws, str(params["RoleName"]))
        if error.service == "ec2":
            return Blockers(tuple(_interfaces(aws, params)))
    except CloudError:
        pass
    return Blockers()


def _on_role(aws: Aws, role: str) -> Blockers:
    """What hangs on a role. Nobody but who put it there takes it away."""
    asked = {"RoleName": role}
    names = [
        *(f"inline policy {name}" for name in _listed(aws, "ListRolePolicies", asked, "PolicyNames")),
        *(
            f"managed policy {policy['PolicyArn']}"
            for policy in _listed(aws, "ListAttachedRolePolicies", asked, "AttachedPolicies")
        ),
        *(
            f"instance profile {profile['InstanceProfileName']}"
            for profile in _listed(aws, "ListInstanceProfilesForRole", asked, "InstanceProfiles")
        ),
    ]
    hint = "Somebody else put that on the role: take it off (aws iam delete-role-policy, detach-role-policy or "
    hint += "remove-role-from-instance-profile) once nobody needs it."
    return Blockers(tuple(names), are_lasting=bool(names), hint=hint if names else "")


def _listed(aws: Aws, operation: str, params: Mapping[str, Any], key: str) -> Iterator[Any]:
    for page in aws.pages("iam", operation, params):
        yield from page.get(key, ())


def _interfaces(aws: Aws, params: Mapping[str, Any]) -> Iterator[str]:
    """The network interfaces in the way of an EC2 delete, with what made them."""
    wanted = [{"Name": name, "Values": [params[key]]} for key, name in _INTERFACE_FILTERS.items() if key in params]
    if not wanted:
        return
    for item in aws.call("ec2", "DescribeNetworkInterfaces", {"Filters": wanted}).get("NetworkInterfaces", []):
        made_for = item.get("Description") or item.get("InterfaceType") or "interface"
        yield f"{item.get('NetworkInterfaceId', '?')} ({made_for})"
