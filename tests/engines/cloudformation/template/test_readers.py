"""Both syntaxes: what scalars mean, what is refused with its place, and that nothing but `TemplateError` comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackhold.engines.cloudformation.template import parse_text
from stackhold.engines.cloudformation.template.json_reader import read_json
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, ScalarNode
from stackhold.engines.cloudformation.template.yaml_reader import read_yaml
from stackhold.errors import TemplateError


def plain(node: Node) -> Any:
    if isinstance(node, MapNode):
        return {key: plain(item) for key, item in node.entries.items()}
    return [plain(item) for item in node.items] if isinstance(node, ListNode) else node.value


def of_yaml(text: str) -> Any:
    return plain(read_yaml(text, "t.yaml")[0])


def refused_yaml(text: str) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        read_yaml(text, "t.yaml")
    return caught.value


def refused_json(text: str) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        read_json(text, "t.json")
    return caught.value


@pytest.mark.parametrize(
    ("text", "value", "as_text"),
    [
        ("abc", "abc", "abc"),
        ("5", 5, "5"),
        ("-5", -5, "-5"),
        ("0", 0, "0"),
        ("1.5", 1.5, "1.5"),
        ("1.10", "1.10", "1.10"),
        ("0777", "0777", "0777"),
        ("012345678901", "012345678901", "012345678901"),
        ("123456789012", 123456789012, "123456789012"),
        ("0x1F", "0x1F", "0x1F"),
        ("1_000", "1_000", "1_000"),
        ("+5", "+5", "+5"),
        ("12:30:45", "12:30:45", "12:30:45"),
        ("2012-10-17", "2012-10-17", "2012-10-17"),
        ("2012-10-17T10:00:00Z", "2012-10-17T10:00:00Z", "2012-10-17T10:00:00Z"),
        ("=", "=", "="),
        ("1e3", "1e3", "1e3"),
        (".inf", ".inf", ".inf"),
        ("yes", True, "true"),
        ("Off", False, "false"),
        ("TRUE", True, "true"),
        ("'yes'", "yes", "yes"),
        ("'5'", "5", "5"),
        ("!!str 5", "5", "5"),
        ("! 5", "5", "5"),
        ("y", "y", "y"),
        ("|\n  two\n  lines", "two\nlines", "two\nlines"),
    ],
)
def test_a_yaml_scalar_means(text: str, value: Any, as_text: str) -> None:
    node, _ = read_yaml(f"k: {text}", "t.yaml")
    assert isinstance(node, MapNode)
    scalar = node.entries["k"]
    assert isinstance(scalar, ScalarNode)
    assert (scalar.value, scalar.text) == (value, as_text)
    assert type(scalar.value) is type(value)


@pytest.mark.parametrize("text", ["0777", "1.10", "0x1F", "012345678901"])
def test_a_number_that_others_read_differently_is_kept_with_a_warning(text: str) -> None:
    _, warnings = read_yaml(f"a: 1\nk: {text}", "t.yaml")
    assert warnings == (f"t.yaml:2: the number {text} is used as written; put it in quotes to say so",)


def test_yaml_keys_are_text_as_written() -> None:
    assert of_yaml("yes: 1\n5: 2\n2012-10-17: 3\n010: 4\n'null': 5") == {
        "yes": 1,
        "5": 2,
        "2012-10-17": 3,
        "010": 4,
        "null": 5,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!Ref A", {"Ref": "A"}),
        ("!Condition A", {"Condition": "A"}),
        ("!GetAtt A.B", {"Fn::GetAtt": "A.B"}),
        ("!Sub [a, {b: c}]", {"Fn::Sub": ["a", {"b": "c"}]}),
        ("!Base64\n  Fn::Sub: x", {"Fn::Base64": {"Fn::Sub": "x"}}),
        ("!If [a, !Ref B, !GetAZs '']", {"Fn::If": ["a", {"Ref": "B"}, {"Fn::GetAZs": ""}]}),
        ("!GetAZs", {"Fn::GetAZs": ""}),
    ],
)
def test_short_tags_stand_for_functions(text: str, expected: Any) -> None:
    assert of_yaml(f"k: {text}") == {"k": expected}


def test_aliases_and_merge_keys_are_resolved() -> None:
    text = """
