"""`stackhold drift STACK`: the record against the cloud. Takes no lock and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, store_options
from stackhold.cli.wiring import Wiring
from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@click.argument("stack")
@store_options
@click.pass_obj
def drift(surroundings: Surroundings, /, stack: str, **options: object) -> int:
    """Compare the record of STACK with what AWS has; exit 1 when something differs, 2 when not all could be read."""
    from stackhold.cli import render_drift
    from stackhold.cli.paint import Paint
    from stackhold.engines.cloudformation.drift import drift_stack
    from stackhold.engines.cloudformation.resources.registry import handler_for
    from stackhold.runs.inspect import no_such_stack, read_record

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    keys = wiring.keys_of_recorded(stack)
    found = read_record(wiring.store, keys)
    if found is None:
        raise no_such_stack(wiring.store, keys)
    report = drift_stack(found.required(), wiring.session.aws(keys.region), native=handler_for)
    paint = Paint(surroundings.color_on(call.output.human))
    call.output.answer(render_drift.drift_document(report), render_drift.drift_text(report, paint=paint))
    if not report.is_complete:
        return ExitCode.PARTLY
    return ExitCode.FAILED if report.is_drifted else ExitCode.DONE
