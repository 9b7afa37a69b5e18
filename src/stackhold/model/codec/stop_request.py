"""`stop-request.json`: asks the holder of one lock to stop. Ours alone."""

from __future__ import annotations

from stackhold.model.codec.document import parse, text_of
from stackhold.model.ids import LockId
from stackhold.model.instant import Instant
from stackhold.model.run import StopRequest


def decode_stop_request(data: bytes, *, key: str) -> StopRequest:
    """Read a stop request."""
    fields = parse(data, key=key)
    return StopRequest(
        lock_id=LockId(fields.text("lockId")),
        requested_by=fields.text("requestedBy"),
        requested_at=Instant(fields.number("requestedAt")),
        extra=fields.rest(),
    )


def encode_stop_request(request: StopRequest) -> bytes:
    """Write a stop request."""
    return text_of(
        {
            "lockId": request.lock_id,
            "requestedBy": request.requested_by,
            "requestedAt": request.requested_at,
            **request.extra,
        }
    )