base: &base {a: 1, b: 2}
other: &other {b: 3, c: 4}
list: [*base, &x !Ref Y, *x]
one: {<<: *base, b: own}
many: {<<: [*base, *other], d: 5}
"""
    read = of_yaml(text)
    assert read["list"] == [{"a": 1, "b": 2}, {"Ref": "Y"}, {"Ref": "Y"}]
    assert read["one"] == {"a": 1, "b": "own"}
    assert read["many"] == {"a": 1, "b": 2, "c": 4, "d": 5}


@pytest.mark.parametrize(
    ("text", "reason", "line", "column"),
    [
        ("a: 1\na: 2", "the key 'a' stands twice", 2, 1),
        ("a: [1, {b: 1, b: 2}]", "the key 'b' stands twice", 1, 15),
        ("a: 1\nb:", "null values are not allowed", 2, 3),
        ("a: ~", "null values are not allowed", 1, 4),
        ("a: [null]", "null values are not allowed", 1, 5),
        ("~: 1", "a key is missing or null", 1, 1),
        ("[a]: 1", "a key must be text", 1, 1),
        ("a: !Nope x", "unknown tag !Nope", 1, 4),
        ("a: !!set {b}", "the tag !!set is not supported", 1, 4),
        ("a: !!python/object:os.system x", "the tag !!python/object:os.system is not supported", 1, 4),
        ("a: *x", "the alias *x names no anchor", 1, 4),
        ("a: &x [*x]", "the alias *x stands inside what it names", 1, 8),
        ("a: {<<: 1}", "'<<' merges a map", 1, 5),
        ("a: [", "not YAML", 2, 1),
        ("a: b: c", "not YAML", 1, 5),
        ("\ta: b", "not YAML", 1, 1),
        ("a: \x07", "not YAML", 0, 0),
        ("\x00", "not YAML", 0, 0),
        ("", "the template is empty", 1, 1),
        ("# only a comment", "the template is empty", 1, 1),
        ("a: 1\n---\nb: 2", "one YAML document", 2, 1),
        ("a: " + "[" * 200 + "]" * 200, "nested deeper than 80 levels", 1, 84),
    ],
)
def test_wrong_yaml_is_refused_with_its_place(text: str, reason: str, line: int, column: int) -> None:
    error = refused_yaml(text)
    assert reason in error.reason
    assert (error.file, error.line) == ("t.yaml", line)
    assert error.column == column or "not YAML" in reason


def test_a_few_lines_of_aliases_cannot_make_a_giant() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "larger than 250,000 values" in refused_yaml("\n".join(lines)).reason


def test_a_chain_of_aliases_cannot_nest_without_end() -> None:
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))]
    assert "nested deeper" in refused_yaml("\n".join(lines)).reason


@pytest.mark.parametrize(
    ("text", "reason", "line", "column"),
    [
        ('{"a": 1,\n "a": 2}', "the key 'a' stands twice", 2, 2),
        ('{"a": null}', "null values are not allowed", 1, 7),
        ('{"a": 01}', "a comma or '}' is missing", 1, 8),
        ('{"a": 1,}', "a key in double quotes is missing", 1, 9),
        ("{'a': 1}", "a key in double quotes is missing", 1, 2),
        ('{"a" 1}', "a colon is missing", 1, 6),
        ('{"a": [1 2]}', "a comma or ']' is missing", 1, 10),
        ('{"a": NaN}', "'NaN' is no value", 1, 7),
        ('{"a": ', "the text ends early", 1, 7),
        ('{"a": "b', "a text is not closed", 1, 7),
        ('{"a": "\\x"}', "invalid escape", 1, 7),
        ('{"a": "\\ud800"}', "invalid escape", 1, 7),
        ('{"a": 1} x', "more text after the end", 1, 10),
        ("[" * 200, "nested deeper than 80 levels", 1, 82),
    ],
)
def test_wrong_json_is_refused_with_its_place(text: str, reason: str, line: int, column: int) -> None:
    error = refused_json(text)
    assert reason in error.reason
    assert (error.file, error.line, error.column) == ("t.json", line, column)


JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


def comparable(value: Any) -> Any:
    """Numbers may stay text as written, so they are compared as numbers."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


@given(value=JSON, indent=st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_the_standard_reader_reads_it(value: Any, indent: Any) -> None:
    def number(node: Node) -> Any:
        if isinstance(node, MapNode):
            return {key: number(item) for key, item in node.entries.items()}
        if isinstance(node, ListNode):
            return [number(item) for item in node.items]
        return node.value

    node, warnings = read_json(json.dumps(value, indent=indent), "t.json")
    if not warnings:
        assert comparable(number(node)) == comparable(value)


@given(text=st.text(max_size=200))
def test_any_text_is_a_template_or_a_template_error(text: str) -> None:
    for file in ("t.yaml", "t.json"):
        with pytest.raises(TemplateError):
            parse_text(text, file=file)


WORDS = """Resources: A B Type Properties Ref !Ref !Sub !Nope Fn::If Fn::Join - : , [ ] { } ' " & * << ? | > # % @ `
~ null AWS::S3::Bucket 0777 ${A} ${ {{resolve: Parameters: Outputs: Conditions: --- ... !!set yes \\"""
PIECES = st.sampled_from([*WORDS.split(), "\n", "\n ", "  ", "\t"])


def parse(text: str, file: str) -> TemplateError | None:
    try:
        parse_text(text, file=file)
    except TemplateError as error:
        return error
    return None


@settings(max_examples=400)
@given(pieces=st.lists(PIECES, max_size=40), glue=st.sampled_from(["", " "]))
def test_template_like_rubble_is_a_template_or_a_template_error(pieces: list[str], glue: str) -> None:
    for file in ("t.yaml", "t.json"):
        error = parse(glue.join(pieces), file)
        assert error is None or error.reason


@settings(max_examples=200)
@given(value=JSON)
def test_any_json_under_the_sections_is_a_template_or_a_template_error(value: Any) -> None:
    for section in ("Resources", "Parameters", "Conditions", "Outputs", "Mappings", "Rules", "Transform"):
        document = {"Resources": {"A": {"Type": "AWS::S3::Bucket"}}, section: value}
        error = parse(json.dumps(document), "t.json")
        assert error is None or error.reason
