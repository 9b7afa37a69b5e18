"""`exports.json`: the index of exported outputs of one region, shared with cdkd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.errors import RecordTooNew
from stackhold.model.codec.document import parse, text_of
from stackhold.model.exports import INDEX_VERSION, Export, ExportsIndex
from stackhold.model.ids import Region, StackName
from stackhold.model.instant import Instant

if TYPE_CHECKING:
    from stackhold.model.codec.document import Fields
    from stackhold.model.values import JsonMap


def decode_exports(data: bytes, *, key: str) -> ExportsIndex:
    """Read the index."""
    fields = parse(data, key=key)
    version = fields.at_least("indexVersion", 1)
    if version > INDEX_VERSION:
        raise RecordTooNew(
            f"{key} has index version {version}; this release reads and writes version {INDEX_VERSION}",
            hint="Nothing was overwritten. Use the release, or the tool, that wrote it.",
        )
    return ExportsIndex(
        region=Region(fields.text("region")),
        exports={name: _export(inner) for name, inner in fields.entries("exports")},
        last_modified=Instant(fields.maybe_number("lastModified") or 0),
        version=version,
        extra=fields.rest(),
    )


def encode_exports(index: ExportsIndex) -> bytes:
    """Write the index."""
    return text_of(
        {
            "indexVersion": index.version,
            "region": index.region,
            "exports": {name: _document(export) for name, export in index.exports.items()},
            "lastModified": index.last_modified,
            **index.extra,
        }
    )


def _export(fields: Fields) -> Export:
    return Export(
        value=fields.value("value"),
        producer_stack=StackName(fields.text("producerStack")),
        producer_region=Region(fields.text("producerRegion")),
        extra=fields.rest(),
    )


def _document(export: Export) -> JsonMap:
    return {
        "value": export.value,
        "producerStack": export.producer_stack,
        "producerRegion": export.producer_region,
        **export.extra,
    }
