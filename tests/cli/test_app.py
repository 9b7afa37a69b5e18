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


def test_an_argument_or_a_variable_that_is_no_text_is_refused_without_its_secrets(tmp_path: Path) -> None:
    no_text = b"caf\xe9".decode("utf-8", "surrogateescape")
    typed = Shell(tmp_path).type("destroy", no_text, "--yes")
    assert (typed.code, typed.err.splitlines()[0]) == (64, "stackhold: argument 2 is not UTF-8 text: 'caf\\udce9'")
    for name in ("STACKHOLD_STATE", "AWS_SECRET_ACCESS_KEY", "LOGNAME"):
        typed = Shell(tmp_path, {name: no_text}).type("state", "list")
        assert (typed.code, typed.err) == (1, f"stackhold: the environment variable '{name}' is not UTF-8 text\n")


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--deadline=0", "0 is not from 1s to 24h"),
        ("--deadline=25h", "25h is not from 1s to 24h"),
        ("--lock-timeout=2h", "2h is not from 0 to 1h"),
        ("--grace=0", "0 is not longer than nothing"),
        ("--lock-ttl=0", "0 is not longer than nothing"),
        ("--lock-renew=0", "0 is not longer than nothing"),
        ("--stop-poll=0", "0 is not longer than nothing"),
    ],
)
def test_a_flag_outside_its_range_exits_64(shell: Shell, flag: str, reason: str) -> None:
    typed = shell.type("rollback", "x", flag)
    assert typed.code == 64
    assert f"{flag.partition('=')[0]}': {reason}" in typed.err.splitlines()[0]
    assert shell.type("events", "x", "--limit", "0").code == 64


def test_no_range_of_the_two_clocks_stops_a_destroy(shell: Shell) -> None:
    typed = shell.type("destroy", "x", "--deadline", "48h", "--region", "eu-west-1", "--yes")
    assert (typed.code, "no stack x in eu-west-1" in typed.err) == (1, True)
