"""Shows a run while it works: a live view on a terminal, plain lines anywhere else.

A reporter must never raise or block the run, so a stream that is gone is written to no more.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, TextIO

from stackhold.cli.paint import PLAIN, Paint
from stackhold.cli.run_view import RunView, event_line, is_warning
from stackhold.model.events import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.text import Text

    from stackhold.cli.surroundings import Surroundings
    from stackhold.model.events import Event
    from stackhold.ports.clock import Clock
    from stackhold.ports.reporter import Reporter

_QUIET = (
    EventKind.RUN_STARTED,
    EventKind.LOCK_ACQUIRED,
    EventKind.PLANNED,
    EventKind.RUN_FINISHED,
)
"""What the command says in other words."""
_STYLES = {
    EventKind.OPERATION_DONE: "green",
    EventKind.OPERATION_FAILED: "red",
    EventKind.OPERATION_SKIPPED: "yellow",
    EventKind.OPERATION_WAITING: "yellow",
    EventKind.WARNING: "yellow",
    EventKind.STOPPING: "yellow",
    EventKind.GOING_BACK: "yellow",
}


def _style(event: Event) -> str:
    return _STYLES[EventKind.WARNING] if is_warning(event) else _STYLES.get(event.kind, "")


class PlainReporter:
    """A line per event that a reader of a log wants."""

    def __init__(self, stream: TextIO, *, paint: Paint = PLAIN) -> None:
        self._stream = stream
        self._paint = paint
        self._is_gone = False
        self._waiting_for = ""

    def tell(self, event: Event) -> None:
        """Write its line."""
        if event.kind in _QUIET or self._is_repeated(event):
            return
        line = event_line(event)
        if line is not None and not self._is_gone:
            style = _style(event)
            self._write(self._paint(style, line) if style else line)

    def _is_repeated(self, event: Event) -> bool:
        """Whether it only says again which holder is waited for."""
        if event.kind is not EventKind.LOCK_WAITING:
            return False
        before, self._waiting_for = self._waiting_for, event.message
        return before == event.message

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self._is_gone = True

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Lines never stand in the way of a question."""
        yield

    def close(self) -> None:
        """Nothing is left open."""


class LiveReporter:
    """What runs, since when, both clocks and who holds the lock, redrawn in place; finished operations scroll by."""

    def __init__(self, console: Console, *, view: RunView, clock: Clock) -> None:
        from rich.live import Live

        self._console = console
        self._view = view
        self._clock = clock
        self._guard = threading.Lock()
        self._turn = threading.Lock()
        """Held while the view is started or stopped: whoever closes it may come from another thread."""
        self._is_open = True
        self._live = Live(self, console=console, transient=True, refresh_per_second=5, redirect_stderr=False)
        try:
            self._live.start()
        except BaseException:
            self.close()
            raise

    def __rich_console__(self, console: Console, options: object) -> Iterator[Text]:
        """The view at this moment, asked for by the thread that redraws."""
        from rich.text import Text

        with self._guard:
            lines = self._view.lines(self._clock.now(), height=max(3, console.size.height // 2))
        yield Text("\n".join(lines), no_wrap=True, overflow="ellipsis")

    def tell(self, event: Event) -> None:
        """Take it in; print what should stay on the screen."""
        with self._guard:
            self._view.apply(event)
        if event.kind in _QUIET or event.kind is EventKind.LOCK_WAITING:
            return
        line = event_line(event)
        if line is not None:
            from rich.text import Text

            try:
                self._console.print(Text(line, style=_style(event)), soft_wrap=True)
            except (OSError, ValueError):
                self.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Give the terminal to whoever wants to print or ask, and draw again afterwards."""
        with self._turn:
            self._live.stop()
        try:
            yield
        finally:
            with self._turn:
                if self._is_open:
                    self._live.start(refresh=False)

    def close(self) -> None:
        """Give the terminal back, for good."""
        with self._turn:
            was_open, self._is_open = self._is_open, False
            if was_open:
                with contextlib.suppress(OSError, ValueError):
                    self._live.stop()


RunReporter = PlainReporter | LiveReporter


def reporter_for(surroundings: Surroundings, stream: TextIO, *, view: RunView, clock: Clock) -> RunReporter:
    """The live view when the stream is a terminal that can redraw, plain lines otherwise."""
    if not stream.isatty() or surroundings.environ.get("TERM", "") == "dumb":
        return PlainReporter(stream, paint=Paint(surroundings.color_on(stream)))
    from rich.console import Console

    console = Console(file=stream, no_color=not surroundings.color_on(stream), force_terminal=True, highlight=False)
    return LiveReporter(console, view=view, clock=clock)


if TYPE_CHECKING:
    _plain: type[Reporter] = PlainReporter
    _live: type[Reporter] = LiveReporter
