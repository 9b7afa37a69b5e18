from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.template import resolve
from stackhold.engines.cloudformation.template.functions import fold_join
from stackhold.engines.cloudformation.template.sub_text import SubName, sub_parts
from stackhold.engines.cloudformation.values import UNKNOWN, AttrOf, Base64Of, JoinOf, RefTo, SelectOf, SplitOf
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.errors import TemplateError

B = LogicalId("B")

MORE = """
Parameters:
  Word: {Type: String, Default: hello}
  Count: {Type: Number, Default: 1.50}
  Names: {Type: CommaDelimitedList, Default: "x, y ,z"}
Mappings:
  Sizes:
    eu-west-1: {small: 1, list: [a, 2], flag: true}
    "10": {small: ten}
  Keys:
    a: {region: eu-west-1}
Conditions:
  Yes: !Equals [a, a]
  No: !Equals [a, b]
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("!Ref Word", "hello"),
        ("!Ref Count", "1.50"),
        ("!Ref Names", ["x", "y", "z"]),
        ("!Ref B", RefTo(B)),
        ("!Ref AWS::Region", "eu-west-1"),
        ("!Ref AWS::AccountId", "123456789012"),
        ("!Ref AWS::NotificationARNs", []),
        ("!Ref AWS::URLSuffix", "amazonaws.com"),
        ("!Ref AWS::StackName", "Shop"),
        ("!GetAtt B.Arn", AttrOf(B, "Arn")),
        ("!GetAtt B.Outputs.X", AttrOf(B, "Outputs.X")),
        ("!GetAtt [B, Arn]", AttrOf(B, "Arn")),
        ("{'Fn::GetAtt': [B, !Ref Word]}", AttrOf(B, "hello")),
        ("!Sub 'a-${Word}'", "a-hello"),
        ("!Sub '${ Word }'", "hello"),
        ("!Sub '${!Word}'", "${Word}"),
        ("!Sub '$Word {Word} ${Word'", "$Word {Word} ${Word"),
        ("!Sub '${B}-${B.Arn}!'", JoinOf("", [RefTo(B), "-", AttrOf(B, "Arn"), "!"])),
        ("!Sub ['${Word}${x}', {Word: mine, x: !Ref B}]", JoinOf("", ["mine", RefTo(B)])),
        ("!Sub ['${B}', {B: text}]", "text"),
        ("!Sub ['${x}', {x: '${Word}', unused: 1}]", "${Word}"),
        ("!Sub ['${x}', {x: true}]", "true"),
        ("!Join ['', [a, 1, true, 010]]", "a1true010"),
        ("!Join ['-', []]", ""),
        ("!Join ['-', !Ref Names]", "x-y-z"),
        ("!Join ['-', [a, b, !Ref B, c, d]]", JoinOf("-", ["a-b", RefTo(B), "c-d"])),
        ("!Join ['-', [a, !Ref AWS::NoValue, b]]", "a-b"),
        ("!Join [',', !GetAtt B.List]", JoinOf(",", AttrOf(B, "List"))),
        ("!Join ['-', !Split ['/', a/b]]", "a-b"),
        ("!Select [1, [a, 2]]", "2"),
        ("!Select ['1', !Ref Names]", "y"),
        ("!Select [!FindInMap [Sizes, eu-west-1, small], [a, b]]", "b"),
        ("!Select [0, !Split ['/', !GetAtt B.Arn]]", SelectOf(0, SplitOf("/", AttrOf(B, "Arn")))),
        ("!Select [!GetAtt B.N, [a]]", SelectOf(AttrOf(B, "N"), ["a"])),
        ("!Select [1, [!Ref B, a]]", "a"),
        ("!Split [',', 'a,,b,']", ["a", "", "b", ""]),
        ("!Split [',', abc]", ["abc"]),
        ("!Split [':', !Ref B]", SplitOf(":", RefTo(B))),
        ("!Base64 hi", "aGk="),
        ("!Base64 {Ref: B}", Base64Of(RefTo(B))),
        ("!Base64 123", "MTIz"),
        ("!GetAZs ''", ["eu-west-1a", "eu-west-1b"]),
        ("!GetAZs", ["eu-west-1a", "eu-west-1b"]),
        ("!GetAZs {Ref: 'AWS::Region'}", ["eu-west-1a", "eu-west-1b"]),
        ("!GetAZs us-east-1", []),
        ("!FindInMap [Sizes, !Ref AWS::Region, small]", "1"),
        ("!FindInMap [Sizes, eu-west-1, list]", ["a", "2"]),
        ("!FindInMap [Sizes, eu-west-1, flag]", "true"),
        ("!FindInMap [Sizes, 10, small]", "ten"),
        ("!FindInMap [Sizes, !FindInMap [Keys, a, region], small]", "1"),
        ("!If [Yes, 1, 2]", 1),
        ("!If [No, 1, {a: !If [No, b, c]}]", {"a": "c"}),
        ("[!If [Yes, !Ref AWS::NoValue, 1]]", []),
        ("{a: !If [Yes, !Ref AWS::NoValue, 1], b: 2}", {"b": 2}),
        ("[[a], !If [Yes, [b], []]]", [["a"], ["b"]]),
        ("{Condition: {StringEquals: {x: y}}}", {"Condition": {"StringEquals": {"x": "y"}}}),
        ("!If [No, !Join [1, 2, 3], ok]", "ok"),
    ],
)
def test_an_expression_gives(value: Callable[..., Any], expression: str, expected: Any) -> None:
    assert value(expression, more=MORE) == expected


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("!Ref Nobody", "there is no resource or parameter 'Nobody'"),
        ("!Ref AWS::Regoin", "there is no resource or parameter 'AWS::Regoin'"),
        ("!Ref [B]", "Ref takes a literal name"),
        ("!GetAtt Nobody.Arn", "there is no resource 'Nobody'"),
        ("!GetAtt Word.Arn", "there is no resource 'Word'"),
        ("!GetAtt B", "a logical id and an attribute"),
        ("!GetAtt [B, Arn, X]", "a list of 2"),
        ("!GetAtt [!Ref Word, Arn]", "literal logical id"),
        ("!GetAtt [B, !Ref C]", "cannot depend on a resource"),
        ("!Sub '${}'", "${} is no name"),
        ("!Sub '${a b}'", "is no name"),
        ("!Sub '${Word:-x}'", "is no name"),
        ("!Sub '${Nobody}'", "there is no resource or parameter 'Nobody'"),
        ("!Sub '${Word.Arn}'", "there is no resource 'Word'"),
        ("!Sub '${Names}'", "Names is a list"),
        ("!Sub '${AWS::NoValue}'", "AWS::NoValue cannot stand in text"),
        ("!Sub ['${x}', {x: [a]}]", "must be text, not a list"),
        ("!Sub ['${x}', {x: !Ref AWS::NoValue}]", "AWS::NoValue"),
        ("!Sub ['${Word}']", "a list of 2"),
        ("!Sub [!Ref Word, {}]", "must be literal text"),
        ("!Join [!Ref Word, [a]]", "the delimiter must be literal text"),
        ("!Join ['-', text]", "needs a list"),
        ("!Join ['-', [[a]]]", "every item must be text"),
        ("!Join ['-', [!Ref Names]]", "every item must be text"),
        ("!Join ['-']", "takes a list of 2, not one of 1"),
        ("!Select [3, [a]]", "index 3 is past the end of a list of 1"),
        ("!Select [-1, [a]]", "must be a whole number"),
        ("!Select [a, [a]]", "must be a whole number"),
        ("!Select [0, []]", "past the end"),
        ("!Select [0, text]", "needs a list"),
        ("!Split ['', a]", "the delimiter is empty"),
        ("!Split [',', [a]]", "must be text, not a list"),
        ("!Split [!Ref Word, a]", "must be literal text"),
        ("!Base64 [a]", "must be text"),
        ("!GetAZs {Ref: B}", "cannot depend on a resource"),
        ("!FindInMap [Nobody, a, b]", "there is no mapping 'Nobody'"),
        ("!FindInMap [Sizes, a, b]", "has no key 'a'"),
        ("!FindInMap [Sizes, eu-west-1, b]", "has no key 'b'"),
        ("!FindInMap [Sizes, !Sub a, b]", "only literals, Ref and Fn::FindInMap"),
        ("!FindInMap [Sizes, !Ref B, b]", "cannot depend on a resource"),
        ("!FindInMap [Sizes, eu-west-1, b, {DefaultValue: 1}]", "DefaultValue is not supported"),
        ("!If [Maybe, 1, 2]", "there is no condition 'Maybe'"),
        ("!If [Yes, 1]", "a condition's name and two values"),
        ("!If [!Equals [a, b], 1, 2]", "literal name of a condition"),
        ("!If [Yes, 1, !Ref Nobody]", "there is no resource or parameter 'Nobody'"),
        ("!Equals [a, b]", "only under Conditions"),
        ("{'Fn::Sub': a, other: b}", "must be the only key"),
        ("{'Fn::Nonsense': a}", "unknown intrinsic function Fn::Nonsense"),
        ("'{{resolve:ssm:/x}}'", "dynamic references"),
        ("!Join ['', ['{{res', 'olve:ssm:/x}}']]", "dynamic references"),
        ("!Join ['', ['{{resolve:secretsmanager:', !Ref B, '}}']]", "dynamic references"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_place(
    value_refusal: Callable[..., TemplateError], expression: str, reason: str
) -> None:
    error = value_refusal(expression, more=MORE)
    assert reason in error.reason
    assert (error.file, error.logical_id) == ("t.yaml", "A")
    assert error.line in (4, 5, 7)


@pytest.mark.parametrize(
    "name",
    [
        "ImportValue",
        "Cidr",
        "Transform",
        "Length",
        "ToJsonString",
        "GetStackOutput",
        "ForEach",
        "Contains",
        "ValueOf",
    ],
)
def test_a_function_that_is_not_supported_is_refused_by_name(refusal: Callable[..., TemplateError], name: str) -> None:
    error = refusal(f"Resources:\n  A:\n    Type: AWS::Test::Thing\n    Properties:\n      P: [!{name} [a]]\n")
    assert error.reason == f"Fn::{name} is not supported"
    assert (error.line, error.column, error.logical_id) == (5, 11, "A")


def test_a_near_name_is_suggested(refusal: Callable[..., TemplateError]) -> None:
    error = refusal(
        "Resources:\n  Bucket: {Type: AWS::S3::Bucket}\n  A: {Type: AWS::S3::Bucket, Properties: {P: !Ref Buckte}}\n"
    )
    assert error.hint == "Did you mean Bucket?"


def test_an_attribute_that_a_type_lacks_is_refused_with_its_line(
    value_refusal: Callable[..., TemplateError], value: Callable[..., Any]
) -> None:
    error = value_refusal("!Sub '${B.Arm}'", check=lambda type_name, attribute: attribute == "Arn")
    assert error.reason == "AWS::SQS::Queue (B) has no attribute 'Arm'"
    assert error.line == 7
    assert value("!GetAtt B.Arn", check=lambda type_name, attribute: attribute == "Arn") == AttrOf(B, "Arn")


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)


@given(delimiter=TEXTS.filter(bool), parts=st.lists(TEXTS, min_size=1))
def test_splitting_what_was_joined_gives_the_parts_back(delimiter: str, parts: list[str]) -> None:
    clean = [part.replace(delimiter, "") for part in parts]
    joined = JoinOf(delimiter, clean)
    split = resolve(SplitOf(delimiter, joined), lambda logical_id, attribute: UNKNOWN)
    if all(delimiter not in part for part in clean) and delimiter.join(clean).split(delimiter) == clean:
        assert split == clean
    assert delimiter.join(split) == resolve(joined, lambda logical_id, attribute: UNKNOWN)


@given(delimiter=TEXTS, parts=st.lists(st.one_of(TEXTS, st.just(RefTo(B)))))
def test_folding_a_join_does_not_change_what_it_resolves_to(delimiter: str, parts: list[Any]) -> None:
    def lookup(logical_id: LogicalId, attribute: str | None) -> str:
        return "here"

    assert resolve(fold_join(delimiter, parts), lookup) == resolve(JoinOf(delimiter, parts), lookup)


@given(text=TEXTS.filter(lambda text: "$" not in text))
def test_sub_leaves_text_without_names_alone(text: str) -> None:
    assert "".join(str(part) for part in sub_parts(text)) == text


@given(text=TEXTS.filter(lambda text: "}" not in text))
def test_an_escaped_name_is_literal(text: str) -> None:
    assert sub_parts("${!" + text + "}") == ["${" + text + "}"]


@given(names=st.lists(st.from_regex(r"[A-Za-z0-9]{1,8}(\.[A-Za-z0-9]{1,4})?", fullmatch=True), min_size=1))
def test_sub_finds_every_name_in_order(names: list[str]) -> None:
    parts = sub_parts("-".join(f"${{{name}}}" for name in names))
    assert [part.name for part in parts if isinstance(part, SubName)] == names
