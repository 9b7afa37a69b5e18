from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.typing_scene import Shell

from stackhold.cli.app import VERBS
from stackhold.cli.planned import COMMANDS, OPTIONS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("arguments", [["nonsense"], ["state", "nonsense"], ["state", "list", "--nope"], ["cancel"]])
def test_a_command_line_that_cannot_be_understood_exits_64(shell: Shell, arguments: list[str]) -> None:
    typed = shell.type(*arguments)
    assert typed.code == 64
    assert typed.err.startswith("stackhold: ")
    assert typed.out == ""


def test_a_usage_error_with_json_is_a_document_too(shell: Shell) -> None:
    typed = shell.type("state", "show", "--json")
    assert typed.code == 64
    assert typed.json() == {
        "error": {"kind": "UsageError", "message": "Missing argument 'STACK'."},
        "exitCode": 64,
    }


def test_a_flag_with_no_duration_exits_64_and_a_variable_with_none_exits_1(tmp_path: Path) -> None:
    typed = Shell(tmp_path).type("destroy", "x", "--deadline", "soon")
    assert (typed.code, "'soon' is no duration" in typed.err) == (64, True)
    typed = Shell(tmp_path, {"STACKHOLD_DEADLINE": "soon"}).type("destroy", "x")
    assert (typed.code, typed.err.splitlines()[0]) == (
        1,
        "stackhold: STACKHOLD_DEADLINE: 'soon' is no duration; write seconds or a unit, such as 300, 90s, 5m or 2h",
    )


def test_an_expected_error_is_one_line_and_a_hint_and_exits_1(shell: Shell) -> None:
    typed = shell.type("state", "show", "../x")
    assert typed.code == 1
    assert typed.err.splitlines() == [
        "stackhold: '../x' is no stack name: a letter, then letters, digits and hyphens, at most 128 characters",
        "See what is recorded with: stackhold state list",
    ]
    assert not (shell.cwd / ".stackhold").exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_planned_command_says_that_it_is_not_in_this_release(shell: Shell, name: str) -> None:
    typed = shell.type(*name.split(), "STACK", "--yes")
    assert (typed.code, typed.err.partition(".")[0]) == (64, f"stackhold: {name} is not in this release")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_planned_option_says_that_it_is_not_in_this_release(shell: Shell, name: str) -> None:
    typed = shell.type(*name.split(), "x")
    assert (typed.code, typed.err.partition(".")[0]) == (64, f"stackhold: {name} is not in this release")


def test_a_misspelt_command_is_told_with_the_one_that_may_be_meant(shell: Shell) -> None:
    assert "Did you mean 'deploy'" in shell.type("deply", "x.yaml").err
    assert "Did you mean 'list'" in shell.type("state", "lst").err


def test_two_regions_under_two_names_are_a_usage_error(shell: Shell) -> None:
    typed = shell.type("state", "show", "x", "--region", "eu-west-1", "--stack-region", "us-east-1")
    assert typed.code == 64


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_help(shell: Shell, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.type(verb, "--help").code == 0
    assert "Usage: stackhold" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_version_and_help_import_nothing_slow(arguments: list[str]) -> None:
    probe = (
        "import sys, os; sys.argv = ['stackhold', *sys.argv[1:]]\n"
        "from stackhold.cli.app import run\n"
        "from stackhold.cli.surroundings import Surroundings\n"
        "from pathlib import Path\n"
        "run(sys.argv[1:], Surroundings({}, Path('.'), sys.stdin, sys.stdout, sys.stderr))\n"
        "slow = {'botocore', 'rich', 'yaml', 'msgspec', 'json', 'asyncio'} & set(sys.modules)\n"
        "sys.exit(f'imported {slow}' if slow else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", probe, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
