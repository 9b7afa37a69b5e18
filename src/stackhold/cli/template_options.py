"""Options of the verbs that take a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def template_options(function: F) -> F:
    """The template, which stack of it, and what it is evaluated with."""
    decorators = (
        click.argument("template"),
        click.argument("selected", metavar="[STACK]", required=False),
        click.option(
            "--stack-name", metavar="NAME", help="The stack's name. [default: the file's, up to its first dot]"
        ),
        click.option("--parameter", "-p", "parameters", metavar="KEY=VALUE", multiple=True, help="A parameter."),
        click.option(
            "--parameters-file",
            "parameters_files",
            metavar="FILE",
            multiple=True,
            help="Parameters as JSON or YAML: {KEY: VALUE}, or a list of ParameterKey and ParameterValue.",
        ),
        click.option(
            "--tag",
            "tags",
            metavar="KEY=VALUE",
            multiple=True,
            help="A tag of every resource; those given replace all of the last deploy's, none given keeps them.",
        ),
        click.option("--no-tags", is_flag=True, help="Give no tags, and keep none of the last deploy's."),
        click.option(
            "--replace",
            metavar="LOGICAL_ID",
            multiple=True,
            help="Let this resource be replaced although its name stays: the old one is deleted first.",
        ),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
