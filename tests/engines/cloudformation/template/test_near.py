"""What a misspelt name is told, wherever in a template it stands, and where a broken entry stands."""

from __future__ import annotations

import pytest

from stackhold.engines.cloudformation.preflight import objection_to
from stackhold.engines.cloudformation.template import parse_text
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.errors import InputError, TemplateError
from stackhold.model.ids import region_name, stack_name


def refusal(text: str, **parameters: str) -> InputError:
    """Why a template cannot be used."""
    try:
        template = parse_text(text, file="t.yaml")
    except TemplateError as error:
        return error
    found = objection_to(
        template, stack=stack_name("shop"), region=region_name("eu-west-1"), parameters=parameters, tags={}
    )
    assert found is not None
    return found.error


QUEUE = "Resources:\n  Orders:\n    Type: AWS::SQS::Queue\n"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Resource:\n  A: {Type: x}\n", "Resources"),
        (QUEUE + "    Propertys: {}\n", "Properties"),
        (QUEUE.replace("Queue", "Qeue"), "AWS::SQS::Queue"),
        (QUEUE.replace("SQS", "sqs"), "AWS::SQS::Queue"),
        (QUEUE + "    Condition: Prd\nConditions: {Prod: !Equals [a, b]}\n", "Prod"),
        (QUEUE + "    DependsOn: Order\n  Order2: {Type: AWS::SQS::Queue}\n", "Orders"),
        (QUEUE + "Outputs: {X: {Value: !GetAtt Orders.Arm}}\n", "Arn"),
        (QUEUE + "Outputs: {X: {Value: !Ref orders}}\n", "Orders"),
        (QUEUE + "Outputs: {X: {Value: !Sb orders}}\n", "!Sub"),
        (QUEUE + "Outputs: {X: {Value: {Fn::Jion: [a, [b]]}}}\n", "Fn::Join"),
        (QUEUE + "Outputs: {X: {Valeu: b, Value: c}}\n", "Value"),
        (QUEUE + "Mappings: {Size: {prod: {Cpu: a}}}\nOutputs: {X: {Value: !FindInMap [Sise, prod, Cpu]}}\n", "Size"),
        (QUEUE + "Mappings: {Size: {prod: {Cpu: a}}}\nOutputs: {X: {Value: !FindInMap [Size, prd, Cpu]}}\n", "prod"),
        (QUEUE + "Mappings: {Size: {prod: {Cpu: a}}}\nOutputs: {X: {Value: !FindInMap [Size, prod, CPU]}}\n", "Cpu"),
    ],
)
def test_a_misspelt_name_is_told_with_the_one_that_may_be_meant(text: str, meant: str) -> None:
    assert refusal(text).hint == f"Did you mean {meant}?"


def test_a_misspelt_property_stands_on_its_own_line_with_its_resource() -> None:
    error = refusal(QUEUE + "    Properties:\n      DelaySeconds: 1\n      visibilityTimeout: 5\n")
    assert isinstance(error, TemplateError)
    assert (error.line, error.logical_id) == (6, "Orders")
    assert error.message == (
        "t.yaml:6: Orders (AWS::SQS::Queue): visibilityTimeout is no property of it; did you mean VisibilityTimeout?"
    )


def test_a_property_of_another_kind_stands_on_its_own_line() -> None:
    error = refusal(QUEUE + "    Properties:\n      DelaySeconds: 1\n      Tags: x\n")
    assert isinstance(error, TemplateError)
    assert error.line == 6


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (QUEUE + "    Properties:\n      QueueName:\n", "t.yaml:5:17: Orders: null"),
        (QUEUE + "    Type: x\n", "t.yaml:4:5: Orders: the key 'Type' stands twice"),
        (QUEUE + "    Properties: !Nope x\n", "t.yaml:4:17: Orders: unknown tag !Nope"),
        ("Outputs:\n  X:\n    Value:\n", "t.yaml:3:11: Outputs.X: null"),
        ('{"Resources": {"A": {"Type": null}}}', "t.yaml:1:30: A: null"),
        ('{"Resources": {"A": {"Type": "x", "Type": "y"}}}', "t.yaml:1:35: A: the key 'Type' stands twice"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_entry_it_stands_in(text: str, where: str) -> None:
    assert refusal(text).message.startswith(where)


@pytest.mark.parametrize("text", ["Resources:\n\tA: {Type: x}\n", QUEUE + "\tProperties: {}\n"])
def test_a_tab_in_the_indentation_is_called_one(text: str) -> None:
    assert "a tab stands in the indentation" in refusal(text).message


def test_a_parameter_that_is_none_is_told_with_those_there_are() -> None:
    with_stage = "Parameters: {Stage: {Type: String}, Owner: {Type: String}}\n" + QUEUE
    assert refusal(with_stage, Stag="dev").hint == "Did you mean Stage?"
    assert refusal(with_stage, Colour="red").hint == "It has: Stage, Owner."
    assert refusal(QUEUE, Colour="red").hint == "It has no parameters."


def test_a_type_is_not_near_for_what_all_types_have_in_common() -> None:
    types = ("AWS::FSx::Backup", "AWS::Lambda::Function")
    assert did_you_mean("AWS::Foo::Bar", types) == ""
    assert did_you_mean("AWS::Lamda::Funcion", types) == "Did you mean AWS::Lambda::Function?"


def test_nothing_near_gives_no_hint() -> None:
    assert did_you_mean("Elephant", ["Queue", "Topic"]) == ""
