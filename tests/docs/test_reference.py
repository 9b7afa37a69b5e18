"""The reference pages name everything that there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from stackhold import errors
from stackhold.cli.app import stackhold
from stackhold.cli.settings import ENVIRONMENT, flag_name
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.run import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that can be typed, with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = {" ".join(words): command for words, command in commands(stackhold)}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_page_names_every_command_and_option(name: str) -> None:
    text = page("cli.md")
    verb = name.split()[0]
    section = re.search(rf"^## {verb}$.*?(?=^## |\Z)", text, re.M | re.S)
    assert section is not None, f"no section on {verb}"
    assert f"`{name}" in section[0] or f"`stackhold {name}" in section[0]
    shared = text[: text.index("\n## ")]
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option) and not option.hidden:
            longest = max(option.opts, key=len)
            words = re.compile(rf"{re.escape(longest)}(?![\w-])")
            assert words.search(section[0]) or words.search(shared), f"{name} {longest} is not described"


def test_the_command_page_names_no_option_that_is_not() -> None:
    known = {opt for command in COMMANDS.values() for option in command.params for opt in option.opts}
    assert set(re.findall(r"`(--[a-z][a-z-]*)", page("cli.md"))) <= known | {"--help", "--version"}


def test_the_exit_code_page_names_every_code_and_no_other() -> None:
    listed = dict(re.findall(r"^\| (\d+) \| ([^|]+?) \|", page("exit-codes.md"), re.M))
    assert {int(code) for code in listed} == {int(code) for code in ExitCode}


def test_the_exit_code_page_names_every_kind_of_error() -> None:
    kinds = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.StackholdError)
    }
    assert not {kind for kind in kinds if f"`{kind}`" not in page("exit-codes.md")}


def test_the_events_page_names_every_kind_and_outcome() -> None:
    text = page("events.md")
    assert not [kind.value for kind in EventKind if f"`{kind.value}`" not in text]
    assert not [outcome.value for outcome in Outcome if f"`{outcome.value}`" not in text]


@pytest.mark.parametrize("setting", ENVIRONMENT)
def test_the_configuration_page_names_every_setting_with_its_flag_and_variables(setting: str) -> None:
    row = re.search(rf"^\| `{flag_name(setting)}`.*$", page("configuration.md"), re.M)
    assert row is not None
    assert f"`{setting}`" in row[0]
    for variable in ENVIRONMENT[setting]:
        assert f"`{variable}`" in row[0]
