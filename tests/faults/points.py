"""The requests of an operation as points: what is asked, of which resource or store object, for which time.

Requests run side by side, so that a number would name another one in each run; these names do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackhold.testing.aws_requests import Named
    from stackhold.testing.http_messages import Message
    from stackhold.testing.proxy import Call

STACK = "shop"
_OBJECT = re.compile(r"^/[^/]+/stackhold/[^/]+/[^/]+/([^/]+)")
_TAG = re.compile(
    r"stackhold:logical-id[^A-Za-z0-9]+(?:Tags?\.(?:member\.)?\d+\.)?(?:[Vv]alue[^A-Za-z0-9]+)?([A-Za-z0-9]+)"
)
_NAME = re.compile(rf"{STACK}-([A-Za-z][A-Za-z0-9]*)-[0-9a-z]{{12}}")
_KEY = re.compile(r'"routeKey": ?"([^"]+)"')
_LOOKS = ("Get", "List", "Describe", "Head")
_MOST_LOOKS = 2
"""A poll is as good as the one before; how many there are depends on the machine."""


@dataclass(frozen=True)
class Point:
    """One request of an operation. `occurrence` counts from 0 those of the same label."""

    label: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.label} #{self.occurrence}"

    @classmethod
    def of(cls, text: str) -> Point:
        """The other way."""
        label, _, number = text.rpartition(" #")
        return cls(label, int(number))


def label(named: Named, message: Message) -> str:
    """`iam:CreateRole FunctionRole`, `s3:PutObject lock.json`."""
    text = unquote_plus(f"{message.start.split(' ')[1]} {message.body.decode('utf-8', 'replace')}")
    if named.service == "s3":
        found = _OBJECT.search(named.path)
    else:
        found = _TAG.search(text) or _NAME.search(text) or _KEY.search(text)
    return f"{named.service}:{named.operation} {found.group(1) if found else ''}".strip()


def points_of(calls: Iterable[Call]) -> list[Point]:
    """All points of a run, in the order of their requests."""
    counts: dict[str, int] = {}
    found = []
    for call in calls:
        occurrence = counts[call.label] = counts.get(call.label, -1) + 1
        if not call.named.operation.startswith(_LOOKS) or occurrence < _MOST_LOOKS:
            found.append(Point(call.label, occurrence))
    return found
