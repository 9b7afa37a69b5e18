"""Where a run says what happens, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stackhold.model.events import Event


class Reporter(Protocol):
    """Shows a run to whoever watches. Called from one thread at a time; must be quick and must not raise."""

    def tell(self, event: Event) -> None:
        """Show one event."""
        ...
