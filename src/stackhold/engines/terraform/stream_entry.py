"""One line of the runtimes' stream of JSON events, read without trust in its shape.

A field that is missing or of another type reads as empty; a line that is no event is None. Addresses and actions come
in the words of a plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.terraform.lock_info import parse_created
from stackhold.engines.terraform.stream_summary import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.model.instant import Instant

_ACTIONS: Final = {"noop": "no-op", "remove": "forget"}
_UNDER_LOCK: Final = frozenset(
    {
        "planned_change",
        "resource_drift",
        "refresh_start",
        "refresh_complete",
        "apply_start",
        "apply_progress",
        "apply_complete",
        "apply_errored",
        "provision_start",
        "provision_progress",
        "provision_complete",
        "provision_errored",
    }
)
_STATE_KEY: Final = '"state":'
_HUGE: Final = 10**12


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One event as it stands in the stream."""

    line: str
    fields: dict[str, Any]

    def text(self, key: str) -> str:
        """A field that is text."""
        return _text(self.fields.get(key))

    def part(self, key: str) -> dict[str, Any]:
        """A field that is an object."""
        return _map(self.fields.get(key))

    @property
    def message(self) -> str:
        """The event in the runtime's own words."""
        return self.text("@message")

    @property
    def at(self) -> Instant | None:
        """When it was written, by this machine's clock."""
        return parse_created(self.text("@timestamp"))

    @property
    def change(self) -> tuple[str, str]:
        """Address and action of a planned change."""
        return _subject(self.part("change"))

    @property
    def hook(self) -> tuple[str, str]:
        """Address and action of a change that is under way."""
        return _subject(self.part("hook"))

    def hook_text(self, key: str) -> str:
        """A field of a change that is under way."""
        return _text(self.part("hook").get(key))

    @property
    def seconds(self) -> int:
        """How long a change has been under way."""
        return _number(self.part("hook").get("elapsed_seconds"))

    def count(self, key: str) -> int:
        """One of the counts of a summary."""
        return _number(self.part("changes").get(key))

    @property
    def shows_lock(self) -> bool:
        """Whether this can be there only while the step holds the state lock.

        What is said before the lock is taken, and what is said once it was given back (the closing counts and the
        values of the outputs), shows nothing.
        """
        kind = self.text("type")
        return kind in _UNDER_LOCK or (kind == "change_summary" and self.part("changes").get("operation") == "plan")


def read_entry(line: str) -> StreamEntry | None:
    """The event in a line; None when it holds none."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return StreamEntry(line, found) if isinstance(found, dict) and "type" in found else None


def read_diagnostic(found: object) -> Diagnostic | None:
    """One diagnostic as the runtimes write it; None for anything else. What is no warning counts as an error."""
    fields = _map(found)
    if not fields:
        return None
    place = _map(fields.get("range"))
    file, line = _text(place.get("filename")), _number(_map(place.get("start")).get("line"))
    return Diagnostic(
        severity="warning" if fields.get("severity") == "warning" else "error",
        summary=_text(fields.get("summary")),
        detail=_text(fields.get("detail")),
        address=_text(fields.get("address")),
        where=f"{file}:{line}" if file and line else file,
    )


def dumped_state(entry: StreamEntry) -> bytes | None:
    """The state in an emergency dump, byte for byte: read and written again, its numbers could change."""
    state = entry.fields.get("state")
    if isinstance(state, str):
        return state.encode(errors="replace") or None
    if not isinstance(state, dict):
        return None
    decoder = json.JSONDecoder()
    begin = entry.line.find(_STATE_KEY)
    while begin >= 0:
        start = begin + len(_STATE_KEY)
        try:
            found, end = decoder.raw_decode(entry.line, start)
        except ValueError:
            found, end = None, start
        if found == state:
            return entry.line[start:end].encode(errors="replace")
        begin = entry.line.find(_STATE_KEY, start)
    return json.dumps(state).encode()


def _subject(part: dict[str, Any]) -> tuple[str, str]:
    action = _text(part.get("action"))
    return _text(_map(part.get("resource")).get("addr")), _ACTIONS.get(action, action)


def _map(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _text(found: object) -> str:
    return found if isinstance(found, str) else ""


def _number(found: object) -> int:
    return int(found) if isinstance(found, int | float) and abs(found) < _HUGE else 0


def read_outputs(outputs: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Name and value as JSON of each output that has one; None for the value of a sensitive one."""
    for name, output in outputs.items():
        if isinstance(output, dict) and output.get("sensitive") is True:
            yield name, None
        elif isinstance(output, dict) and "value" in output:
            yield name, json.dumps(output["value"], ensure_ascii=False)
