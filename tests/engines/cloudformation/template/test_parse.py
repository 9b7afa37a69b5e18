from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.template import parse_template, parse_text
from stackhold.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GOOD = "Resources:\n  A:\n    Type: AWS::S3::Bucket\n"


def refused(text: str, file: str = "t.yaml") -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        parse_text(text, file=file)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text", "t.yaml:1:1: not a template: a map of sections is expected, not the text 'just text'"),
        ("[1]", "t.yaml:1:1: not a template: a map of sections is expected, not a list"),
        ("a: {{x}}", "t.yaml:1:5: a key must be text"),
        ("Outputs: {}", "t.yaml:1:1: not a template: the section Resources is missing"),
        ("Resources: {}", "t.yaml:1:12: Resources holds no resource"),
        ("Resources: []", "t.yaml:1:12: Resources must be a map"),
        (GOOD + "Resourcse: {}", "t.yaml:4:1: unknown section 'Resourcse'"),
        (
            GOOD + "Transform: AWS::Serverless-2016-10-31",
            "t.yaml:4:1: Transform: transforms and macros are not supported",
        ),
        (GOOD + "Hooks: {}", "t.yaml:4:1: Hooks: hooks are not supported"),
        (GOOD + "Globals: {}", "t.yaml:4:1: Globals: the AWS SAM transform is not supported"),
        (GOOD + "Rules: {R: {}}", "t.yaml:4:9: Rules.R: Rules are not supported"),
        (GOOD + "AWSTemplateFormatVersion: 2011-01-01", "t.yaml:4:27: AWSTemplateFormatVersion must be '2010-09-09'"),
        (GOOD + "Description: [a]", "t.yaml:4:14: Description must be text, not a list"),
        (
            GOOD + "  B-C: {Type: AWS::S3::Bucket}",
            "t.yaml:4:3: Resources: 'B-C' is no valid name: letters and digits, at most 255 of them",
        ),
        (GOOD + "  'Fn::ForEach::X': []", "t.yaml:4:3: Resources: Fn::ForEach::X is not supported"),
        (GOOD + "  B: []", "t.yaml:4:6: B: must be a map, not a list"),
        (GOOD + "  B: {Properties: {}}", "t.yaml:4:3: B: Type is missing"),
        (GOOD + "  B: {Type: [x]}", "t.yaml:4:13: B: Type must be text, not a list"),
        (GOOD + "    Propertys: {}", "t.yaml:4:5: A: unknown key 'Propertys'"),
        (GOOD + "    CreationPolicy: {}", "t.yaml:4:5: A: CreationPolicy is not supported"),
        (GOOD + "    Fn::Transform: {}", "t.yaml:4:5: A: Fn::Transform is not supported"),
        (GOOD + "Parameters: {A: {Type: String}}", "t.yaml:2:3: A: a parameter has the same name"),
        (
            GOOD + "Parameters: {P: {Type: String, NoEcho: 'true'}}",
            "t.yaml:4:32: Parameters.P: NoEcho parameters are not supported",
        ),
        (
            GOOD + "Parameters: {P: {Type: String, NoEcho: yes}}",
            "t.yaml:4:32: Parameters.P: NoEcho parameters are not supported",
        ),
        (GOOD + "Parameters: {P: {Type: String, Defualt: x}}", "t.yaml:4:32: Parameters.P: unknown key 'Defualt'"),
        (GOOD + "Outputs: {O: {Description: x}}", "t.yaml:4:11: Outputs.O: Value is missing"),
        (GOOD + "Outputs: {O: {Value: x, Export: y}}", "t.yaml:4:33: Outputs.O: Export must be a map with Name"),
        (
            GOOD + "Conditions: {C: !GetAtt A.Arn}",
            "t.yaml:4:17: Conditions.C: Fn::GetAtt may not stand under Conditions",
        ),
        (GOOD + "Conditions: {C: !If [C, a, b]}", "t.yaml:4:17: Conditions.C: Fn::If may not stand under Conditions"),
        (
            GOOD + "Conditions: {C: !Equals [!Ref A, b]}",
            "t.yaml:4:26: Conditions.C: Ref: a condition cannot depend on the resource A",
        ),
        (GOOD + "Outputs: {O: {Value: !ImportValue x}}", "t.yaml:4:22: Outputs.O: Fn::ImportValue is not supported"),
        (
            GOOD + "    Metadata: {x: '{{resolve:ssm:a}}'}",
            "t.yaml:4:19: A: dynamic references ({{resolve:…}}) are not supported",
        ),
    ],
)
def test_a_template_that_is_none_or_uses_too_much_is_refused_in_one_line(text: str, message: str) -> None:
    assert refused(text).message == message


