"""Roles and inline policies: what must not be overwritten, and what a delete takes along."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.resources.iam import Policy, Role
from stackhold.errors import AwsError
from stackhold.model.ids import PhysicalId

if TYPE_CHECKING:
    from tests.engines.cloudformation.resources.conftest import World

pytestmark = pytest.mark.emulator
BOTH = pytest.mark.parametrize("world", ["ministack", "moto"], indirect=True)
READ_ONLY = "arn:aws:iam::aws:policy/ReadOnlyAccess"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}],
}


def allow(action: str) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


def make_roles(world: World, *names: str) -> None:
    for name in names:
        world.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))


@BOTH
def test_a_role_that_another_made_is_refused_and_left_alone(world: World) -> None:
    make_roles(world, "taken")
    want = world.want({"AssumeRolePolicyDocument": TRUST, "ManagedPolicyArns": [READ_ONLY]}, name="taken")
    with pytest.raises(AwsError) as caught:
        Role().create(world.context, want)
    assert caught.value.code == "EntityAlreadyExists"
    assert "import" in caught.value.hint
    assert world.client("iam").list_attached_role_policies(RoleName="taken")["AttachedPolicies"] == []


def test_a_role_of_an_earlier_run_is_not_taken_for_ours(world: World) -> None:
    properties = {"AssumeRolePolicyDocument": TRUST, "RoleName": "kept"}
    Role().create(world.context, world.want(properties, name="kept", run="run-1"))
    with pytest.raises(AwsError):
        Role().create(world.context, world.want(properties, name="kept", run="run-2"))


def test_a_create_that_was_cut_short_attaches_what_is_missing(world: World) -> None:
    bare = {"AssumeRolePolicyDocument": TRUST}
    Role().create(world.context, world.want(bare, name="half"))
    whole = {
        **bare,
        "ManagedPolicyArns": [READ_ONLY],
        "Policies": [{"PolicyName": "inline", "PolicyDocument": allow("s3:GetObject")}],
    }
    Role().create(world.context, world.want(whole, name="half"))
    seen = Role().read(world.context, PhysicalId("half"), whole)
    assert seen is not None
    assert seen.properties["ManagedPolicyArns"] == [READ_ONLY]
    assert [policy["PolicyName"] for policy in seen.properties["Policies"]] == ["inline"]


@BOTH
def test_a_role_on_which_something_foreign_hangs_is_not_deleted(world: World) -> None:
    properties = {"AssumeRolePolicyDocument": TRUST}
    Role().create(world.context, world.want(properties, name="busy"))
    world.client("iam").put_role_policy(RoleName="busy", PolicyName="foreign", PolicyDocument=json.dumps(allow("s3:*")))
    with pytest.raises(AwsError) as caught:
        Role().delete(world.context, PhysicalId("busy"), properties)
    assert caught.value.code == "DeleteConflict"


def test_inline_policies_of_others_are_no_part_of_a_role(world: World) -> None:
    inline = [{"PolicyName": "own", "PolicyDocument": allow("s3:GetObject")}]
    properties = {"AssumeRolePolicyDocument": TRUST, "Policies": inline}
    Role().create(world.context, world.want(properties, name="shared"))
    policy = {"PolicyName": "other", "PolicyDocument": allow("sqs:*"), "Roles": ["shared"]}
    Policy().create(world.context, world.want(policy, name=""))
    seen = Role().read(world.context, PhysicalId("shared"), properties)
    assert seen is not None
    assert seen.properties["Policies"] == inline


def test_a_policy_of_that_name_with_another_content_is_not_overwritten(world: World) -> None:
    make_roles(world, "old")
    foreign = allow("s3:*")
    world.client("iam").put_role_policy(RoleName="old", PolicyName="taken", PolicyDocument=json.dumps(foreign))
    context = dataclasses.replace(world.context, changed=lambda _: False)
    want = world.want({"PolicyName": "taken", "PolicyDocument": allow("sqs:*"), "Roles": ["old"]}, name="")
    with pytest.raises(AwsError):
        Policy().create(context, want)
    there = world.client("iam").get_role_policy(RoleName="old", PolicyName="taken")["PolicyDocument"]
    assert there == foreign


def test_a_policy_of_that_name_with_equal_content_is_taken_on(world: World) -> None:
    make_roles(world, "old")
    document = allow("sqs:*")
    world.client("iam").put_role_policy(RoleName="old", PolicyName="same", PolicyDocument=json.dumps(document))
    context = dataclasses.replace(world.context, changed=lambda _: False)
    want = world.want({"PolicyName": "same", "PolicyDocument": json.dumps(document), "Roles": ["old"]}, name="")
    assert Policy().create(context, want).physical_id == "same"


def test_a_renamed_policy_moves_and_changes_its_id(world: World) -> None:
    make_roles(world, "one", "two")
    old = {"PolicyName": "before", "PolicyDocument": allow("s3:*"), "Roles": ["one", "two"]}
    new = {**old, "PolicyName": "after", "Roles": ["two"]}
    Policy().create(world.context, world.want(old, name=""))
    made = Policy().update(world.context, PhysicalId("before"), old, world.want(new, name=""))
    iam = world.client("iam")
    assert made.physical_id == "after"
    assert iam.list_role_policies(RoleName="one")["PolicyNames"] == []
    assert iam.list_role_policies(RoleName="two")["PolicyNames"] == ["after"]


def test_the_one_owner_whose_policy_differs_shows(world: World) -> None:
    make_roles(world, "one", "two")
    properties = {"PolicyName": "both", "PolicyDocument": allow("s3:*"), "Roles": ["one", "two"]}
    Policy().create(world.context, world.want(properties, name=""))
    world.client("iam").put_role_policy(RoleName="two", PolicyName="both", PolicyDocument=json.dumps(allow("sqs:*")))
    seen = Policy().read(world.context, PhysicalId("both"), properties)
    assert seen is not None
    assert seen.properties["PolicyDocument"] == allow("sqs:*")
    world.client("iam").delete_role_policy(RoleName="two", PolicyName="both")
    seen = Policy().read(world.context, PhysicalId("both"), properties)
    assert seen is not None
    assert seen.properties["Roles"] == ["one"]
