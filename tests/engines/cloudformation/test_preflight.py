from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.engines.cloudformation.preflight import Objection, objection_to
from stackhold.engines.cloudformation.template import parse_text
from stackhold.model.ids import LogicalId, region_name, stack_name

if TYPE_CHECKING:
    from collections.abc import Mapping

CIRCLE = """
Resources:
  A: {Type: "AWS::SQS::Queue", DependsOn: B}
  B: {Type: "AWS::SQS::Queue", DependsOn: A}
"""
CONDITIONAL_CIRCLE = """
Conditions:
  Always: !Equals [!Ref "AWS::AccountId", "000000000000"]
Resources:
  A: {Type: "AWS::SQS::Queue", DependsOn: B}
  B: {Type: "AWS::SQS::Queue", DependsOn: A, Condition: Always}
"""
QUEUE = "Resources:\n  A: {Type: 'AWS::SQS::Queue', Properties: {QueueName: !Ref Name}}\n"


def objection(text: str, *, parameters: Mapping[str, str] | None = None, replace: str | None = None) -> Objection:
    found = maybe_objection(text, parameters=parameters, replace=replace)
    assert found is not None
    return found


def maybe_objection(
    text: str, *, parameters: Mapping[str, str] | None = None, replace: str | None = None
) -> Objection | None:
    return objection_to(
        parse_text(text, file="t.yaml"),
        stack=stack_name("shop"),
        region=region_name("us-east-1"),
        parameters=parameters or {},
        tags={},
        allow_replace=frozenset([LogicalId(replace)] if replace else []),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CIRCLE, "t.yaml:3: A: resources depend on each other in a circle"),
        ("Resources:\n  A: {Type: 'AWS::Nobody::Thing'}", "t.yaml:2: A: the resource type AWS::Nobody::Thing"),
        ("Resources:\n  A: {Type: 'AWS::SQS::Queue', Properties: {Bogus: 1}}", "Bogus is no property of it"),
        ("Resources:\n  A: {Type: 'Custom::Thing'}", "custom resources are not supported"),
    ],
)
def test_what_is_wrong_by_itself_is_certain(text: str, reason: str) -> None:
    found = objection(text)
    assert reason in found.error.message
    assert found.is_certain


def test_a_resource_that_may_be_absent_is_a_doubt() -> None:
    found = objection(CONDITIONAL_CIRCLE)
    assert "in a circle" in found.error.message
    assert not found.is_certain


def test_a_parameter_that_the_record_may_have_is_a_doubt_and_one_that_is_wrong_is_certain() -> None:
    text = "Parameters: {Name: {Type: String, AllowedValues: [a, b]}}\n" + QUEUE
    assert not objection(text).is_certain
    given = objection(text, parameters={"Name": "c"})
    assert "Name" in given.error.message
    assert given.is_certain
    assert maybe_objection(text, parameters={"Name": "a"}) is None


def test_a_given_parameter_that_cannot_be_is_certain_whatever_conditions_and_others_there_are() -> None:
    text = (
        "Parameters: {Name: {Type: Number}, Other: {Type: String}}\nMappings: {M: {a: {b: c}}}\n" + CONDITIONAL_CIRCLE
    )
    for given in ({"Nam": "1"}, {"Name": "one"}):
        found = objection(text, parameters=given)
        assert (found.is_certain, "Nam" in found.error.message) == (True, True)


def test_what_only_the_account_knows_is_no_objection_and_makes_others_doubts() -> None:
    subnet = """
Resources:
  Net: {Type: "AWS::EC2::VPC", Properties: {CidrBlock: 10.0.0.0/16}}
  Sub:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Net, CidrBlock: 10.0.0.0/24, AvailabilityZone: !Select [%d, !GetAZs ""]}
"""
    assert maybe_objection(subnet % 1) is None
    assert not objection(subnet % 9).is_certain


def test_an_unknown_resource_to_replace_is_certain() -> None:
    found = objection("Resources:\n  A: {Type: 'AWS::SQS::Queue'}", replace="Nobody")
    assert "--replace names Nobody" in found.error.message
    assert found.is_certain
