from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.graph import edges, topological
from stackhold.engines.cloudformation.template import check_attributes, evaluate, parse_template
from stackhold.engines.cloudformation.values import AttrOf, JoinOf, RefTo
from stackhold.errors import TemplateError
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.cloudformation.template.desired import DesiredStack, Inputs

A, B = LogicalId("A"), LogicalId("B")
CASES = os.environ.get("STACKHOLD_CASES")

CONDITIONAL = """
Parameters:
  Stage: {Type: String, Default: dev}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  NotProd: !Not [!Condition IsProd]
Resources:
  A:
    Type: AWS::S3::Bucket
    DependsOn: B
    Properties:
      Name: !If [IsProd, !Ref B, plain]
    Metadata: {x: !If [IsProd, !GetAtt B.Arn, 1]}
  B:
    Type: AWS::SQS::Queue
    Condition: IsProd
Outputs:
  Queue: {Value: !Ref B, Condition: IsProd}
  Stage: {Value: !Ref Stage, Condition: NotProd, Export: {Name: !Sub '${AWS::StackName}-stage'}}
"""


def test_a_resource_whose_condition_is_false_is_absent(desired: Callable[..., DesiredStack]) -> None:
    stack = desired(CONDITIONAL)
    assert list(stack.resources) == ["A"]
    assert stack.resources[A].properties == {"Name": "plain"}
    assert stack.resources[A].metadata == {"x": 1}
    assert stack.resources[A].depends_on == ()
    assert stack.warnings == ("t.yaml:8: A: DependsOn B is ignored: its condition is false",)
    assert edges(stack) == {A: frozenset()}
    assert list(stack.outputs) == ["Stage"]
    assert (stack.outputs["Stage"].value, stack.outputs["Stage"].export) == ("dev", "Shop-stage")


def test_a_resource_whose_condition_is_true_is_there(desired: Callable[..., DesiredStack]) -> None:
    stack = desired(CONDITIONAL, parameters={"Stage": "prod"})
    assert stack.resources[A].properties == {"Name": RefTo(B)}
    assert stack.resources[A].metadata == {"x": AttrOf(B, "Arn")}
    assert stack.resources[A].depends_on == (B,)
    assert stack.outputs["Queue"].value == JoinOf("", [RefTo(B)])


