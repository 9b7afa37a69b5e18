"""What the product is to have and this release has not: its name is known, so that nobody takes it for misspelt.

Commands and options of other releases or of the design are no typing errors. They are answered by name, with what
can be done instead where there is something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final[Mapping[str, str]] = {
    "import": "",
    "export": "",
    "orphan": "",
    "scrub": "",
    "synth": "Run `cdk synth` and deploy the cdk.out directory.",
    "list": "See what is recorded with: stackhold state list",
    "gc": "",
    "doctor": "",
    "publish-assets": "",
    "kube": "",
    "tf import": "Write an import block into the module, and run: stackhold tf apply",
    "state orphan": "",
    "state destroy": "Delete a recorded stack with: stackhold destroy STACK",
    "state refresh-observed": "",
    "state rm-backup": "",
}
"""Commands as typed after `stackhold`, each with what to do instead."""

OPTIONS: Final[Mapping[str, str]] = {
    "deploy --app": "Run `cdk synth` and deploy the cdk.out directory.",
    "diff --app": "Run `cdk synth` and compare the cdk.out directory.",
    "deploy --all": "",
    "destroy --all": "",
    "deploy --dry-run": "See what a deploy would change with: stackhold diff",
    "deploy --full-wait": "",
    "drift --accept": "",
    "drift --revert": "",
    "bootstrap --destroy": "",
}
"""Options with their command, each with what to do instead."""


def not_yet(error: click.ClickException) -> str | None:
    """The message for a command or option that is planned; None for any other error."""
    context = getattr(error, "ctx", None)
    if context is None:
        return None
    path = context.command_path.partition(" ")[2]
    if isinstance(error, click.NoSuchOption):
        name, known = f"{path} {error.option_name}", OPTIONS
    elif isinstance(error, click.exceptions.NoSuchCommand):
        name, known = f"{path} {error.command_name}".lstrip(), COMMANDS
    else:
        return None
    if name not in known:
        return None
    instead = f" {known[name]}" if known[name] else ""
    return f"{name} is not in this release.{instead}"
