"""`stackhold events STACK`: what runs did, read back from the store, or the run at work, followed to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackhold.cli.options import Invocation, invocation, store_options, workspace_option
from stackhold.cli.printable import lines_text
from stackhold.cli.wiring import Wiring
from stackhold.errors import InputError, RecordTooNew, RecordUnreadable, StoreRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.cli.render_events import UnreadableRun
    from stackhold.cli.surroundings import Surroundings
    from stackhold.model.ids import RunId
    from stackhold.model.run_log import RunLog
    from stackhold.runs.layout import Keys


@click.command()
@click.argument("stack")
@click.option("--run", "run", metavar="RUN_ID", help="One run in full; a beginning that is unique will do.")
@click.option("--follow", "-f", is_flag=True, help="Follow the run at work until it is over.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many runs to list.")
@store_options
@workspace_option
@click.pass_obj
def events(
    surroundings: Surroundings, /, stack: str, run: str | None, follow: bool, limit: int, **options: object
) -> None:
    """Show what runs on STACK did. Takes no lock."""
    from stackhold.cli import render_events
    from stackhold.runs.inspect import is_known, no_such_stack, run_ids

    call = invocation(surroundings, options)
    wiring = Wiring(call.settings)
    keys = wiring.keys_of_recorded(stack)
    known = run_ids(wiring.store, keys)
    if not known and not is_known(wiring.store, keys):
        raise no_such_stack(wiring.store, keys)
    chosen = _choose(keys, known, run) if run else None
    if follow:
        _follow(call, wiring, keys, chosen)
    elif chosen is not None:
        log = _log(wiring, keys, chosen)
        call.output.answer(render_events.run_document(log), render_events.run_text(log))
    else:
        runs = [run for run in (_shown(wiring, keys, run_id) for run_id in known[-limit:]) if run is not None]
        document = {
            "stack": keys.stack,
            "region": keys.region,
            "runs": [render_events.listed_document(run) for run in runs],
        }
        text = render_events.runs_text(runs) if runs else f"No run on {keys.stack} ({keys.region}) left a record."
        call.output.answer(document, text)


def _choose(keys: Keys, known: Sequence[RunId], wanted: str) -> RunId:
    found = [run_id for run_id in known if run_id.startswith(wanted)]
    if len(found) == 1 or (found and found[0] == wanted):
        return found[0]
    if found:
        raise InputError(f"{wanted} begins {len(found)} runs of {keys.stack} ({keys.region})")
    raise InputError(
        f"no run {wanted} of {keys.stack} ({keys.region}) is recorded",
        hint=f"See which are with: stackhold events {keys.stack}",
    )


def _maybe_log(wiring: Wiring, keys: Keys, run_id: RunId) -> RunLog | None:
    from stackhold.runs.inspect import read_run

    return read_run(wiring.store, keys, run_id)


def _shown(wiring: Wiring, keys: Keys, run_id: RunId) -> RunLog | UnreadableRun | None:
    """A run in a list, which one damaged object must not keep from the others."""
    from stackhold.cli.render_events import UnreadableRun

    try:
        return _maybe_log(wiring, keys, run_id)
    except (RecordUnreadable, RecordTooNew, StoreRefused) as error:
        return UnreadableRun(run_id, error.message)


def _log(wiring: Wiring, keys: Keys, run_id: RunId) -> RunLog:
    log = _maybe_log(wiring, keys, run_id)
    if log is None:
        raise InputError(f"the run {run_id} of {keys.stack} ({keys.region}) is recorded no longer")
    return log


def _follow(call: Invocation, wiring: Wiring, keys: Keys, chosen: RunId | None) -> None:
    from stackhold.cli import render_events
    from stackhold.runs.follow import follow, live_run

    run_id = chosen or live_run(wiring.store, wiring.clock, keys)
    if run_id is None:
        raise InputError(
            f"no run is at work on {keys.stack} ({keys.region})",
            hint=f"See what runs did with: stackhold events {keys.stack}",
        )
    has_begun = False
    for seen in follow(wiring.store, wiring.clock, keys, run_id):
        if not has_begun:
            call.output.say(lines_text(render_events.head_lines(seen.log)))
            has_begun = True
        news = render_events.event_lines(seen.log, len(seen.log.events) - len(seen.news))
        if news:
            call.output.say(lines_text(news))
        if seen.is_over:
            call.output.answer(
                {**render_events.run_document(seen.log), "isKilled": seen.is_killed},
                lines_text(render_events.end_lines(seen.log, is_killed=seen.is_killed)),
            )
            return
    raise InputError(f"the run {run_id} of {keys.stack} ({keys.region}) is recorded no longer")