@pytest.mark.parametrize("naming", ["!Ref B", "!GetAtt B.Arn", "!Sub 'x${B}'", "!Sub '${B.Arn}'"])
def test_naming_an_absent_resource_is_an_error_in_resources_and_outputs(
    refusal: Callable[..., TemplateError], naming: str
) -> None:
    base = "Conditions: {No: !Equals [a, b]}\nResources:\n  B: {Type: AWS::SQS::Queue, Condition: No}\n"
    error = refusal(f"{base}  A: {{Type: AWS::S3::Bucket, Properties: {{P: {naming}}}}}\n")
    assert "B does not exist under these conditions" in error.reason
    assert (error.line, error.logical_id) == (4, "A")
    error = refusal(f"{base}  A: {{Type: AWS::S3::Bucket}}\nOutputs: {{O: {{Value: {naming}}}}}\n")
    assert (error.line, error.logical_id) == (5, "Outputs.O")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("!Equals [true, 'true']", True),
        ("!Equals [1, '1']", True),
        ("!Equals [a, A]", False),
        ("!Equals [!Ref AWS::Region, eu-west-1]", True),
        ("!Equals [!Join ['', [a, b]], ab]", True),
        ("!Equals [!Select [0, !Ref L], x]", True),
        ("!Equals [!FindInMap [M, k, v], '5']", True),
        ("!And [!Equals [a, a], !Equals [a, b]]", False),
        ("!Or [!Equals [a, a], !Equals [a, b]]", True),
        ("!Not [!Equals [a, b]]", True),
        ("{Condition: Other}", True),
        ("!And [!Condition Other, {Condition: Other}]", True),
    ],
)
def test_a_condition_holds(desired: Callable[..., DesiredStack], condition: str, expected: bool) -> None:
    text = (
        f"Conditions:\n  C: {condition}\n  Other: !Equals [a, a]\nMappings: {{M: {{k: {{v: 5}}}}}}\n"
        "Parameters: {L: {Type: CommaDelimitedList, Default: 'x,y'}}\n"
        "Resources:\n  A: {Type: AWS::S3::Bucket, Properties: {P: !If [C, 1, 0]}}\n"
    )
    assert desired(text).resources[A].properties == {"P": int(expected)}


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("text", "a condition is Fn::And"),
        ("[a]", "a condition is Fn::And"),
        ("!Ref AWS::Region", "a condition is Fn::And"),
        ("!And [!Equals [a, a]]", "takes a list of 2 to 10 conditions"),
        ("!Or [" + ", ".join(["!Equals [a, a]"] * 11) + "]", "takes a list of 2 to 10 conditions"),
        ("!Not [!Equals [a, a], !Equals [a, a]]", "takes a list of 1"),
        ("!Equals [a]", "takes a list of 2"),
        ("!Equals [[a], a]", "must be text, not a list"),
        ("!Equals [!Ref L, a]", "must be text, not a list"),
        ("!Equals [!Ref AWS::NoValue, a]", "AWS::NoValue"),
        ("!Condition Nobody", "there is no condition 'Nobody'"),
        ("!Condition C", "in a circle: C -> C"),
        ("!Not [!Condition Round]", "in a circle: C -> Round -> C"),
        ("!Equals [!Ref Nobody, a]", "there is no parameter 'Nobody'"),
    ],
)
def test_a_wrong_condition_is_refused_even_when_unused(
    refusal: Callable[..., TemplateError], condition: str, reason: str
) -> None:
    text = (
        f"Conditions:\n  C: {condition}\n  Round: !Not [!Condition C]\n"
        "Parameters: {L: {Type: CommaDelimitedList, Default: 'x,y'}}\nResources:\n  A: {Type: AWS::S3::Bucket}\n"
    )
    error = refusal(text)
    assert reason in error.reason
    assert error.logical_id == "Conditions.C"
    assert error.line == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("Type: AWS::CloudFormation::Stack", "nested stacks are not supported"),
        ("Type: Custom::Thing", "Custom::Thing: custom resources are not supported"),
        ("Type: AWS::CloudFormation::CustomResource", "custom resources are not supported"),
        ("Type: AWS::Serverless::Function", "the AWS SAM transform is not supported"),
        ("Type: My::Own::Thing::MODULE", "modules are not supported"),
        ("Type: Bucket", "'Bucket' is no resource type"),
        ("Type: AWS::S3::Bucket, DeletionPolicy: keep", "Delete, Retain, RetainExceptOnCreate or Snapshot, not 'keep'"),
        ("Type: AWS::S3::Bucket, DeletionPolicy: Snapshot", "there are no snapshots of AWS::S3::Bucket"),
        ("Type: AWS::S3::Bucket, DeletionPolicy: !Ref AWS::Region", "DeletionPolicy must be text"),
        ("Type: AWS::S3::Bucket, UpdateReplacePolicy: RetainExceptOnCreate", "Delete, Retain or Snapshot"),
        ("Type: AWS::S3::Bucket, DependsOn: Nobody", "DependsOn: there is no resource 'Nobody'"),
        ("Type: AWS::S3::Bucket, DependsOn: [P]", "DependsOn: there is no resource 'P'"),
        ("Type: AWS::S3::Bucket, DependsOn: !If [C, A, B]", "DependsOn must be a name, not a map"),
        ("Type: AWS::S3::Bucket, Condition: Nobody", "there is no condition 'Nobody'"),
        ("Type: AWS::S3::Bucket, Condition: !Ref P", "Condition must be a name, not a map"),
        ("Type: AWS::S3::Bucket, Properties: []", "Properties must be a map, not a list"),
        ("Type: AWS::S3::Bucket, Properties: !If [C, {}, {}]", "Properties must be a map, not a function"),
    ],
)
def test_a_resource_that_cannot_be_had_is_refused_by_name(
    refusal: Callable[..., TemplateError], body: str, reason: str
) -> None:
    before = "Parameters: {P: {Type: String, Default: x}}\nConditions: {C: !Equals [a, a]}\n"
    text = f"{before}Resources:\n  A: {{{body}}}\n"
    error = refusal(text)
    assert reason in error.reason
    assert (error.line, error.logical_id) == (4, "A")


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("Value: !Ref AWS::NoValue", "AWS::NoValue cannot stand here"),
        ("Value: [a]", "Value must be text, not a list"),
        ("Value: !Ref AWS::NotificationARNs", "Value must be text, not a list"),
        ("Value: !Split [',', a]", "Value must be text, not a list"),
        ("Value: x, Condition: Nobody", "there is no condition 'Nobody'"),
        ("Value: x, Export: {Name: [a]}", "Export must be text, not a list"),
        ("Value: x, Export: {Name: same}", "First exports 'same' too"),
    ],
)
def test_an_output_that_would_fail_at_the_end_is_refused_before(
    refusal: Callable[..., TemplateError], output: str, reason: str
) -> None:
    before = "Resources:\n  A: {Type: AWS::S3::Bucket}\nOutputs:\n  First: {Value: x, Export: {Name: same}}\n"
    text = f"{before}  O: {{{output}}}\n"
    error = refusal(text)
    assert reason in error.reason
    assert error.logical_id == "Outputs.O"


