"""`stackhold rollback STACK`: undo what runs left half done, by the rollback journal, under the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import invocation, locking_options, store_options, yes_option
from stackhold.cli.wiring import Wiring

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@click.argument("stack")
@click.option(
    "--orphan",
    "orphans",
    metavar="LOGICAL_ID",
    multiple=True,
    help="Leave this resource as it is, out of the journal (and of the record if it was new). Repeatable.",
)
@click.option("--revert-failed", is_flag=True, help="Undo what failed, or whose outcome is not known, too.")
@locking_options
@store_options
@yes_option
@click.pass_obj
def rollback(surroundings: Surroundings, /, stack: str, **options: object) -> int:
    """Undo what failed or stopped runs have done to STACK since it last settled. Needs no template.

    Deletes what they created, brings back what they changed, makes anew what they deleted. Asks before it deletes a
    stateful resource; --yes says yes to it. One that was cut short, or done in part, can be run again.
    """
    from stackhold.cli.approval import RollbackApproval
    from stackhold.cli.running import Running, finish, run_guarded
    from stackhold.engines.cloudformation.rollback import RollbackEngine
    from stackhold.model.ids import LogicalId
    from stackhold.runs.inspect import has_left_anything, no_such_stack

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    began = wiring.clock.boot()
    keys = wiring.keys_of_recorded(stack)
    if not has_left_anything(wiring.store, keys):
        raise no_such_stack(wiring.store, keys)
    orphans = options["orphans"]
    assert isinstance(orphans, tuple)
    identity = wiring.identity(stack=keys.stack, region=keys.region, operation="rollback", engine="cloudformation")
    running = Running(call, began)
    approval = RollbackApproval(running, identity)
    engine = RollbackEngine(
        aws=wiring.session.aws(keys.region),
        orphans=frozenset(LogicalId(name) for name in orphans),
        reverts_failed=bool(options["revert_failed"]),
    )
    report = run_guarded(running, wiring, identity=identity, engine=engine, approve=approval)
    return finish(call, report, plan=approval.document, refusal=approval.refusal, took_ms=wiring.clock.boot() - began)
