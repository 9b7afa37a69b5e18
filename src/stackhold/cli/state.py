"""`stackhold state …`: what is recorded and who holds the locks. Takes no lock and works while a run holds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, only_workspace_option, store_options, workspace_option
from stackhold.cli.wiring import Wiring

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings
    from stackhold.runs.inspect import StackView


@click.group()
def state() -> None:
    """Show records and locks."""


@state.command("list")
@click.option("--long", "-l", "is_long", is_flag=True, help="Also the lock: owner, operation, age, time to expiry.")
@store_options
@only_workspace_option
@click.pass_obj
def list_(surroundings: Surroundings, /, is_long: bool, **options: object) -> None:
    """List stacks with their resources and last change, those of Terraform with their workspace."""
    from stackhold.cli import render_state

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    views = _views(wiring, with_locks=is_long)
    text = render_state.list_text(views, is_long=is_long, now=wiring.clock.now(), url=call.settings.store.value.url)
    call.output.answer(render_state.list_document(views, is_long=is_long), text)


@state.command("show")
@click.argument("stack")
@store_options
@workspace_option
@click.pass_obj
def show(surroundings: Surroundings, /, stack: str, **options: object) -> None:
    """Show one stack: its lock, outputs and resources; with --json the stored objects as they are."""
    from stackhold.cli import render_state
    from stackhold.runs.inspect import read_stack

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    view = read_stack(wiring.store, wiring.clock, wiring.keys_of_recorded(stack))
    if call.output.as_json and view.record is not None:
        view.record.required()
    call.output.answer(
        render_state.show_document(view) if call.output.as_json else {},
        render_state.show_text(view, now=wiring.clock.now()),
    )
    if view.record is not None:
        view.record.required()


@state.command("resources")
@click.argument("stack")
@store_options
@workspace_option
@click.pass_obj
def resources(surroundings: Surroundings, /, stack: str, **options: object) -> None:
    """List a stack's resources."""
    from stackhold.cli import render_state
    from stackhold.runs.inspect import read_stack

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    view = read_stack(wiring.store, wiring.clock, wiring.keys_of_recorded(stack))
    if view.record is None:
        empty = {"stack": view.keys.stack, "region": view.keys.region, "resources": [], "pendingDeletes": []}
        call.output.answer(empty, "No resources.")
        return
    record = view.record.required()
    call.output.answer(render_state.resources_document(record), render_state.resources_text(record))


@state.command("info")
@store_options
@only_workspace_option
@click.pass_obj
def info(surroundings: Surroundings, /, **options: object) -> None:
    """Show which store is used, and how much is in it."""
    from stackhold.cli import render_state

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    views = _views(wiring, with_locks=False)
    region, region_set_by = wiring.region_and_source()
    facts = {
        "store": call.settings.store.value.url,
        "setBy": call.settings.store.source or "the built-in default",
        "prefix": call.settings.state_prefix.value,
        "region": region,
        "regionSetBy": region_set_by,
        "stacks": len(views),
        "terraformStacks": sum(view.keys.is_terraform for view in views),
        "resources": sum(view.resources or 0 for view in views),
        "locks": sum(view.is_locked for view in views),
        "unreadable": sum(view.record is not None and view.record.record is None for view in views),
    }
    call.output.answer(facts, render_state.info_text(facts))


def _views(wiring: Wiring, *, with_locks: bool) -> tuple[StackView, ...]:
    """The stacks of the store: all, or those in the workspace that is named."""
    from stackhold.runs.inspect import list_every_stack, list_stacks

    workspace = wiring.settings.workspace
    if workspace is None:
        return list_every_stack(wiring.store, wiring.clock, prefix=wiring.prefix, with_locks=with_locks)
    found = list_stacks(wiring.store, wiring.clock, prefix=wiring.prefix, with_locks=with_locks)
    return tuple(view for view in found if view.keys.region == workspace)
