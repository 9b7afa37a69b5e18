"""`stackhold diff TEMPLATE`: what a deploy would change. Takes no lock and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, store_options
from stackhold.cli.template_options import template_options
from stackhold.cli.wiring import Wiring
from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@template_options
@click.option("--fail", is_flag=True, help="Exit 1 when a deploy would change something.")
@store_options
@click.pass_obj
def diff(surroundings: Surroundings, /, fail: bool, **options: object) -> int:
    """Show what a deploy of TEMPLATE would change: a template file, or STACK of a cdk.out directory."""
    from stackhold.cli import render_plan
    from stackhold.cli.paint import Paint
    from stackhold.cli.planning import target
    from stackhold.engines.cloudformation.bench import DeployOptions
    from stackhold.runs import exports
    from stackhold.runs.inspect import read_record

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    wanted = target(call, wiring, options, deploy=DeployOptions())
    keys = wiring.keys(wanted.source.stack, wanted.region)
    found = read_record(wiring.store, keys)
    record = found.required() if found is not None else None
    identity = wiring.identity(
        stack=wanted.source.stack, region=wanted.region, operation="diff", engine="cloudformation"
    )
    work = wanted.engine.plan(record, identity)
    exports.look(wiring.store, keys, work)
    plan = work.plan
    document = render_plan.plan_document(plan, stack=identity.stack, region=identity.region, record=record)
    paint = Paint(surroundings.color_on(call.output.human))
    text = render_plan.plan_text(plan, stack=identity.stack, region=identity.region, record=record, paint=paint)
    call.output.answer(document, text)
    return ExitCode.FAILED if fail and not plan.is_empty else ExitCode.DONE
