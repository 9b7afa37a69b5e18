"""`events/<run id>.json`: what a run told about itself. Ours alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.model.codec.document import parse, text_of
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LockId, LogicalId, Region, RunId, StackName
from stackhold.model.instant import Instant
from stackhold.model.run import Outcome, RunIdentity
from stackhold.model.run_log import RUN_LOG_VERSION, RunLog

if TYPE_CHECKING:
    from stackhold.model.codec.document import Fields


def decode_run_log(data: bytes, *, key: str) -> RunLog:
    """Read a run's log."""
    fields = parse(data, key=key)
    fields.at_least("logVersion", 1)
    lock_id = fields.maybe_text("lockId")
    return RunLog(
        identity=RunIdentity(
            run_id=RunId(fields.text("runId")),
            stack=StackName(fields.text("stackName")),
            region=Region(fields.text("region")),
            operation=fields.text("operation"),
            owner=fields.text("owner"),
            engine=fields.text("engine"),
            tool_version=fields.text("stackholdVersion"),
        ),
        started_at=Instant(fields.number("startedAt")),
        updated_at=_maybe_instant(fields, "updatedAt"),
        ended_at=_maybe_instant(fields, "endedAt"),
        deadline_ms=fields.number("deadlineMs"),
        lock_wait=fields.text("lockWait"),
        waited_ms=fields.number("waitedMs"),
        lock_id=None if lock_id is None else LockId(lock_id),
        generation=fields.maybe_number("generation"),
        outcome=_outcome(fields),
        exit_code=fields.maybe_number("exitCode"),
        cause=fields.maybe_text("cause"),
        error=fields.maybe_text("error") or "",
        warnings=fields.maybe_texts("warnings") or (),
        summary=fields.maybe_map("summary") or {},
        events=tuple(_event(inner) for inner in fields.each("events")),
        extra=fields.rest(),
    )


def encode_run_log(log: RunLog) -> bytes:
    """Write a run's log. A value that JSON does not know becomes its text: a log is for people."""
    identity = log.identity
    document: dict[str, object] = {
        "logVersion": RUN_LOG_VERSION,
        "runId": identity.run_id,
        "stackName": identity.stack,
        "region": identity.region,
        "operation": identity.operation,
        "owner": identity.owner,
        "engine": identity.engine,
        "stackholdVersion": identity.tool_version,
        "startedAt": log.started_at,
    }
    optional: tuple[tuple[str, object], ...] = (
        ("updatedAt", log.updated_at),
        ("endedAt", log.ended_at),
        ("lockId", log.lock_id),
        ("generation", log.generation),
        ("outcome", None if log.outcome is None else log.outcome.value),
        ("exitCode", log.exit_code),
        ("cause", log.cause),
        ("error", log.error or None),
    )
    document.update({name: value for name, value in optional if value is not None})
    document.update({"deadlineMs": log.deadline_ms, "lockWait": log.lock_wait, "waitedMs": log.waited_ms})
    document["warnings"] = log.warnings
    document["summary"] = log.summary
    document["events"] = [event_document(event) for event in log.events]
    document.update(log.extra)
    return text_of(document, stands_in=str)


def event_document(event: Event) -> dict[str, object]:
    """One event as JSON: in logs, and line by line for `--json`."""
    document: dict[str, object] = {"kind": event.kind.value, "at": event.at}
    if event.logical_id is not None:
        document["logicalId"] = event.logical_id
    if event.message:
        document["message"] = event.message
    if event.data:
        document["data"] = event.data
    return document


def _event(fields: Fields) -> Event:
    logical_id = fields.maybe_text("logicalId")
    kind = fields.text("kind")
    known = kind in EventKind.__members__.values()
    return Event(
        kind=EventKind(kind) if known else EventKind.WARNING,
        at=Instant(fields.number("at")),
        logical_id=None if logical_id is None else LogicalId(logical_id),
        message=fields.maybe_text("message") or ("" if known else kind),
        data=fields.maybe_map("data") or {},
    )


def _maybe_instant(fields: Fields, field: str) -> Instant | None:
    value = fields.maybe_number(field)
    return None if value is None else Instant(value)


def _outcome(fields: Fields) -> Outcome | None:
    text = fields.maybe_text("outcome")
    if text is None:
        return None
    try:
        return Outcome(text)
    except ValueError:
        raise fields.wrong("outcome", "one of " + ", ".join(Outcome), text) from None
