"""`stackhold cancel STACK`: ask the run that holds the lock to stop, as a first signal would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.interruption import say_from_here
from stackhold.cli.options import invocation, store_options, workspace_option
from stackhold.cli.printable import one_line
from stackhold.cli.wiring import Wiring, owner
from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings


@click.command()
@click.argument("stack")
@click.option("--wait", is_flag=True, help="Follow the run to its end.")
@store_options
@workspace_option
@click.pass_obj
def cancel(surroundings: Surroundings, /, stack: str, wait: bool, **options: object) -> int:
    """Ask the run that holds the lock of STACK to stop.

    It finishes what is in flight, saves, and releases its lock, as after a first Ctrl-C. It looks for the request
    every 15 s unless its --stop-poll says otherwise. Nothing is stolen: a run that does not answer keeps its lock.
    """
    from stackhold.errors import InputError
    from stackhold.runs.cancel import request_stop, wait_released
    from stackhold.runs.holder_process import pid_gone
    from stackhold.runs.inspect import has_left_anything, no_such_stack
    from stackhold.runs.lock_messages import gone_words

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    keys = wiring.keys_of_recorded(stack)
    name = f"{keys.stack} ({keys.region})"
    say_from_here(f"the run on {name} may have been asked to stop")
    lock = request_stop(
        wiring.store,
        wiring.clock,
        keys,
        requested_by=owner(),
        unlock_command=wiring.command("force-unlock", keys.stack, keys.region),
    )
    if lock is None and not has_left_anything(wiring.store, keys):
        raise no_such_stack(wiring.store, keys)
    if lock is None:
        raise InputError(f"nobody holds the lock of {name}: there is no run to stop")
    say_from_here(f"the run on {name} is asked to stop all the same")
    gone = pid_gone(lock.owner)
    if gone is not None:
        call.output.warn(f"warning: process {gone_words(gone)}: it may not hear this, and its lock expires by itself")
    document = {"stack": keys.stack, "region": keys.region, "asked": lock.owner, "operation": lock.operation}
    if wait and lock.id is not None:
        call.output.say(one_line(f"asked {lock.owner} to stop its {lock.operation} of {name}; waiting for its end"))
        wait_released(wiring.store, wiring.clock, keys, lock.id)
        call.output.answer({**document, "released": True}, one_line(f"{lock.owner} has stopped; {name} is free"))
    else:
        call.output.answer(
            {**document, "released": False},
            one_line(
                f"asked {lock.owner} to stop its {lock.operation} of {name}; it looks every 15 s unless told otherwise"
            ),
        )
    return ExitCode.DONE
