"""The command line's frame: which verbs there are, and what becomes of every way a command can end.

Verbs are imported only when they run, so `--version` and `--help` cost nothing. Every expected error is shown as
text (and, with `--json`, as a document) and turned into an exit code here and nowhere else.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING

import click

from stackhold._version import __version__
from stackhold.cli.printable import is_text
from stackhold.errors import StackholdError
from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.cli.surroundings import Surroundings

VERBS = {
    "deploy": "Make a stack what its template says.",
    "diff": "Show what a deploy would change; takes no lock.",
    "destroy": "Delete everything that a stack has.",
    "rollback": "Undo what runs left half done.",
    "drift": "Compare the record with the cloud.",
    "cancel": "Ask the run that holds a stack's lock to stop.",
    "tf": "Run a Terraform or OpenTofu module under the lock.",
    "state": "Show records and locks.",
    "force-unlock": "Delete a lock whose run is gone.",
    "events": "Show what runs did, or follow the one at work.",
    "runner": "The program of a Kubernetes Job.",
    "crds": "Print the definitions of the Kubernetes kinds.",
    "bootstrap": "Create the bucket for records and locks.",
}
"""Each verb with its line in `--help`; its module is `cli/<verb>.py`, the command in it has the verb's name."""

_USAGE_OF_JOBS = 2
"""`runner run` alone has its own exit codes: 0, 1 and 2."""


class _Verbs(click.Group):
    """A group that knows its commands' names and lines without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module."""
        if cmd_name not in VERBS:
            return None
        name = cmd_name.replace("-", "_")
        command = getattr(import_module(f"stackhold.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A verb that is none is told with the one that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=VERBS, ctx=ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table, so that help imports nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="stackhold", message="%(prog)s %(version)s")
def stackhold() -> None:
    """Change cloud infrastructure under one lock with a heartbeat and two clocks.

    Settings come from a flag, else from the environment (STACKHOLD_...), else from the nearest stackhold.toml.
    """


def run(arguments: Sequence[str], surroundings: Surroundings) -> int:
    """Run one command; gives its exit code and never raises, `KeyboardInterrupt` and broken pipes included."""
    as_json = "--json" in arguments
    try:
        _check_text(arguments)
        result = stackhold.main(list(arguments), prog_name="stackhold", standalone_mode=False, obj=surroundings)
    except BrokenPipeError:
        return ExitCode.FAILED
    except Exception as error:
        return _explain(error, surroundings, as_json=as_json, usage=_usage_code(arguments))
    except KeyboardInterrupt:
        return _interrupted(surroundings)
    return result if isinstance(result, int) else ExitCode.DONE


def _usage_code(arguments: Sequence[str]) -> int:
    """The exit code of a command line that cannot be understood."""
    return _USAGE_OF_JOBS if list(arguments[:2]) == ["runner", "run"] else ExitCode.USAGE


def _check_text(arguments: Sequence[str]) -> None:
    """Whatever we take goes into records and messages, so it must be text."""
    for number, argument in enumerate(arguments, start=1):
        if not is_text(argument):
            raise click.UsageError(f"argument {number} is not UTF-8 text: {argument!a}")


def _explain(error: Exception, surroundings: Surroundings, *, as_json: bool, usage: int) -> int:
    """Show an error; its exit code."""
    from stackhold.cli import render_errors

    if isinstance(error, click.Abort):
        return _interrupted(surroundings)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        surroundings.stderr.write(error.format_message() + "\n")
        return usage
    code: int = ExitCode.FAILED
    if isinstance(error, click.ClickException):
        shown, code = render_errors.of_usage(error), usage
    elif isinstance(error, StackholdError):
        shown = render_errors.of_error(error)
    else:
        shown = render_errors.of_unexpected(error, with_traceback=surroundings.is_debug)
    with contextlib.suppress(OSError):
        surroundings.stdout.flush()
    with contextlib.suppress(OSError):
        surroundings.stderr.write(shown.text)
    if as_json:
        with contextlib.suppress(OSError):
            surroundings.stdout.write(render_errors.document(shown, code))
    return code


def _interrupted(surroundings: Surroundings) -> int:
    surroundings.stderr.write("\nstackhold: interrupted; nothing was changed\n")
    return ExitCode.INTERRUPTED
