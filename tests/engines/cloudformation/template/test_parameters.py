from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engines.cloudformation.template.conftest import FixedFacts

from stackhold.engines.cloudformation.template.java_pattern import java_pattern
from stackhold.errors import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.cloudformation.template.desired import DesiredStack
    from stackhold.errors import TemplateError

RESOURCE = "Resources:\n  A: {Type: AWS::S3::Bucket, Properties: {P: !Ref P}}\nParameters:\n"


def with_parameter(declaration: str) -> str:
    return f"{RESOURCE}  P: {{{declaration}}}\n"


@pytest.mark.parametrize(
    ("declaration", "given", "expected"),
    [
        ("Type: String, Default: 010", {}, "010"),
        ("Type: String, Default: true", {}, "true"),
        ("Type: String, Default: Yes", {}, "true"),
        ("Type: String, Default: ''", {}, ""),
        ("Type: String, Default: a", {"P": "b"}, "b"),
        ("Type: Number, Default: 1.50", {}, "1.50"),
        ("Type: Number, MinValue: 1, MaxValue: 5", {"P": "5"}, "5"),
        ("Type: Number, AllowedValues: [1, 2.0]", {"P": "2"}, "2"),
        ("Type: CommaDelimitedList", {"P": "a, b ,c"}, ["a", "b", "c"]),
        ("Type: CommaDelimitedList", {"P": ""}, [""]),
        ("Type: List<Number>", {"P": "1, 2"}, ["1", "2"]),
        ("Type: AWS::EC2::VPC::Id", {"P": "vpc-1"}, "vpc-1"),
        ("Type: 'List<AWS::EC2::Subnet::Id>'", {"P": "s-1,s-2"}, ["s-1", "s-2"]),
        ("Type: AWS::SSM::Parameter::Name", {"P": "/x"}, "/x"),
        ("Type: 'AWS::SSM::Parameter::Value<String>'", {"P": "/x"}, "value of /x"),
        ("Type: 'AWS::SSM::Parameter::Value<List<String>>'", {"P": "/list"}, ["a", "b"]),
        ("Type: 'AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>'", {"P": "/ami"}, "value of /ami"),
        ("Type: String, AllowedPattern: '[a-z]+'", {"P": "abc"}, "abc"),
        ("Type: CommaDelimitedList, AllowedPattern: '[a-z]'", {"P": "a,b"}, ["a", "b"]),
        ("Type: String, NoEcho: false", {"P": "a"}, "a"),
    ],
)
def test_a_parameter_is_worth(
    desired: Callable[..., DesiredStack], declaration: str, given: dict[str, str], expected: Any
) -> None:
    stack = desired(with_parameter(declaration), parameters=given)
    assert next(iter(stack.resources.values())).properties["P"] == expected


@pytest.mark.parametrize(
    ("declaration", "given", "reason"),
    [
        ("Type: Number", "x", "Parameters.P: 'x' is no number"),
        ("Type: Number", "0x1F", "'0x1F' is no number"),
        ("Type: Number, MinValue: 1", "0", "'0' is out of range; allowed are at least 1"),
        ("Type: Number, MinValue: 1, MaxValue: 2", "3", "allowed are 1 to 2"),
        ("Type: List<Number>", "1,x", "'x' is no number"),
        ("Type: String, MinLength: 2", "a", "has 1 characters; allowed are at least 2"),
        ("Type: String, MaxLength: 2", "abc", "allowed are at most 2"),
        ("Type: String, AllowedValues: [a, b]", "c", "is not one of the allowed values a, b"),
        ("Type: CommaDelimitedList, AllowedValues: [a, b]", "a,c", "'c' is not one of the allowed values"),
        ("Type: String, AllowedPattern: '[a-z]+'", "abc1", "does not match the allowed pattern"),
        ("Type: String, AllowedPattern: '[a-z]+', ConstraintDescription: only letters", "1", "pattern (only letters)"),
        ("Type: String, AllowedPattern: '(['", "1", "AllowedPattern cannot be used"),
        ("Type: String, AllowedPattern: '[a-z&&[^b]]'", "1", "AllowedPattern cannot be used"),
        ("Type: String, MinLength: x", "1", "MinLength must be a whole number"),
        ("Type: Number, MinValue: x", "1", "MinValue must be a number"),
        ("Type: String, AllowedValues: a", "1", "AllowedValues must be a list"),
        ("Type: String, AllowedValues: [[a]]", "1", "AllowedValues must be a list of texts"),
        ("Type: String, Default: [a]", "1", "Default must be text or a number"),
        ("Type: Strin", "1", "unknown parameter type 'Strin'"),
        ("Type: 'List<String>'", "1", "unknown parameter type"),
        ("Type: 'List<AWS::EC2::KeyPair::KeyName>'", "1", "unknown parameter type"),
        ("Default: a", "1", "Type is missing"),
        ("Type: String", "x" * 4097, "has more than 4,096 bytes"),
        ("Type: String", "{{resolve:ssm:x}}", "dynamic references"),
        ("Type: 'AWS::SSM::Parameter::Value<String>'", "/secret", "dynamic references"),
    ],
)
def test_a_value_or_declaration_that_breaks_a_rule_is_refused(
    refusal: Callable[..., TemplateError], declaration: str, given: str, reason: str
) -> None:
    error = refusal(with_parameter(declaration), parameters={"P": given})
    assert reason in error.message
    assert error.line == 4


