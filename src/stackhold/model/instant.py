"""Points and spans of time, in whole milliseconds.

An `Instant` is Unix time; a `BootInstant` counts since the machine's start on a clock that sleep does not
stop. The two never mix. Nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", int)
"""Unix milliseconds."""
BootInstant = NewType("BootInstant", int)
"""Milliseconds of the boot clock; only differences mean anything, and only on one machine since one boot."""
Millis = NewType("Millis", int)
"""A span in milliseconds."""

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
CLOCK_SLACK = Millis(5 * SECOND)
"""Added to a lock's ttl before it counts as stale: the store's timestamps have whole seconds."""


@dataclass(frozen=True, slots=True)
class Span:
    """A setting that is a span, with where it came from, so that an error can say so."""

    ms: Millis
    source: str = ""
    """How it was set (`--deadline`, `STACKHOLD_DEADLINE`, a file); empty for the built-in default."""


def moment(at: Instant) -> datetime | None:
    """The moment in UTC, to the second; None for one outside the calendar, as a damaged object may hold."""
    try:
        return datetime.fromtimestamp(at // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def iso(at: Instant) -> str:
    """ISO 8601 in UTC with milliseconds: `2026-11-30T18:02:19.995Z`; outside the calendar the bare number."""
    found = moment(at)
    return f"{at} ms" if found is None else f"{found:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


def clock_time(at: Instant) -> str:
    """Time of day in UTC, as messages show it: `09:12:40Z`; outside the calendar the bare number."""
    found = moment(at)
    return f"{at} ms" if found is None else f"{found:%H:%M:%SZ}"


def date_time(at: Instant) -> str:
    """Date and time in UTC, as tables show them: `2026-11-30 18:02:19Z`; outside the calendar the bare number."""
    found = moment(at)
    return f"{at} ms" if found is None else f"{found:%Y-%m-%d %H:%M:%SZ}"


def words(span: int) -> str:
    """A span for people: `40 s`, `5 m 0 s`, `2 h 5 m`; below a second `0.2 s`."""
    if span < 0:
        return "-" + words(-span)
    if span < SECOND:
        return f"{span / 1000:.1f} s"
    seconds = span // SECOND
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} m {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} m"
