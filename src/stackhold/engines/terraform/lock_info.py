"""Whose state lock is in the way: the "Lock Info:" section of the runtimes' own message.

Every field is free text that another program wrote, so a value may span lines or look like another field. Fields are
taken in the order in which the runtimes write them, and the section begins at the first `  ID:` line.

On the http backend some runtimes describe the lock that was asked for, not the one that is held: then only the id in
the message before the section is the holder's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from stackhold.model.instant import Instant


@dataclass(frozen=True, slots=True)
class LockInfo:
    """A state lock as its holder described it. `created` is by the holder's clock; None when it cannot be read."""

    id: str
    path: str = ""
    operation: str = ""
    who: str = ""
    version: str = ""
    created: Instant | None = None
    info: str = ""


_LABELS: Final = ("ID", "Path", "Operation", "Who", "Version", "Created", "Info")
_FIELD: Final = re.compile(r"^  (" + "|".join(_LABELS) + r"):(.*)$")
_FRAME: Final = re.compile(r"^[│╷╵] ?")
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")
_TIME: Final = re.compile(r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)")
_FIELD_LIMIT: Final = 2048
_SECTION: Final = "Lock Info:"
_HELD_ID: Final = re.compile(r"\balready locked: ID=(\S+)")


def plain_lines(text: str) -> list[str]:
    """Lines of text as the runtimes print it for people, without colours and frames."""
    return [_FRAME.sub("", line).rstrip() for line in _COLOR.sub("", text).splitlines()]


def parse_lock_info(text: str) -> LockInfo | None:
    """The lock that a message describes; None when it describes none."""
    lines = plain_lines(text)
    if _SECTION not in lines:
        return None
    begin = lines.index(_SECTION)
    fields = _fields(lines[begin + 1 :])
    if not fields.get("ID"):
        return None
    named = _HELD_ID.search(" ".join(lines[:begin]))
    if named and named[1] != fields["ID"]:
        return LockInfo(named[1])
    return LockInfo(
        id=fields["ID"],
        path=fields.get("Path", ""),
        operation=fields.get("Operation", ""),
        who=fields.get("Who", ""),
        version=fields.get("Version", ""),
        created=parse_created(fields.get("Created", "")),
        info=fields.get("Info", ""),
    )


def parse_created(text: str) -> Instant | None:
    """A time as Go prints it (`2026-11-30 22:46:14.18 +0000 UTC`) or in RFC 3339; None when it is neither."""
    found = _TIME.match(text.strip())
    if found is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone == 'Z' else zone}")
        seconds = (whole - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None
    return Instant(seconds * 1000 + int((fraction or "").ljust(3, "0")[:3]))


def _fields(lines: list[str]) -> dict[str, str]:
    """The values by label. A line that begins no later field belongs to the one before; an empty one ends the last."""
    found: dict[str, str] = {}
    label = ""
    for line in lines:
        match = _FIELD.match(line)
        if match and (found or match[1] == "ID") and _is_later(match[1], label):
            label = match[1]
            found[label] = match[2].strip()[:_FIELD_LIMIT]
        elif label == _LABELS[-1] and not line:
            break
        elif label and line:
            found[label] = f"{found[label]}\n{line}"[:_FIELD_LIMIT]
    return found


def _is_later(label: str, than: str) -> bool:
    return not than or _LABELS.index(label) > _LABELS.index(than)
