"""`run.json`: the run in progress, its plan in short and one intent per physical identity. Ours alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stackhold.errors import RecordTooNew
from stackhold.model.codec.document import parse, text_of
from stackhold.model.ids import LockId, LogicalId, PhysicalId, RunId, TypeName
from stackhold.model.instant import Instant
from stackhold.model.run import Intended, Intent, IntentKind, IntentState, RunFile

if TYPE_CHECKING:
    from stackhold.model.codec.document import Fields
    from stackhold.model.values import JsonMap

RUN_FILE_VERSION = 1
INTENT_FIELDS = frozenset(
    {
        "logicalId", "resourceType", "kind", "runId", "state", "name", "token", "tags", "physicalId", "firstSeenAt",
        "intended",
    }
)  # fmt: skip
"""What an intent's `extra` must not hold: these names have their meaning."""
_Choice = TypeVar("_Choice", IntentKind, IntentState)


def decode_run_file(data: bytes, *, key: str) -> RunFile:
    """Read a run file."""
    fields = parse(data, key=key)
    version = fields.at_least("runVersion", 1)
    if version > RUN_FILE_VERSION:
        raise RecordTooNew(
            f"{key} has version {version}; this release reads and writes version {RUN_FILE_VERSION}",
            hint="Nothing was overwritten. Use the release that wrote it.",
        )
    return RunFile(
        run_id=RunId(fields.text("runId")),
        lock_id=LockId(fields.text("lockId")),
        serial=fields.number("serial"),
        operation=fields.text("operation"),
        owner=fields.text("owner"),
        started_at=Instant(fields.number("startedAt")),
        generation=fields.number("generation"),
        plan=tuple(inner.rest() for inner in fields.each("plan")),
        intents=tuple(_intent(inner) for inner in fields.each("intents")),
        replaces=fields.maybe_number("replaces"),
        extra=fields.rest(),
    )


def encode_run_file(run_file: RunFile) -> bytes:
    """Write a run file."""
    return text_of(
        {
            "runVersion": RUN_FILE_VERSION,
            "runId": run_file.run_id,
            "lockId": run_file.lock_id,
            "serial": run_file.serial,
            "operation": run_file.operation,
            "owner": run_file.owner,
            "startedAt": run_file.started_at,
            "generation": run_file.generation,
            "plan": run_file.plan,
            "intents": [_document(intent) for intent in run_file.intents],
            **({} if run_file.replaces is None else {"replaces": run_file.replaces}),
            **run_file.extra,
        }
    )


def _intent(fields: Fields) -> Intent:
    physical_id = fields.maybe_text("physicalId")
    first_seen_at = fields.maybe_number("firstSeenAt")
    return Intent(
        logical_id=LogicalId(fields.text("logicalId")),
        type=TypeName(fields.text("resourceType")),
        kind=_member(fields, "kind", IntentKind),
        run_id=RunId(fields.text("runId")),
        state=_member(fields, "state", IntentState),
        name=fields.maybe_text("name"),
        token=fields.maybe_text("token"),
        tags=_tags(fields),
        physical_id=None if physical_id is None else PhysicalId(physical_id),
        first_seen_at=None if first_seen_at is None else Instant(first_seen_at),
        intended=_intended(fields.inner("intended")) if fields.has("intended") else None,
        extra=fields.rest(),
    )


def _intended(fields: Fields) -> Intended:
    replaces = fields.maybe_text("replaces")
    dependencies = fields.maybe_texts("dependencies")
    return Intended(
        route=fields.maybe_text("provisionedBy"),
        place=fields.maybe_map("place") or {},
        properties=fields.maybe_texts("properties") or (),
        dependencies=None if dependencies is None else tuple(LogicalId(name) for name in dependencies),
        deletion_policy=fields.maybe_text("deletionPolicy"),
        update_replace_policy=fields.maybe_text("updateReplacePolicy"),
        is_own_name=fields.flag("ownName"),
        replaces=None if replaces is None else PhysicalId(replaces),
        keeps_old=fields.flag("keepsOld"),
        old_first=fields.flag("oldFirst"),
        replacement=fields.maybe_number("replacement") or 0,
        digest=fields.maybe_text("digest"),
        is_again=fields.flag("again"),
    )


def _member(fields: Fields, field: str, choices: type[_Choice]) -> _Choice:
    text = fields.text(field)
    try:
        return choices(text)
    except ValueError:
        raise fields.wrong(field, "one of " + ", ".join(choices), text) from None


def _tags(fields: Fields) -> dict[str, str]:
    tags = fields.maybe_map("tags") or {}
    return {name: value for name, value in tags.items() if isinstance(value, str)}


def _document(intent: Intent) -> JsonMap:
    document: dict[str, object] = {
        "logicalId": intent.logical_id,
        "resourceType": intent.type,
        "kind": intent.kind.value,
        "runId": intent.run_id,
        "state": intent.state.value,
    }
    for name, value in (("name", intent.name), ("token", intent.token)):
        if value is not None:
            document[name] = value
    if intent.tags:
        document["tags"] = intent.tags
    if intent.physical_id is not None:
        document["physicalId"] = intent.physical_id
    if intent.first_seen_at is not None:
        document["firstSeenAt"] = intent.first_seen_at
    if intent.intended is not None:
        document["intended"] = _intended_document(intent.intended)
    document.update(intent.extra)
    return document


def _intended_document(intended: Intended) -> JsonMap:
    """Only what says something."""
    fields: dict[str, object] = {
        "provisionedBy": intended.route,
        "place": intended.place,
        "properties": intended.properties,
        "dependencies": intended.dependencies,
        "deletionPolicy": intended.deletion_policy,
        "updateReplacePolicy": intended.update_replace_policy,
        "ownName": intended.is_own_name,
        "replaces": intended.replaces,
        "keepsOld": intended.keeps_old,
        "oldFirst": intended.old_first,
        "replacement": intended.replacement,
        "digest": intended.digest,
        "again": intended.is_again,
    }
    return {name: value for name, value in fields.items() if value or (name == "dependencies" and value is not None)}