@pytest.mark.parametrize(("output", "expected"), [("true", "true"), ("010", "010"), ("1.0", "1.0"), ("No", "false")])
def test_outputs_are_text(desired: Callable[..., DesiredStack], output: str, expected: str) -> None:
    stack = desired(f"Resources:\n  A: {{Type: AWS::S3::Bucket}}\nOutputs: {{O: {{Value: {output}}}}}\n")
    assert stack.outputs["O"].value == expected


def test_resources_keep_policies_lines_and_dependencies(desired: Callable[..., DesiredStack]) -> None:
    text = (
        "Resources:\n  On: {Type: AWS::S3::Bucket}\n  A:\n    Type: AWS::S3::Bucket\n    DependsOn: [On, On]\n"
        "    DeletionPolicy: RetainExceptOnCreate\n    UpdateReplacePolicy: Retain\n    UpdatePolicy: {x: 1}\n"
    )
    stack = desired(text)
    resource = stack.resources[A]
    assert (resource.deletion_policy, resource.update_replace_policy) == ("RetainExceptOnCreate", "Retain")
    assert (resource.line, resource.depends_on, resource.metadata) == (3, ("On",), None)
    assert stack.warnings == ("t.yaml:3: A: UpdatePolicy is ignored",)


def test_zones_are_asked_for_once_and_only_when_needed(
    inputs: Callable[..., Inputs], desired: Callable[..., DesiredStack]
) -> None:
    facts: Any = inputs().facts
    desired("Resources:\n  A: {Type: AWS::S3::Bucket}\n", facts=facts)
    assert facts.asked == []
    zones = "{a: !GetAZs '', b: !Select [0, !GetAZs {Ref: 'AWS::Region'}]}"
    stack = desired(f"Resources:\n  A: {{Type: AWS::S3::Bucket, Properties: {zones}}}\n", facts=facts)
    assert stack.resources[A].properties == {"a": ["eu-west-1a", "eu-west-1b"], "b": "eu-west-1a"}
    assert facts.asked == ["eu-west-1"]


def test_a_template_that_needs_facts_says_so_when_there_are_none(refusal: Callable[..., TemplateError]) -> None:
    text = "Resources:\n  A: {Type: AWS::S3::Bucket, Properties: {P: !GetAZs ''}}\n"
    assert "availability zones" in refusal(text, facts=None).reason
    text = (
        "Parameters: {P: {Type: 'AWS::SSM::Parameter::Value<String>', Default: /x}}\n"
        "Resources:\n  A: {Type: AWS::S3::Bucket}\n"
    )
    assert "SSM parameter" in refusal(text, facts=None).reason


def test_attributes_can_be_checked_afterwards(desired: Callable[..., DesiredStack]) -> None:
    text = (
        "Resources:\n  B: {Type: AWS::SQS::Queue}\n  A: {Type: AWS::S3::Bucket, Properties: {P: {Q: !GetAtt B.Arm}}}\n"
        "Outputs: {O: {Value: !GetAtt B.Arn}}\n"
    )
    stack = desired(text)
    check_attributes(stack, lambda type_name, attribute: True)
    with pytest.raises(TemplateError) as caught:
        check_attributes(stack, lambda type_name, attribute: attribute == "Arn")
    assert caught.value.message == "t.yaml:3: A: Properties.P.Q: AWS::SQS::Queue (B) has no attribute 'Arm'"
    with pytest.raises(TemplateError, match=r"Outputs\.O"):
        check_attributes(stack, lambda type_name, attribute: attribute == "Arm")


@pytest.mark.skipif(not CASES, reason="STACKHOLD_CASES does not point to the case templates")
@pytest.mark.parametrize(("name", "count", "outputs"), [("wide", 48, 0), ("serverless", 22, 2), ("webapp", 38, 4)])
def test_the_case_templates_are_worked_out_and_ordered(
    inputs: Callable[..., Inputs], name: str, count: int, outputs: int
) -> None:
    stack = evaluate(parse_template(Path(CASES or "") / f"{name}.template.json"), inputs())
    assert (len(stack.resources), len(stack.outputs), stack.warnings) == (count, outputs, ())
    needs = edges(stack)
    order = topological(needs)
    for place, logical_id in enumerate(order):
        assert needs[logical_id] <= set(order[:place])
