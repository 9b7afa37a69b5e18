"""Errors as people and programs read them: one line with the reason, the facts, the safe next step.

Text from outside (a cloud's message, a file's content) is made printable first, so that it cannot move a cursor or
pretend to be ours.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.cli.planned import not_yet
from stackhold.cli.printable import lines_text, one_line, printable
from stackhold.errors import AwsError, LockHeld, LockLost, RecordUnreadable, StackholdError, StoreError, TemplateError
from stackhold.model.user_info import without_user_info

if TYPE_CHECKING:
    import click

    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class Shown:
    """An error's text with its final newline, and its facts for `--json`."""

    text: str
    facts: JsonMap = field(default_factory=dict)


def of_error(error: StackholdError) -> Shown:
    """An error that we raised on purpose."""
    details = error.details if isinstance(error, LockHeld) else ()
    lines = [f"stackhold: {error.message}", *(f"  {line}" for line in details), *error.hint.split("\n")]
    facts = {
        "kind": type(error).__name__,
        "message": error.message,
        **({"details": list(details)} if details else {}),
        **({"hint": error.hint} if error.hint else {}),
        **_facts(error),
    }
    return Shown(lines_text(lines).rstrip("\n") + "\n", facts)


def of_usage(error: click.ClickException) -> Shown:
    """A command line that cannot be understood."""
    context = getattr(error, "ctx", None)
    usage = f"{context.get_usage()}\nTry '{context.command_path} --help'.\n" if context is not None else ""
    message = not_yet(error) or error.format_message()
    return Shown(f"stackhold: {one_line(message)}\n{usage}", {"kind": "UsageError", "message": message})


def of_unexpected(error: Exception, *, with_traceback: bool) -> Shown:
    """A mistake of our own."""
    name, said = type(error).__name__, without_user_info(" ".join(str(error).split()))
    message = f"internal error: {name}: {said}" if said else f"internal error: {name}"
    if with_traceback:
        below = without_user_info("".join(traceback.format_exception(error)))
    else:
        below = "This is a bug. Run again with STACKHOLD_DEBUG=1 to see where, and please report it.\n"
    return Shown(f"stackhold: {one_line(message)}\n{printable(below)}", {"kind": "Bug", "message": message})


def document(shown: Shown, code: int) -> str:
    """The `--json` document of an error."""
    from stackhold.cli.output import json_text

    return json_text({"error": shown.facts, "exitCode": int(code)})


def _facts(error: StackholdError) -> JsonMap:
    match error:
        case AwsError():
            return {"service": error.service, "operation": error.operation, "code": error.code, "status": error.status}
        case TemplateError():
            return {
                "file": error.file,
                "line": error.line,
                "column": error.column,
                "logicalId": error.logical_id,
                "reason": error.reason,
            }
        case RecordUnreadable() | StoreError():
            return {"key": error.key} if error.key else {}
        case LockLost():
            return {"holder": error.holder} if error.holder else {}
        case _:
            return {}
