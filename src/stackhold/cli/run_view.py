"""What a watcher of a run wants to know at this moment, folded from its events. Pure: time is passed in.

A live view draws it again and again; plain output prints a line per event and needs only `event_line`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.cli.printable import one_line
from stackhold.model.events import Event, EventKind
from stackhold.model.instant import Instant, clock_time, words
from stackhold.runs.lock_messages import ago

if TYPE_CHECKING:
    from stackhold.model.ids import LogicalId

_DONE = (EventKind.OPERATION_DONE, EventKind.OPERATION_FAILED, EventKind.OPERATION_SKIPPED)
_MARKS = {
    EventKind.OPERATION_DONE: "done",
    EventKind.OPERATION_FAILED: "FAILED",
    EventKind.OPERATION_SKIPPED: "skipped",
    EventKind.OPERATION_STARTED: "started",
    EventKind.OPERATION_SETTLING: "settling",
    EventKind.OPERATION_WAITING: "waiting",
}


@dataclass(slots=True)
class Working:
    """An operation that is in flight."""

    operation: str
    type: str
    since: Instant
    note: str = ""


@dataclass(slots=True)
class RunView:
    """A run at one moment."""

    title: str
    deadline_ms: int
    lock_wait: str
    started_at: Instant | None = None
    waiting: Event | None = None
    waiting_since: Instant | None = None
    has_lock: bool = False
    waited_ms: int = 0
    stopping: str = ""
    going_back: bool = False
    step: str = ""
    """The step of a runtime that is being taken."""
    done: int = 0
    total: int = 0
    working: dict[LogicalId, Working] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Take in what happened."""
        match event.kind:
            case EventKind.RUN_STARTED:
                self.started_at = event.at
            case EventKind.LOCK_WAITING | EventKind.LOCK_ACQUIRED | EventKind.LOCK_TAKEN_OVER:
                self._queue(event)
            case EventKind.PLANNED:
                self.total = number(event, "total") or _on_resources(event)
            case EventKind.OPERATION_STARTED | EventKind.OPERATION_SETTLING | EventKind.OPERATION_WAITING:
                self._begin(event)
            case EventKind.OPERATION_DONE | EventKind.OPERATION_FAILED | EventKind.OPERATION_SKIPPED:
                self._end(event)
            case EventKind.STEP_STARTED | EventKind.STEP_DONE:
                self._step(event)
            case EventKind.STOPPING:
                self.stopping = event.message
            case EventKind.GOING_BACK:
                self.going_back = True
            case EventKind.WARNING | EventKind.RUN_FINISHED:
                pass

    def _queue(self, event: Event) -> None:
        if event.kind is EventKind.LOCK_WAITING:
            self.waiting, self.waiting_since = event, self.waiting_since or event.at
            return
        self.waiting, self.has_lock = None, True
        self.waited_ms = max(self.waited_ms, number(event, "waitedMs"))

    def _step(self, event: Event) -> None:
        self.step = event.message if event.kind is EventKind.STEP_STARTED else ""

    def _begin(self, event: Event) -> None:
        if event.logical_id is None:
            return
        known = self.working.get(event.logical_id)
        self.working[event.logical_id] = Working(
            operation=text(event, "operation") or (known.operation if known else ""),
            type=text(event, "type") or (known.type if known else ""),
            since=known.since if known else event.at,
            note=_note(event),
        )

    def _end(self, event: Event) -> None:
        if event.logical_id is not None:
            self.working.pop(event.logical_id, None)
        self.done += 1

    def lines(self, now: Instant, *, height: int = 12) -> list[str]:
        """The view as lines: the run with its clocks, then what is in flight, oldest first."""
        shown = [self._head(now)]
        if self.waiting is not None:
            shown.append(f"  {waiting_text(self.waiting)}")
        if self.stopping:
            shown.append(f"  stopping: {self.stopping}")
        oldest = sorted(self.working.items(), key=lambda item: item[1].since)
        for logical_id, working in oldest[:height]:
            note = f" ({working.note})" if working.note else ""
            span = words(max(0, now - working.since) // 1000 * 1000 or 1000)
            shown.append(f"  {working.operation:<8} {logical_id}  {working.type}  {span}{note}")
        if len(oldest) > height:
            shown.append(f"  … and {len(oldest) - height} more")
        return [one_line(_unbroken(line)) for line in shown]

    def _head(self, now: Instant) -> str:
        parts = [self.title]
        if self.total:
            parts.append(f"{min(self.done, self.total)} of {self.total} done")
        if self.step:
            parts.append(self.step)
        if self.going_back:
            parts.append("going back")
        if self.started_at is not None:
            parts.append(f"{words(_whole(now - self.started_at))} of {words(self.deadline_ms)}")
        if self.waiting_since is not None and not self.has_lock:
            parts.append(f"waiting {words(_whole(now - self.waiting_since))} of {self.lock_wait}")
        elif self.waiting_since is not None and self.has_lock:
            parts.append(f"waited {words(_whole(self.waited_ms))} of {self.lock_wait} for the lock")
        return " · ".join(parts)


def _on_resources(event: Event) -> int:
    """How many planned steps are about a resource; only those are told as operations."""
    steps = event.data.get("steps")
    found = steps if isinstance(steps, list | tuple) else ()
    return sum(1 for step in found if isinstance(step, Mapping) and "logicalId" in step)


def _note(event: Event) -> str:
    """What an operation in flight is waiting for, if anything."""
    match event.kind:
        case EventKind.OPERATION_SETTLING:
            return "settling"
        case EventKind.OPERATION_WAITING:
            return f"waiting: {event.message}"
        case _:
            return ""


def event_line(event: Event, *, is_verbose: bool = False) -> str | None:
    """An event as one line for a log, whatever is in it; None for what a log need not show."""
    line = _line(event, is_verbose=is_verbose)
    return None if line is None else one_line(_unbroken(line))


def _unbroken(text: str) -> str:
    """Lines put behind each other: a message of ours may have a command on a line of its own."""
    return " ".join(part.strip() for part in text.split("\n")) if "\n" in text else text


def _line(event: Event, *, is_verbose: bool) -> str | None:
    if event.kind in (EventKind.OPERATION_STARTED, EventKind.OPERATION_SETTLING) and not is_verbose:
        return None
    at = clock_time(event.at)
    if event.kind in _MARKS:
        return f"{at}  {_operation_line(event)}"
    if is_warning(event):
        return f"{at}  warning: {event.message}"
    said = _said(event)
    return f"{at}  {said}" if said else None


def is_warning(event: Event) -> bool:
    """Whether a reader is warned by it, whatever its kind."""
    return event.kind is EventKind.WARNING or event.data.get("isWarning") is True


def _said(event: Event) -> str:
    match event.kind:
        case EventKind.LOCK_WAITING:
            return waiting_text(event)
        case EventKind.LOCK_ACQUIRED:
            return "took the lock"
        case EventKind.PLANNED:
            steps = count(event, "steps")
            return f"planned {steps} step" + ("" if steps == 1 else "s")
        case EventKind.RUN_STARTED | EventKind.RUN_FINISHED | EventKind.STEP_DONE:
            return ""
        case _:
            return event.message or event.kind.value


def waiting_text(event: Event) -> str:
    """Who is waited for, what it does, since when, and how alive it looks."""
    since, silent = number(event, "since"), number(event, "silentMs")
    parts = [event.message]
    if text(event, "operation"):
        parts.append(text(event, "operation") + (f" since {clock_time(Instant(since))}" if since else ""))
        parts.append(f"renewed {ago(silent)}")
    return ", ".join(parts)


def _operation_line(event: Event) -> str:
    if event.logical_id is None:
        return f"{_MARKS[event.kind]}: {event.message}"
    name = event.logical_id
    type_name = text(event, "type")
    parts = [f"{text(event, 'operation'):<8} {name}" + (f"  {type_name}" if type_name else "")]
    took = number(event, "durationMs")
    mark = _MARKS[event.kind]
    parts.append(f"{mark} in {words(took)}" if took and event.kind is EventKind.OPERATION_DONE else mark)
    if event.message:
        parts.append(event.message)
    return "  ".join(parts)


def text(event: Event, name: str) -> str:
    """A text that an event carries, empty when it does not."""
    value = event.data.get(name, "")
    return value if isinstance(value, str) else ""


def number(event: Event, name: str) -> int:
    """A whole number that an event carries, 0 when it does not."""
    value = event.data.get(name, 0)
    return value if isinstance(value, int) else 0


def _whole(span: int) -> int:
    return max(1000, span // 1000 * 1000)


def count(event: Event, name: str) -> int:
    """How long a list is that an event carries, 0 without one."""
    value = event.data.get(name)
    return len(value) if isinstance(value, list | tuple) else 0
