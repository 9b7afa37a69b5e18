"""Takes one step: starts the runtime, tails what it prints, waits for its end, and judges how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackhold.engines.terraform.diagnostics import Stream, Verdict, judge
from stackhold.engines.terraform.lock_info import parse_lock_info
from stackhold.engines.terraform.process import Command, run_child
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stackhold.engines.terraform.approval import Decision
    from stackhold.engines.terraform.diagnostics import StreamEvent, StreamSummary
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.engines.terraform.planfile import PlanSummary
    from stackhold.engines.terraform.process import ChildEnd
    from stackhold.engines.terraform.steps import Step
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Stop

_KINDS = {
    "started": EventKind.OPERATION_STARTED,
    "done": EventKind.OPERATION_DONE,
    "failed": EventKind.OPERATION_FAILED,
}


class Host(Protocol):
    """What the runner asks of whoever runs it: a guarded run, or a Job."""

    @property
    def clock(self) -> Clock:
        """The machine's clocks."""
        ...

    def stopping(self) -> Stop | None:
        """Why nothing new may start, or None; once not None it stays so."""
        ...

    def tell(self, event: Event) -> None:
        """Show and keep an event."""
        ...

    def note(self, step: str) -> None:
        """A step that takes the state lock begins now. Returns when that is written down for a successor.

        Raises `StoodDown` and `StoreError`: then the step must not begin.
        """
        ...

    def approve(self, plan: PlanSummary) -> Decision:
        """Whether a saved plan that changes something may be applied."""
        ...


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step ended."""

    step: Step
    verdict: Verdict
    child: ChildEnd
    summary: StreamSummary | None
    output: bytes = b""
    """Standard output of a step without a stream of events."""

    @property
    def is_good(self) -> bool:
        """Whether the operation goes on."""
        return self.verdict in (Verdict.OK, Verdict.CHANGES)

    @property
    def lock(self) -> LockInfo | None:
        """Who holds the state lock, when that is why it failed."""
        if self.verdict is not Verdict.LOCKED:
            return None
        return (self.summary.lock if self.summary else None) or parse_lock_info(self.child.stderr)


@dataclass(slots=True)
class Workshop:
    """A module, a runtime, and the folder for what it prints."""

    command: tuple[str, ...]
    directory: Path
    env: Mapping[str, str]
    streams: Path
    """A folder of ours, 0700: one file per stream and step."""
    host: Host
    module: Path
    """The module itself, which is elsewhere when `directory` is an overlay of it."""
    died: Callable[[], None] = lambda: None
    """Called when the runtime has died of a signal, with everything that it had started."""
    _taken: int = field(default=0)

    def take(self, step: Step) -> StepEnd:
        """Take a step. Raises `InputError` when the runtime cannot be started."""
        self._taken += 1
        name = f"{self._taken:02d}-{step.name.replace(' ', '-')}"
        command = Command(
            argv=(*self.command, *step.args),
            cwd=self.directory,
            env=self.env,
            stdout=self.streams / f"{name}.out",
            stderr=self.streams / f"{name}.err",
        )
        self._tell(EventKind.STEP_STARTED, step, {})
        stream = Stream() if step.has_stream else None

        def on_line(line: str) -> None:
            event = stream.feed(line) if stream is not None else None
            if event is not None:
                self._tell_event(event)

        try:
            child = run_child(command, clock=self.host.clock, stopping=self.host.stopping, on_line=on_line)
            output = b"" if stream is not None else command.stdout.read_bytes()
        finally:
            if stream is None:
                command.stdout.unlink(missing_ok=True)
        if child.exit_code < 0:
            self.died()
        summary = stream.finish() if stream is not None else None
        verdict = judge(step, exit_code=child.exit_code, summary=summary, stderr=child.stderr)
        if verdict is Verdict.FAILED and _was_cut_short(child, summary):
            verdict = Verdict.INTERRUPTED
        self._tell(EventKind.STEP_DONE, step, {"exit": child.exit_code, "ms": child.ms, "verdict": verdict.value})
        return StepEnd(step, verdict, child, summary, output)

    def _tell(self, kind: EventKind, step: Step, data: dict[str, object]) -> None:
        self.host.tell(Event(kind, self.host.clock.now(), None, step.name, {"step": step.name, **data}))

    def _tell_event(self, event: StreamEvent) -> None:
        kind = _KINDS.get(event.kind)
        if kind is None:
            return
        data = {"operation": event.action, "durationMs": event.seconds * 1000, "physicalId": event.id_value}
        message = event.message if kind is EventKind.OPERATION_FAILED else ""
        kept = {name: value for name, value in data.items() if value}
        self.host.tell(Event(kind, self.host.clock.now(), LogicalId(event.address), message, kept))


def _was_cut_short(child: ChildEnd, summary: StreamSummary | None) -> bool:
    """Whether the end of a step that we signalled is that signal's work: it died of it, or it prints no events."""
    return child.was_killed or (child.was_interrupted and (summary is None or child.exit_code < 0))
