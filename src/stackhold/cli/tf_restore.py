"""`stackhold tf restore`: a former state becomes the state again; without one named, the versions are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.cli.confirm import ask
from stackhold.cli.printable import lines_text
from stackhold.cli.running import Running, finish, run_guarded
from stackhold.cli.tf_target import check_can_ask
from stackhold.engines.terraform.restoring import RestoreEngine
from stackhold.engines.terraform.state_facts import facts_of
from stackhold.engines.terraform.state_keeper import pointer_of
from stackhold.engines.terraform.steps import Operation
from stackhold.errors import InputError
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import date_time
from stackhold.ports.named_file import Unreadable, read_named_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.cli.tf_target import Target

_LARGEST = 256 * 1024 * 1024


def restore_in_store(target: Target, options: Mapping[str, Any]) -> int:
    """Restore a version, or a file, in the store; or list the versions. The exit code."""
    sequence, backup = options.get("sequence"), options.get("backup")
    if sequence is None and not backup:
        return _list_versions(target)
    call, wiring, keys = target.call, target.wiring, target.keys
    check_can_ask(Operation.RESTORE, call, keys)
    began = wiring.clock.boot()
    content = None if backup is None else _content(target, str(backup))
    versions = wiring.state_versions(keys)
    if sequence is not None:
        facts_of(versions.read(sequence), what=f"version {sequence} of the state")
    what = f"version {sequence}" if sequence is not None else str(backup)
    name = f"{keys.stack} ({keys.region})"
    running = Running(call, began)
    identity = wiring.identity(stack=keys.stack, region=keys.region, operation="tf restore", engine="terraform")
    report = run_guarded(
        running,
        wiring,
        identity=identity,
        engine=RestoreEngine(versions, sequence, content),
        approve=lambda _: ask(
            call.surroundings, f"Make {what} the state of {name}?", yes=call.yes, is_over=running.is_over
        ),
    )
    if report.exit_code is ExitCode.DONE:
        call.output.say(f"{what} is the state of {name} now, as version {report.summary.get('version')}")
    return finish(call, report, plan=None, refusal="", took_ms=wiring.clock.boot() - began)


def _content(target: Target, name: str) -> bytes:
    file = target.call.surroundings.cwd / name
    try:
        data = read_named_file(file, limit=_LARGEST)
    except Unreadable as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    facts_of(data, what=str(file))
    return data


def _list_versions(target: Target) -> int:
    """No lock is taken."""
    from stackhold.runs.inspect import read_record

    wiring, keys = target.wiring, target.keys
    found = read_record(wiring.store, keys)
    pointer = pointer_of(found.required()) if found is not None else None
    current = pointer.sequence if pointer is not None else None
    entries = wiring.state_versions(keys).list()
    documents, lines = [], []
    for entry in entries:
        is_current = entry.sequence == current
        documents.append(
            {"version": entry.sequence, "modified": entry.modified, "size": entry.size, "isCurrent": is_current}
        )
        mark = "  current" if is_current else ""
        lines.append(f"  {entry.sequence:>6}  {date_time(entry.modified)}  {entry.size:>10} bytes{mark}")
    name = f"{keys.stack} ({keys.region})"
    head = f"Versions of the state of {name}:" if lines else f"The store has no state of {name}."
    document = {"stack": keys.stack, "workspace": keys.region, "versions": documents}
    target.call.output.answer(document, lines_text([head, *lines]))
    return ExitCode.DONE
