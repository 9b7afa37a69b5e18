"""`rollback-journal.json`: segments of operations in the order in which they were done, as cdkd writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import RecordTooNew
from stackhold.model.codec.document import parse, text_of
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.journal import JOURNAL_VERSION, Journal, JournalOperation, JournalSegment

if TYPE_CHECKING:
    from stackhold.model.codec.document import Fields
    from stackhold.model.values import JsonMap


def decode_journal(data: bytes, *, key: str) -> Journal:
    """Read a journal, ours or cdkd's."""
    fields = parse(data, key=key)
    version = fields.at_least("journalVersion", 1)
    if version > JOURNAL_VERSION:
        raise RecordTooNew(
            f"{key} has journal version {version}; this release reads and writes version {JOURNAL_VERSION}",
            hint="Nothing was overwritten. Use the release, or the tool, that wrote it.",
        )
    return Journal(
        stack=StackName(fields.text("stackName")),
        region=Region(fields.text("region")),
        segments=tuple(_segment(inner) for inner in fields.each("segments")),
        version=version,
        extra=fields.rest(),
    )


def encode_journal(journal: Journal) -> bytes:
    """Write a journal."""
    return text_of(
        {
            "journalVersion": journal.version,
            "stackName": journal.stack,
            "region": journal.region,
            "segments": [_segment_document(segment) for segment in journal.segments],
            **journal.extra,
        }
    )


def _segment(fields: Fields) -> JournalSegment:
    operations = tuple(_operation(inner) for inner in fields.each("operations"))
    return JournalSegment(
        run_id=RunId(fields.text("runId")),
        timestamp=Instant(fields.number("timestamp")),
        reason=fields.text("reason"),
        is_initial_deploy=fields.flag("initialDeploy"),
        operations=operations,
        tool_version=fields.maybe_text("stackholdVersion"),
        extra=fields.rest(),
    )


def _segment_document(segment: JournalSegment) -> JsonMap:
    document: dict[str, object] = {
        "runId": segment.run_id,
        "timestamp": segment.timestamp,
        "reason": segment.reason,
        "initialDeploy": segment.is_initial_deploy,
    }
    if segment.tool_version is not None:
        document["stackholdVersion"] = segment.tool_version
    document.update(segment.extra)
    document["operations"] = [_operation_document(operation) for operation in segment.operations]
    return document


def _operation(fields: Fields) -> JournalOperation:
    return JournalOperation(
        logical_id=LogicalId(fields.text("logicalId")),
        change_type=fields.text("changeType"),
        type=TypeName(fields.text("resourceType")),
        physical_id=PhysicalId(fields.maybe_text("physicalId") or ""),
        properties=fields.maybe_map("properties"),
        provisioned_by=fields.maybe_text("provisionedBy"),
        previous=fields.maybe_map("previousState"),
        status=fields.maybe_text("status"),
        extra=fields.rest(),
    )


def _operation_document(operation: JournalOperation) -> JsonMap:
    document: dict[str, object] = {
        "logicalId": operation.logical_id,
        "changeType": operation.change_type,
        "resourceType": operation.type,
    }
    if operation.provisioned_by is not None:
        document["provisionedBy"] = operation.provisioned_by
    if operation.physical_id:
        document["physicalId"] = operation.physical_id
    for name, value in (
        ("properties", operation.properties),
        ("previousState", operation.previous),
        ("status", operation.status),
    ):
        if value is not None:
            document[name] = value
    document.update(operation.extra)
    return document
