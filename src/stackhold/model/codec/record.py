"""`state.json`, format version 8: cdkd's fields in cdkd's order, then ours, then what neither knows.

A newer version is refused and never rewritten. An older one is read when its shape fits; the next write makes it
version 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import RecordTooNew
from stackhold.model.codec.document import Fields, parse, text_of
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.record import FORMAT_VERSION, PendingDelete, ResourceRecord, StateRecord

if TYPE_CHECKING:
    from stackhold.model.values import JsonMap


def decode_record(data: bytes, *, key: str) -> StateRecord:
    """Read a record. Raises `RecordUnreadable`, or `RecordTooNew` for a version above 8."""
    fields = parse(data, key=key)
    version = fields.at_least("version", 1)
    if version > FORMAT_VERSION:
        raise RecordTooNew(
            f"{key} has format version {version}; this release reads and writes version {FORMAT_VERSION}",
            hint="Nothing was overwritten. Use the release, or the tool, that wrote it.",
        )
    return _record(fields, version)


def encode_record(record: StateRecord) -> bytes:
    """Write a record."""
    document: dict[str, object] = {
        "version": record.version,
        "region": record.region,
        "stackName": record.stack,
        "resources": {name: resource_document(resource) for name, resource in record.resources.items()},
        "outputs": record.outputs,
        "lastModified": record.last_modified,
    }
    if record.lock_id is not None:
        document["generation"] = record.generation
        document["lockId"] = record.lock_id
        document["serial"] = record.serial
    for name, value in (("lineage", record.lineage), ("stackId", record.stack_id), ("parameters", record.parameters)):
        if value is not None:
            document[name] = value
    if record.tags:
        document["tags"] = record.tags
    if record.pending_deletes:
        document["pendingDeletes"] = [_pending_document(pending) for pending in record.pending_deletes]
    document.update(record.extra)
    return text_of(document)


def resource_document(resource: ResourceRecord) -> dict[str, object]:
    """One resource in the record's JSON shape; the journal's `previousState` has it too."""
    document: dict[str, object] = {
        "physicalId": resource.physical_id,
        "resourceType": resource.type,
        "properties": resource.properties,
        "attributes": resource.attributes,
    }
    if resource.dependencies is not None:
        document["dependencies"] = resource.dependencies
    if resource.deletion_policy is not None:
        document["deletionPolicy"] = resource.deletion_policy
    if resource.update_replace_policy is not None:
        document["updateReplacePolicy"] = resource.update_replace_policy
    if resource.provisioned_by is not None:
        document["provisionedBy"] = resource.provisioned_by
    if resource.observed is not None:
        document["observedProperties"] = resource.observed
    if resource.is_settling:
        document["settling"] = True
    if resource.adopted_as is not None:
        document["adopted"] = resource.adopted_as
    if resource.extra:
        document.update(resource.extra)
    return document


def resource_from_document(document: JsonMap, *, key: str, path: str = "") -> ResourceRecord:
    """Read one resource in the record's JSON shape."""
    return _resource(Fields(dict(document), key=key, path=path))


def _record(fields: Fields, version: int) -> StateRecord:
    resources = {LogicalId(name): _resource(inner) for name, inner in fields.entries("resources")}
    lock_id = fields.maybe_text("lockId")
    return StateRecord(
        stack=StackName(fields.text("stackName")),
        region=Region(fields.text("region")),
        resources=resources,
        outputs=fields.maybe_map("outputs") or {},
        last_modified=Instant(fields.number("lastModified")),
        version=version,
        generation=fields.maybe_at_least("generation", 0),
        lock_id=None if lock_id is None else LockId(lock_id),
        serial=fields.maybe_at_least("serial", 0) or 0,
        lineage=fields.maybe_text("lineage"),
        stack_id=fields.maybe_text("stackId"),
        parameters=fields.maybe_map("parameters"),
        tags=fields.maybe_map("tags") or None,
        pending_deletes=tuple(_pending(inner) for inner in fields.each("pendingDeletes", required=False)),
        extra=fields.rest(),
    )


def _resource(fields: Fields) -> ResourceRecord:
    dependencies = fields.maybe_texts("dependencies")
    return ResourceRecord(
        physical_id=PhysicalId(fields.name("physicalId")),
        type=TypeName(fields.name("resourceType")),
        properties=fields.map("properties"),
        attributes=fields.maybe_map("attributes") or {},
        dependencies=None if dependencies is None else tuple(LogicalId(name) for name in dependencies),
        deletion_policy=fields.maybe_text("deletionPolicy"),
        update_replace_policy=fields.maybe_text("updateReplacePolicy"),
        provisioned_by=fields.maybe_text("provisionedBy"),
        observed=fields.maybe_map("observedProperties"),
        is_settling=fields.flag("settling"),
        adopted_as=fields.maybe_text("adopted"),
        extra=fields.rest(),
    )


def _pending(fields: Fields) -> PendingDelete:
    return PendingDelete(
        logical_id=LogicalId(fields.text("logicalId")),
        resource=_resource(fields.inner("resource")),
        reason=fields.maybe_text("reason") or "",
    )


def _pending_document(pending: PendingDelete) -> JsonMap:
    document: dict[str, object] = {
        "logicalId": pending.logical_id,
        "resource": resource_document(pending.resource),
    }
    if pending.reason:
        document["reason"] = pending.reason
    return document
