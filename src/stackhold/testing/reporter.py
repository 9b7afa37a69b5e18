"""A reporter that keeps what it is told, for tests that ask what a run said."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.model.events import Event, EventKind
    from stackhold.ports.reporter import Reporter


class RecordingReporter:
    """Keeps every event in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)

    def kinds(self) -> list[EventKind]:
        """The kinds, in order."""
        return [event.kind for event in self.events]

    def of(self, kind: EventKind) -> list[Event]:
        """The events of one kind, in order."""
        return [event for event in self.events if event.kind == kind]


if TYPE_CHECKING:
    _: type[Reporter] = RecordingReporter
