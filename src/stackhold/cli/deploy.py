"""`stackhold deploy TEMPLATE`: make a stack what its template says, under the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, locking_options, store_options, yes_option
from stackhold.cli.template_options import template_options
from stackhold.cli.wiring import Wiring

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@template_options
@click.option("--no-wait", is_flag=True, help="Do not wait for slow resources to settle; the next deploy does.")
@click.option("--no-baseline", is_flag=True, help="Do not read what AWS has afterwards; drift then sees less.")
@click.option("--no-rollback", is_flag=True, help="Leave what was done when a resource fails.")
@locking_options
@store_options
@yes_option
@click.pass_obj
def deploy(surroundings: Surroundings, /, **options: object) -> int:
    """Make a stack what TEMPLATE says: a template file, or STACK of a cdk.out directory.

    Asks before a plan that would lose the data of a stateful resource; --yes says yes to it.
    """
    from stackhold.cli.approval import DeployApproval
    from stackhold.cli.planning import settle_doubt, target
    from stackhold.cli.running import Running, finish, run_guarded
    from stackhold.engines.cloudformation.bench import DeployOptions

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    began = wiring.clock.boot()
    behaviour = DeployOptions(
        wait=not options["no_wait"], baseline=not options["no_baseline"], rollback=not options["no_rollback"]
    )
    wanted = target(call, wiring, options, deploy=behaviour)
    identity = wiring.identity(
        stack=wanted.source.stack, region=wanted.region, operation="deploy", engine="cloudformation"
    )
    settle_doubt(wanted, wiring, identity)
    running = Running(call, began)
    approval = DeployApproval(running, identity)
    report = run_guarded(running, wiring, identity=identity, engine=wanted.engine, approve=approval)
    return finish(
        call,
        report,
        plan=approval.document,
        refusal=approval.refusal,
        took_ms=wiring.clock.boot() - began,
        undo_command=wiring.command("rollback", identity.stack, identity.region),
    )
