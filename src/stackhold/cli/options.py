"""Options that commands share, and the step from what was typed to settings.

A flag whose value cannot be read is a usage error (exit 64); the same value in the environment or in
`stackhold.toml` is an input error that names its source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackhold.cli.durations import flag_text, parse_duration
from stackhold.cli.output import Output
from stackhold.cli.printable import is_text
from stackhold.cli.settings import ENVIRONMENT, Settings, load_settings
from stackhold.decide.clocks import DEADLINE_RANGE, LOCK_WAIT_RANGE
from stackhold.errors import InputError
from stackhold.model.ids import workspace_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.cli.surroundings import Surroundings

_OF_THE_USER = ("LOGNAME", "USER", "LNAME", "USERNAME", "HOME")

F = TypeVar("F", bound="Callable[..., Any]")


class Duration(click.ParamType[str]):
    """A span of time in a range. The value stays text, so that settings from every source are read in one place."""

    name = "duration"

    def __init__(self, lowest: int = 0, highest: int | None = None) -> None:
        self._lowest = lowest
        self._highest = highest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check it."""
        try:
            span = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span < self._lowest or (self._highest is not None and span > self._highest):
            self.fail(f"{value} is not {self._range()}", param, ctx)
        return str(value)

    def _range(self) -> str:
        if self._highest is None:
            return "longer than nothing"
        return f"from {flag_text(self._lowest)} to {flag_text(self._highest)}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every command begins with."""

    surroundings: Surroundings
    settings: Settings
    output: Output
    yes: bool


def invocation(surroundings: Surroundings, options: dict[str, object]) -> Invocation:
    """Put the shared options of a command together."""
    _check_environment(surroundings.environ)
    flags = {name: _text(options.get(name)) for name in ENVIRONMENT}
    alias = _text(options.get("stack_region"))
    if alias is not None and flags["region"] is not None and alias != flags["region"]:
        raise click.UsageError("--region and --stack-region name two regions; give one of them")
    flags["region"] = flags["region"] or alias
    settings = load_settings(flags, environ=surroundings.environ, cwd=surroundings.cwd)
    workspace = _text(options.get("workspace"))
    if workspace is not None:
        settings = replace(settings, workspace=workspace_name(workspace))
    return Invocation(
        surroundings=surroundings,
        settings=settings,
        output=Output(surroundings, as_json=bool(options.get("as_json"))),
        yes=bool(options.get("yes")),
    )


def _check_environment(environ: Mapping[str, str]) -> None:
    """Refuse variables of ours, of AWS and of who we are that are not text. They may be secrets: no value is shown."""
    for name, value in environ.items():
        if (name.startswith(("STACKHOLD_", "AWS_")) or name in _OF_THE_USER) and not is_text(name + value):
            raise InputError(f"the environment variable {name!a} is not UTF-8 text")


def _text(value: object) -> str | None:
    """An option's text; a switch that is off counts as not given."""
    return "true" if value is True else value if isinstance(value, str) else None


def _stacked(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def store_options(function: F) -> F:
    """Which store, region and account; and `--json`."""
    return _store_options(function, state="Store: file:DIR or s3://BUCKET. [default: file:.stackhold]")


def bucket_options(function: F) -> F:
    """The same where the store is a bucket to be made."""
    return _store_options(function, state="Bucket: s3://BUCKET. [default: s3://stackhold-state-ACCOUNT-REGION]")


def _store_options(function: F, *, state: str) -> F:
    return _stacked(
        click.option("--state", metavar="STORE", help=state),
        click.option("--state-prefix", metavar="PREFIX", help="First part of every key. [default: stackhold]"),
        click.option("--region", metavar="REGION", help="Region of the stack."),
        click.option("--stack-region", metavar="REGION", help="The same as --region.", hidden=True),
        click.option("--profile", metavar="NAME", help="Profile of the AWS configuration."),
        click.option("--allow-network-dir", is_flag=True, help="Use a directory store on a network file system."),
        click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout; text goes to stderr."),
    )(function)


def workspace_option(function: F) -> F:
    """`--workspace`, for commands that also look at Terraform stacks."""
    return click.option(
        "--workspace", metavar="NAME", help="STACK is a Terraform stack, in this workspace (mostly: default)."
    )(function)


def only_workspace_option(function: F) -> F:
    """`--workspace`, for commands that look at all stacks."""
    return click.option("--workspace", metavar="NAME", help="Only Terraform stacks, in this workspace.")(function)


def yes_option(function: F) -> F:
    """`--yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(function)


def locking_options(function: F) -> F:
    """The two clocks, the grace, and the lock's own times."""
    return _locking_options(function, deadline=Duration(*DEADLINE_RANGE), wait=Duration(*LOCK_WAIT_RANGE))


def teardown_options(function: F) -> F:
    """The same for a teardown, which no range of the two clocks may stop."""
    return _locking_options(function, deadline=Duration(), wait=Duration())


def _locking_options(function: F, *, deadline: Duration, wait: Duration) -> F:
    span = Duration(lowest=1)
    return _stacked(
        click.option("--deadline", type=deadline, help="When the whole run must be over. [default: 1h]"),
        click.option(
            "--lock-timeout",
            type=wait,
            help="How long to wait for a held lock, 0 not at all. [default: deploy and rollback try three more times, "
            "2 s apart; tf waits 5m; others do not wait]",
        ),
        click.option("--grace", type=span, help="Time between a first signal and the last save. [default: 10m]"),
        click.option("--lock-ttl", type=span, help="How long a holder may be silent. [default: 30m]"),
        click.option("--lock-renew", type=span, help="How often the lock is renewed. [default: 2m]"),
        click.option("--stop-poll", type=span, help="How often a request of `cancel` is looked for. [default: 15s]"),
    )(function)
