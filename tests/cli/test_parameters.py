from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from stackhold.cli.parameters import load_parameters, parse_pairs, read_parameters
from stackhold.errors import InputError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.json", '{"Size": 5, "Ratio": 1.10, "On": true, "Zones": ["a", "b"], "Account": "012345678901"}'),
        (
            "p.json",
            '[{"ParameterKey": "Size", "ParameterValue": "5"}, {"ParameterKey": "Ratio", "ParameterValue": "1.10"},'
            '{"ParameterKey": "On", "ParameterValue": "true"}, {"ParameterKey": "Zones", "ParameterValue": "a,b"},'
            '{"ParameterKey": "Account", "ParameterValue": "012345678901"}]',
        ),
        ("p.yaml", "Size: 5\nRatio: 1.10\nOn: true\nZones: [a, b]\nAccount: 012345678901\n"),
        ("p.json", '{"Parameters": {"Size": 5, "Ratio": 1.10, "On": true, "Zones": "a,b", "Account": "012345678901"}}'),
    ],
)
def test_every_form_of_a_file_gives_the_text_as_written(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read_parameters(tmp_path / name) == {
        "Size": "5",
        "Ratio": "1.10",
        "On": "true",
        "Zones": "a,b",
        "Account": "012345678901",
    }


def test_a_pair_wins_over_a_file_and_a_later_file_over_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"A": "1", "B": "1", "C": "1"}')
    (tmp_path / "b.json").write_text('{"B": "2", "C": "2"}')
    assert load_parameters(["a.json", "b.json"], ["C=x=y"], cwd=tmp_path) == {"A": "1", "B": "2", "C": "x=y"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"A": }', r"p\.json:1:7: it is not valid JSON"),
        ('["A"]', "needs ParameterKey"),
        ('"A"', "parameters are an object"),
        ('{"A": {"B": 1}}', "A: a parameter's value is text"),
        ('{"A": null}', "A: a parameter's value is text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(InputError, match=reason):
        read_parameters(tmp_path / "p.json")


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json cannot be read: No such file"):
        read_parameters(tmp_path / "none.json")


@pytest.mark.parametrize("pairs", [["A"], ["=1"], ["A=1", "A=2"]])
def test_what_is_no_pair_is_a_usage_error(pairs: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse_pairs(pairs, flag="--parameter")


DEEP = 100_000


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("p.json", "[" * DEEP, "nested too deeply"),
        ("p.json", '{"A":' * DEEP, "nested too deeply"),
        ("p.yaml", "A: " + "[" * DEEP, "nested too deeply"),
        ("p.json", '{"A": "1", "A": "2"}', "the key 'A' stands twice"),
        ("p.yaml", "A: 1\nB: 2\nA: 3\n", "line 3: the key 'A' stands twice"),
        (
            "p.yaml",
            "- {ParameterKey: A, ParameterValue: 1}\n- {ParameterKey: A, ParameterValue: 2}\n",
            "A a second time",
        ),
        ("p.json", '{"A": NaN}', "NaN is no number of JSON"),
        ("p.json", '{"A": "\\ud800"}', "half of a surrogate pair"),
        ("p.yaml", "A: &a [*a]\n", "p.yaml"),
        ("p.yaml", "&a - *a\n", "p.yaml"),
        ("p.yaml", "A: 1\n? [x]\n: 2\n", "p.yaml"),
        ("p.yaml", f"A: &a {'x' * 500_000}\nB: [{', '.join(['*a'] * 100)}]\n", "B: a parameter's value is text"),
    ],
)
def test_a_file_that_no_reader_should_trust_is_refused_by_name(
    tmp_path: Path, name: str, content: str, reason: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=reason) as raised:
        read_parameters(tmp_path / name)
    assert name in raised.value.message


def test_an_item_that_is_no_parameter_is_named_by_its_number_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('[{"ParameterKey": "A", "Value": "geheim"}]')
    with pytest.raises(InputError, match="item 1 of the list needs ParameterKey") as raised:
        read_parameters(tmp_path / "p.json")
    assert "geheim" not in raised.value.message


@pytest.mark.parametrize(("name", "content"), [("p.json", '{"A": "1"}'), ("p.yaml", "A: 1\n")])
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8-sig")
    assert read_parameters(tmp_path / name) == {"A": "1"}


def test_a_pipe_and_a_device_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    with pytest.raises(InputError, match="it is a pipe, not a file"):
        read_parameters(tmp_path / "p.json")
    with pytest.raises(InputError, match="it is a device, not a file"):
        read_parameters(Path("/dev/zero"))
