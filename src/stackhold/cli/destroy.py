"""`stackhold destroy STACK`: delete everything that a stack has, under the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, store_options, teardown_options, yes_option
from stackhold.cli.wiring import Wiring

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@click.argument("stack")
@teardown_options
@store_options
@yes_option
@click.pass_obj
def destroy(surroundings: Surroundings, /, stack: str, **options: object) -> int:
    """Delete everything that STACK has, dependents first; what a policy retains stays.

    Shows what would go and asks. An interrupted destroy can be run again.
    """
    from stackhold.cli.approval import DestroyApproval
    from stackhold.cli.running import Running, finish, run_guarded
    from stackhold.engines.cloudformation.engine import DestroyEngine
    from stackhold.errors import InputError
    from stackhold.runs.inspect import is_known, no_such_stack

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    began = wiring.clock.boot()
    keys = wiring.keys_of_recorded(stack)
    if not is_known(wiring.store, keys):
        raise no_such_stack(wiring.store, keys)
    if not call.yes and not surroundings.can_ask:
        raise InputError(
            f"nobody can be asked here whether to destroy {keys.stack} ({keys.region}); nothing was changed",
            hint="Say it with --yes.",
        )
    identity = wiring.identity(stack=keys.stack, region=keys.region, operation="destroy", engine="cloudformation")
    running = Running(call, began)
    approval = DestroyApproval(running, identity)
    engine = DestroyEngine(aws=wiring.session.aws(keys.region))
    report = run_guarded(running, wiring, identity=identity, engine=engine, approve=approval)
    return finish(call, report, plan=approval.document, refusal=approval.refusal, took_ms=wiring.clock.boot() - began)
