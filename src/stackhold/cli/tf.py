"""`stackhold tf …`: Terraform and OpenTofu root modules under the guarded run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackhold.cli.options import locking_options, store_options, teardown_options, yes_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.cli.surroundings import Surroundings


@click.group()
def tf() -> None:
    """Run a Terraform or OpenTofu root module under the lock, whatever its backend.

    DIR is the module's folder, by default the current one. A module that declares no backend keeps its state in
    stackhold's store.
    """


def _module_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.argument("directory", metavar="[DIR]", default="."),
            click.option("--stack", metavar="NAME", help="Name of the stack. [default: the folder's name]"),
            click.option(
                "--bin",
                "command",
                metavar="WORD",
                multiple=True,
                help="The runtime: a command, repeated for its arguments. [default: tofu or terraform on PATH, else "
                "the embedded one]",
            ),
            click.option("--backend-config", metavar="KEY=VALUE|FILE", multiple=True, help="For init, as it is."),
        )
    ):
        function = option(function)
    return function


def _planning_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("--var-file", "var_files", metavar="FILE", multiple=True, help="A file of input variables."),
            click.option("--target", "targets", metavar="ADDRESS", multiple=True, help="Plan only this."),
            click.option(
                "--adopt-local-state",
                is_flag=True,
                help="Take a terraform.tfstate in DIR into the store; it is kept as a backup.",
            ),
        )
    ):
        function = option(function)
    return function


def _replace_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--replace", "replaces", metavar="ADDRESS", multiple=True, help="Replace this.")(function)


def _expect_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--expect-plan", metavar="HASH", help="Apply only the plan with this hash, which `tf plan` has shown."
    )(function)


@tf.command()
@_module_options
@_planning_options
@_replace_option
@_expect_option
@locking_options
@store_options
@yes_option
@click.pass_obj
def apply(surroundings: Surroundings, /, **options: object) -> int:
    """Plan, show the plan, ask, and apply that very plan. All of it is under one lock."""
    return _run("apply", surroundings, options)


@tf.command()
@_module_options
@_planning_options
@_replace_option
@locking_options
@store_options
@click.pass_obj
def plan(surroundings: Surroundings, /, **options: object) -> int:
    """Show what an apply would do, and the hash of that plan."""
    return _run("plan", surroundings, options)


@tf.command()
@_module_options
@_planning_options
@_expect_option
@teardown_options
@store_options
@yes_option
@click.pass_obj
def destroy(surroundings: Surroundings, /, **options: object) -> int:
    """Plan to destroy everything, show it, ask, and do it."""
    return _run("destroy", surroundings, options)


@tf.command()
@_module_options
@_planning_options
@locking_options
@store_options
@click.pass_obj
def refresh(surroundings: Surroundings, /, **options: object) -> int:
    """Bring the state up to what there is; changes nothing else."""
    return _run("refresh", surroundings, options)


@tf.command()
@_module_options
@_planning_options
@locking_options
@store_options
@click.pass_obj
def drift(surroundings: Surroundings, /, **options: object) -> int:
    """Say what has changed behind the state's back. Also what an apply would do; exit 1 when there is any."""
    return _run("drift", surroundings, options)


@tf.command()
@_module_options
@click.option("--version", "sequence", type=click.IntRange(min=1), help="A version of the state in the store.")
@click.option("--from", "backup", metavar="FILE", help="A copy of the state, for a module with a backend of its own.")
@teardown_options
@store_options
@yes_option
@click.pass_obj
def restore(surroundings: Surroundings, /, **options: object) -> int:
    """Make a former state the state again. Without --version or --from: list the versions in the store."""
    return _run("restore", surroundings, options)


@tf.command("force-unlock")
@_module_options
@click.argument("lock_id", required=False)
@locking_options
@store_options
@yes_option
@click.pass_obj
def force_unlock(surroundings: Surroundings, /, **options: object) -> int:
    """Delete the lock of a run that is gone. With LOCK_ID, the runtime's own state lock that has this id."""
    return _run("force-unlock", surroundings, options)


def _run(operation: str, surroundings: Surroundings, options: dict[str, object]) -> int:
    from stackhold.cli.tf_run import run_tf
    from stackhold.engines.terraform.steps import Operation

    return run_tf(Operation(operation), surroundings, options)
