"""`stackhold state …`: what is recorded and who holds the locks. Takes no lock and works while a run holds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, store_options, workspace_option
from stackhold.cli.wiring import Wiring

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.group()
def state() -> None:
    """Show records and locks."""


@state.command("list")
@click.option("--long", "-l", "is_long", is_flag=True, help="Also the lock: owner, operation, age, time to expiry.")
@store_options
@workspace_option
@click.pass_obj
def list_(surroundings: Surroundings, /, is_long: bool, **options: object) -> None:
    """List stacks with their resources and last change."""
    from stackhold.cli import render_state
    from stackhold.runs.inspect import list_stacks

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    views = list_stacks(wiring.store, wiring.clock, prefix=wiring.prefix, with_locks=is_long)
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
@workspace_option
@click.pass_obj
def info(surroundings: Surroundings, /, **options: object) -> None:
    """Show which store is used, and how much is in it."""
    from stackhold.cli import render_state
    from stackhold.runs.inspect import list_stacks

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    prefix = wiring.prefix
    views = list_stacks(wiring.store, wiring.clock, prefix=prefix, with_locks=False)
    records = [view.record.record for view in views if view.record is not None and view.record.record is not None]
    region, region_set_by = wiring.region_and_source()
    facts = {
        "store": call.settings.store.value.url,
        "setBy": call.settings.store.source or "the built-in default",
        "prefix": prefix,
        "region": region,
        "regionSetBy": region_set_by,
        "stacks": len(views),
        "resources": sum(len(record.resources) for record in records),
        "locks": sum(view.is_locked for view in views),
        "unreadable": sum(view.record is not None and view.record.record is None for view in views),
    }
    call.output.answer(facts, render_state.info_text(facts))
