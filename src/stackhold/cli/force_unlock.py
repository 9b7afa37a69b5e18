"""`stackhold force-unlock STACK`: delete a lock whose run is gone, after showing whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.interruption import UNCHANGED, say_from_here
from stackhold.cli.options import Invocation, invocation, store_options, workspace_option, yes_option
from stackhold.cli.printable import lines_text
from stackhold.cli.wiring import Wiring
from stackhold.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings
    from stackhold.runs.inspect import LockView
    from stackhold.runs.layout import Keys
    from stackhold.runs.unlock import Danger


@click.command("force-unlock")
@click.argument("stack")
@store_options
@workspace_option
@yes_option
@click.pass_obj
def force_unlock(surroundings: Surroundings, /, stack: str, **options: object) -> int:
    """Delete the lock of STACK, whether or not its holder is alive.

    Shows the holder and asks. Deletes only the lock that it showed. If the holder is alive, both it and the next run
    may act until its next save or renewal: ask it to stop with `stackhold cancel` instead.
    """
    from stackhold.runs.inspect import has_left_anything, no_such_stack

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    keys = wiring.keys_of_recorded(stack)
    if not has_left_anything(wiring.store, keys):
        raise no_such_stack(wiring.store, keys)
    return unlock_stack(call, wiring, keys)


def unlock_stack(call: Invocation, wiring: Wiring, keys: Keys) -> int:
    """Show the lock, ask, and delete it; the exit code."""
    from stackhold.cli import render_state
    from stackhold.cli.confirm import ask
    from stackhold.cli.paint import Paint
    from stackhold.runs.unlock import Unlocked
    from stackhold.runs.unlock import force_unlock as unlock

    surroundings = call.surroundings
    paint = Paint(surroundings.color_on(surroundings.stderr))
    name = f"{keys.stack} ({keys.region})"
    shown: list[LockView] = []

    def confirm(view: LockView, danger: Danger, has_changed: bool) -> bool:
        shown.append(view)
        call.output.warn(f"{name} is locked" if not has_changed else f"The lock of {name} has changed meanwhile; now:")
        call.output.warn(lines_text(render_state.lock_lines(view)))
        for line in _warnings(danger, wiring.command("cancel", keys.stack, keys.region)):
            call.output.warn(paint("red", line))
        is_meant = ask(surroundings, f"Delete this lock of {name}?", yes=call.yes)
        say_from_here(f"the lock of {name} may be gone" if is_meant else UNCHANGED)
        return is_meant

    ended = unlock(wiring.store, wiring.clock, keys, confirm=confirm)
    text = {
        Unlocked.DELETED: f"{name} is unlocked",
        Unlocked.ABSENT: f"{name} is not locked",
        Unlocked.DECLINED: f"{name} stays locked; nothing was changed",
    }[ended]
    lock = render_state.lock_document(shown[-1]) if shown else None
    document = {"stack": keys.stack, "region": keys.region, "result": ended.value, "lock": lock}
    call.output.answer(document, text)
    return ExitCode.FAILED if ended is Unlocked.DECLINED else ExitCode.DONE


def _warnings(danger: Danger, cancel_command: str) -> list[str]:
    lines = []
    if danger.pid_here is not None:
        lines.append(f"WARNING: its process {danger.pid_here} is running on this very host.")
    if danger.is_live and danger.pid_gone is None:
        lines.append("WARNING: this lock is LIVE: its holder may be at work. Two runs may then act at once.")
        lines.append(f"         To stop a live run, use: {cancel_command}")
    return lines