def test_too_many_resources_are_refused() -> None:
    many = "".join(f"  R{n}: {{Type: AWS::S3::Bucket}}\n" for n in range(501))
    assert "501 entries; the limit is 500" in refused("Resources:\n" + many).reason
    many = "".join(f"  P{n}: {{Type: String}}\n" for n in range(201))
    assert "201 entries; the limit is 200" in refused(GOOD + "Parameters:\n" + many).reason


def test_too_large_a_template_is_refused_unread() -> None:
    assert "the limit is 1,048,576" in refused("#" * (1024 * 1024 + 1)).reason


def test_half_a_surrogate_pair_is_refused() -> None:
    assert "surrogate" in refused("a: \ud800").reason


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("t.json", '{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}'),
        ("t.template", '{"Resources": {"A": {"Type": "AWS::S3::Bucket"}}}'),
        ("t.template", "{Resources: {A: {Type: AWS::S3::Bucket}}}"),
        ("t.yaml", '{"Resources":\n\t{"A": {"Type": "AWS::S3::Bucket"}}}'),
        ("t.yaml", "\ufeff" + GOOD),
        ("t.yaml", GOOD.replace("\n", "\r\n")),
        ("t.yaml", GOOD + "AWSTemplateFormatVersion: 2010-09-09\nDescription: d\nMetadata: {'Fn::X': 1}\n"),
    ],
)
def test_either_syntax_is_read_under_any_name(file: str, text: str) -> None:
    assert list(parse_text(text, file=file).section("Resources").entries) == ["A"]


def test_a_double_key_in_json_text_is_not_given_a_second_chance_as_yaml() -> None:
    assert "stands twice" in refused('{"Resources": {"A": 1, "A": 2}}', file="t.template").reason


def test_a_template_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(GOOD)
    assert parse_template(file).file == str(file)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "the template cannot be read: No such file or directory"),
        (lambda path: path.mkdir(), "the template cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b"a: 1\nb: \xff"), "the template is not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_template_error(
    tmp_path: Path, make: Callable[[Path], Any], reason: str
) -> None:
    path = tmp_path / "t.yaml"
    make(path)
    with pytest.raises(TemplateError) as caught:
        parse_template(path)
    assert caught.value.reason == reason


def test_a_path_with_a_nul_is_a_template_error() -> None:
    with pytest.raises(TemplateError, match="no path"):
        parse_template("a\0b")


def test_a_pipe_and_a_device_are_no_templates(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.yaml")
    for path, reason in (
        (tmp_path / "t.yaml", "it is a pipe, not a file"),
        ("/dev/zero", "it is a device, not a file"),
    ):
        with pytest.raises(TemplateError, match=reason):
            parse_template(path)


def test_a_byte_order_mark_is_no_part_of_a_template_and_not_of_its_size(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(GOOD.ljust(1024 * 1024), encoding="utf-8-sig")
    assert parse_template(path).file == str(path)
    path.write_text(GOOD.ljust(1024 * 1024 + 1))
    with pytest.raises(TemplateError, match="the limit is 1,048,576"):
        parse_template(path)