def test_a_default_is_checked_too(refusal: Callable[..., TemplateError]) -> None:
    assert "is no number" in refusal(with_parameter("Type: Number, Default: x")).reason


def test_all_missing_and_unknown_parameters_are_one_error(refusal: Callable[..., TemplateError]) -> None:
    text = RESOURCE + "  P: {Type: String}\n  Q: {Type: String}\n  R: {Type: String, Default: r}\n"
    error = refusal(text, parameters={"X": "1", "Y": "2"})
    assert error.reason == ("parameters without a value: P, Q; parameters that the template does not have: X, Y")
    assert error.hint == "Give each with --parameter, such as --parameter P=VALUE. It has: P, Q, R."


def test_all_wrong_values_are_one_error(refusal: Callable[..., TemplateError]) -> None:
    text = RESOURCE + "  P: {Type: Number}\n  Q: {Type: Number}\n"
    error = refusal(text, parameters={"P": "a", "Q": "b"})
    assert error.reason == "Parameters.P: 'a' is no number; Parameters.Q: 'b' is no number"


@pytest.mark.parametrize(
    ("recorded", "expected"), [("old", "old"), (["a", "b"], "a,b"), (True, "true"), (5, "5"), (None, "d")]
)
def test_a_parameter_that_is_not_given_keeps_its_recorded_value(
    desired: Callable[..., DesiredStack], recorded: Any, expected: str
) -> None:
    stack = desired(with_parameter("Type: String, Default: d"), recorded_parameters={"P": recorded, "Gone": "x"})
    assert stack.parameters == {"P": expected}
    assert stack.reused_parameters == (("P",) if recorded is not None else ())


def test_a_given_parameter_wins_over_the_recorded_one(desired: Callable[..., DesiredStack]) -> None:
    stack = desired(with_parameter("Type: String"), parameters={"P": "new"}, recorded_parameters={"P": "old"})
    assert (stack.parameters, stack.reused_parameters) == ({"P": "new"}, ())


def test_an_ssm_parameter_is_recorded_by_its_name(desired: Callable[..., DesiredStack]) -> None:
    stack = desired(with_parameter("Type: 'AWS::SSM::Parameter::Value<String>', Default: /x"))
    assert stack.parameters == {"P": "/x"}


BOOTSTRAP = """
Resources:
  A: {Type: AWS::S3::Bucket}
  CDKMetadata: {Type: AWS::CDK::Metadata, Condition: CDKMetadataAvailable, Properties: {Analytics: x}}
Parameters:
  BootstrapVersion: {Type: "AWS::SSM::Parameter::Value<String>", Default: /cdk-bootstrap/hnb659fds/version}
Conditions:
  CDKMetadataAvailable: !Or [!Equals [!Ref AWS::Region, eu-west-1], !Equals [a, b]]
Rules:
  CheckBootstrapVersion:
    Assertions: [{Assert: {"Fn::Not": [{"Fn::Contains": [["1"], {Ref: BootstrapVersion}]}]}, AssertDescription: d}]
"""


