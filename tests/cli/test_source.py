from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stackhold.cli.source import find_source
from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def assembly(folder: Path, *names: str, environment: str = "aws://unknown-account/unknown-region") -> Path:
    folder.mkdir()
    artifacts = {
        name: {
            "type": "aws:cloudformation:stack",
            "environment": environment,
            "properties": {"templateFile": f"{name}.template.json", "tags": {"team": "a"}},
            "displayName": f"Prod/{name}",
        }
        for name in names
    }
    (folder / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": artifacts}))
    for name in names:
        (folder / f"{name}.template.json").write_text('{"Resources": {}}')
    return folder


@pytest.mark.parametrize(
    ("file", "name"), [("wide.yaml", "wide"), ("a/wide.template.json", "wide"), ("My-Stack.json", "My-Stack")]
)
def test_a_templates_stack_is_called_like_its_file_up_to_the_first_dot(tmp_path: Path, file: str, name: str) -> None:
    assert find_source(file, selected=None, named=None, cwd=tmp_path).stack == name


def test_the_name_can_be_given(tmp_path: Path) -> None:
    assert find_source("wide.yaml", selected=None, named="other", cwd=tmp_path).stack == "other"


@pytest.mark.parametrize("named", ["../x", "1a", "", "a" * 129])
def test_a_name_that_could_leave_its_place_is_refused(tmp_path: Path, named: str) -> None:
    with pytest.raises(InputError, match="is no stack name"):
        find_source("wide.yaml", selected=None, named=named, cwd=tmp_path)


def test_a_file_whose_name_is_no_stack_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'my_stack' is no stack name"):
        find_source("my_stack.yaml", selected=None, named=None, cwd=tmp_path)


def test_the_only_stack_of_an_app_is_meant(tmp_path: Path) -> None:
    assembly(tmp_path / "cdk.out", "Api", environment="aws://123456789012/eu-west-1")
    source = find_source("cdk.out", selected=None, named=None, cwd=tmp_path)
    assert (source.stack, source.region, source.account) == ("Api", "eu-west-1", "123456789012")
    assert source.tags == {"team": "a"}
    assert source.file == tmp_path / "cdk.out" / "Api.template.json"


@pytest.mark.parametrize("selected", ["Db", "Prod/Db"])
def test_one_of_several_stacks_is_chosen_by_name_or_display_path(tmp_path: Path, selected: str) -> None:
    assembly(tmp_path / "cdk.out", "Api", "Db")
    assert find_source("cdk.out", selected=selected, named=None, cwd=tmp_path).stack == "Db"


def test_of_several_stacks_one_must_be_named(tmp_path: Path) -> None:
    assembly(tmp_path / "cdk.out", "Api", "Db")
    with pytest.raises(InputError, match="name one of: Prod/Api, Prod/Db"):
        find_source("cdk.out", selected=None, named=None, cwd=tmp_path)
    with pytest.raises(InputError, match="no stack Web"):
        find_source("cdk.out", selected="Web", named=None, cwd=tmp_path)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assembly(tmp_path / "cdk.out", "Api")
    for template, selected, named, reason in (
        ("plain", None, None, "no cdk.out"),
        ("cdk.out", None, "Other", "--stack-name is for template files"),
        ("wide.yaml", "Api", None, "is one stack"),
    ):
        with pytest.raises(InputError, match=reason):
            find_source(template, selected=selected, named=named, cwd=tmp_path)
