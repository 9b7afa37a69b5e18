"""Times as the API server writes them: RFC 3339 text to an Instant and back. Nothing here reads a clock."""

from __future__ import annotations

from datetime import UTC, datetime

from stackhold.model.instant import Instant


def parse_time(text: object) -> Instant | None:
    """The moment that a text names; None for nothing and for what names none, so that nothing fails on a bad one."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return Instant((since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000)


def second_time(at: Instant) -> str:
    """As `metav1.Time`: to the second, which is all that statuses and conditions keep."""
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"


def micro_time(at: Instant) -> str:
    """As `metav1.MicroTime`, which leases use."""
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at % 1000 * 1000:06d}Z"