def test_what_cdk_adds_for_cloudformation_is_left_out_and_asks_nothing(
    desired: Callable[..., DesiredStack],
) -> None:
    stack = desired(BOOTSTRAP, facts=None)
    assert list(stack.resources) == ["A"]
    assert stack.parameters == {}
    assert desired(BOOTSTRAP, facts=None, parameters={"BootstrapVersion": "/x"}).parameters == {}


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"\p{Alpha}+", "abC", "ab1"),
        (r"[\p{Digit}x]+", "1x2", "y"),
        (r"\P{Upper}+", "ab1", "aB"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        (r"(?<x>a)\k<x>", "aa", "ab"),
        (r"(?<!b)a", "a", "b"),
        (r"a\z", "a", "a\n"),
        (r"\h", "\t", "x"),
        (r"[\h]", " ", "x"),
        (r"\d+", "12", "١٢"),
        (r"^$|x", "", "y"),
        (r"a++b", "aab", "a"),
    ],
)
def test_java_patterns_match_as_in_java(pattern: str, yes: str, no: str) -> None:
    compiled = java_pattern(pattern)
    assert compiled.fullmatch(yes)
    assert not compiled.fullmatch(no)


@pytest.mark.parametrize("pattern", [r"\p{IsGreek}", r"[\P{Alpha}]", "(", "[a-z&&[^b]]", "a{99999999999}"])
def test_a_java_pattern_that_cannot_be_translated_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        java_pattern(pattern)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ParameterNotFound", "there is no SSM parameter '/x' in eu-west-1"),
        ("AccessDeniedException", "the SSM parameter '/x' cannot be read: ssm:GetParameter was refused: AccessDenied"),
    ],
)
def test_an_ssm_parameter_that_cannot_be_read_is_told_with_the_place_of_its_parameter(
    refusal: Callable[..., TemplateError], code: str, reason: str
) -> None:
    facts = FixedFacts()
    facts.refused["/x"] = code
    error = refusal(with_parameter("Type: 'AWS::SSM::Parameter::Value<String>', Default: /x"), facts=facts)
    assert error.message.startswith(f"t.yaml:4:3: Parameters.P: {reason}")


VPC = "AWS::EC2::VPC::Id"
SUBNETS = "List<AWS::EC2::Subnet::Id>"


def test_what_must_exist_is_asked_for_once_per_type_and_only_where_it_is_used(
    desired: Callable[..., DesiredStack],
) -> None:
    facts = FixedFacts()
    text = RESOURCE + f"  P: {{Type: '{VPC}'}}\n  Q: {{Type: '{VPC}'}}\n  R: {{Type: '{SUBNETS}'}}\n"
    desired(text, parameters={"P": "vpc-2", "Q": "vpc-1", "R": "s-1, s-2"}, facts=facts)
    assert facts.asked == ["AWS::EC2::VPC::Id: vpc-1, vpc-2", "AWS::EC2::Subnet::Id: s-1, s-2"]
    facts = FixedFacts()
    desired(with_parameter("Type: 'AWS::SSM::Parameter::Name', Default: /x"), facts=facts)
    assert facts.asked == []


def test_all_that_does_not_exist_is_one_error_at_its_parameter(refusal: Callable[..., TemplateError]) -> None:
    text = RESOURCE + f"  P: {{Type: String}}\n  Q: {{Type: '{VPC}'}}\n  R: {{Type: '{SUBNETS}'}}\n"
    error = refusal(text, parameters={"P": "p", "Q": "gone-1", "R": "s-1,gone-2"})
    assert error.message == (
        "t.yaml:5:3: Parameters.Q: there is no EC2::VPC::Id 'gone-1' in eu-west-1; "
        "Parameters.R: there is no EC2::Subnet::Id 'gone-2' in eu-west-1"
    )
    assert "--parameter Q=" in error.hint


def test_an_account_that_does_not_say_what_exists_is_told_at_the_parameter_unless_its_credentials_are_bad(
    desired: Callable[..., DesiredStack], refusal: Callable[..., TemplateError]
) -> None:
    facts = FixedFacts()
    facts.refused[VPC] = "UnauthorizedOperation"
    text = with_parameter(f"Type: '{VPC}', Default: vpc-1")
    assert "t.yaml:4:3: Parameters.P: it cannot be looked up whether vpc-1 exists" in refusal(text, facts=facts).message
    facts.refused[VPC] = "ExpiredToken"
    with pytest.raises(AwsError):
        desired(text, facts=facts)
