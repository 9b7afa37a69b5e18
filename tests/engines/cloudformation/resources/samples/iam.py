"""IAM."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping

BASIC = "arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"
READ_ONLY = "arn:aws:iam::aws:policy/ReadOnlyAccess"


def _trust(service: str) -> dict[str, Any]:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}],
    }


def _allow(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


def _roles(client: Client, _: Given) -> int:
    return len(client("iam").list_roles()["Roles"])


def _role_tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in client("iam").list_role_tags(RoleName=name)["Tags"]}


def _owners(client: Client) -> Given:
    iam = client("iam")
    for name in ("one", "two"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_trust("lambda.amazonaws.com")))
    iam.create_user(UserName="someone")
    iam.create_group(GroupName="some")
    return {}


def _inline_policies(client: Client, _: Given) -> int:
    """One policy counts once, however many owners it hangs on."""
    iam = client("iam")
    names: set[str] = set()
    for role in ("one", "two"):
        names |= set(iam.list_role_policies(RoleName=role)["PolicyNames"])
    names |= set(iam.list_user_policies(UserName="someone")["PolicyNames"])
    names |= set(iam.list_group_policies(GroupName="some")["PolicyNames"])
    return len(names)


SAMPLES = (
    Sample(
        type="AWS::IAM::Role",
        properties=lambda _: {
            "AssumeRolePolicyDocument": _trust("lambda.amazonaws.com"),
            "Description": "Runs things",
            "ManagedPolicyArns": [BASIC],
            "MaxSessionDuration": 7200,
            "Path": "/suite/",
            "PermissionsBoundary": READ_ONLY,
            "Policies": [{"PolicyName": "inline", "PolicyDocument": _allow("s3:GetObject")}],
            "Tags": [{"Key": "colour", "Value": "red"}],
        },
        update=lambda _: {
            "AssumeRolePolicyDocument": _trust("events.amazonaws.com"),
            "Description": "Runs other things",
            "ManagedPolicyArns": [READ_ONLY],
            "MaxSessionDuration": 3600,
            "PermissionsBoundary": BASIC,
            "Policies": [
                {"PolicyName": "inline", "PolicyDocument": _allow("s3:PutObject")},
                {"PolicyName": "more", "PolicyDocument": _allow("sqs:SendMessage")},
            ],
            "Tags": [{"Key": "colour", "Value": "blue"}, {"Key": "size", "Value": "l"}],
        },
        remove=("Description", "ManagedPolicyArns", "MaxSessionDuration", "PermissionsBoundary", "Policies", "Tags"),
        count=_roles,
        attributes=frozenset({"Arn", "RoleId"}),
        tags=_role_tags,
        blind={"ministack": frozenset({"Reset:Description"})},
    ),
    Sample(
        type="AWS::IAM::Policy",
        properties=lambda _: {
            "PolicyName": "shared",
            "PolicyDocument": _allow("s3:GetObject"),
            "Roles": ["one"],
            "Users": ["someone"],
        },
        update=lambda _: {"PolicyDocument": _allow("s3:PutObject"), "Roles": ["two"], "Groups": ["some"]},
        remove=("Users", "Groups"),
        prepare=_owners,
        count=_inline_policies,
        attributes=frozenset({"Id"}),
    ),
)
