"""The runtimes' stream of JSON events (`-json`), taken in line by line as it grows.

Tells what is worth telling while the step runs, and what is known once it is over. Lines that are no JSON, events of
a kind that is not known here and fields of another shape are passed over: they never end the reading.

No value goes into what is told: outputs and what provisioners run and print are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.lock_info import parse_lock_info
from stackhold.engines.terraform.stream_entry import (
    StreamEntry,
    dumped_state,
    read_diagnostic,
    read_entry,
    read_outputs,
)
from stackhold.engines.terraform.stream_summary import (
    LOCK_SUMMARY,
    Changes,
    Diagnostic,
    EventKind,
    StreamEvent,
    StreamSummary,
    Touch,
    Touched,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.model.instant import Instant

_PRODUCTS: Final = {"terraform.ui": "terraform", "tofu.ui": "opentofu"}
_HARMLESS: Final = frozenset({"", "no-op", "read", "open", "renew", "close"})
_INTERRUPTED: Final = "Interrupt received."
_HALTED: Final = "execution halted"
_EMERGENCY: Final = "Emergency state dump"
_OTHERS_KEPT: Final = 50
_OTHER_LENGTH: Final = 1000


class Stream:
    """Reads one step's stream."""

    def __init__(self) -> None:
        self._product = ""
        self._version = ""
        self._diagnostics: list[Diagnostic] = []
        self._lock: LockInfo | None = None
        self._is_lock_error = False
        self._is_interrupted = False
        self._touched: dict[tuple[str, str], Touched] = {}
        self._planned: dict[tuple[str, str], None] = {}
        self._drifted: dict[tuple[str, str], None] = {}
        self._changes: Changes | None = None
        self._past_lock: Instant | None = None
        self._emergency: bytes | None = None
        self._others: list[str] = []
        self._outputs: tuple[tuple[str, str | None], ...] = ()
        self._readers: Final[dict[str, Callable[[StreamEntry], StreamEvent | None]]] = {
            "version": self._on_version,
            "diagnostic": self._on_diagnostic,
            "planned_change": self._on_planned,
            "resource_drift": self._on_drift,
            "apply_start": self._on_start,
            "apply_progress": self._on_progress,
            "apply_complete": self._on_complete,
            "apply_errored": self._on_errored,
            "provision_start": self._on_provision,
            "change_summary": self._on_summary,
            "outputs": self._on_outputs,
            "state_lock_acquire": self._on_waiting,
            "log": self._on_log,
        }

    def feed(self, line: str) -> StreamEvent | None:
        """Take one line in; returns what to tell of it, None for what is not worth telling."""
        entry = read_entry(line)
        if entry is None:
            self._on_other(line)
            return None
        if self._past_lock is None and entry.shows_lock:
            self._past_lock = entry.at
        if not self._product:
            self._product = _PRODUCTS.get(entry.text("@module"), "")
        read = self._readers.get(entry.text("type"))
        return None if read is None else read(entry)

    def finish(self) -> StreamSummary:
        """All that the lines so far have said."""
        has_error = any(each.severity == "error" for each in self._diagnostics)
        return StreamSummary(
            product=self._product,
            version=self._version,
            diagnostics=tuple(self._diagnostics),
            lock=self._lock,
            is_lock_error=self._is_lock_error,
            is_interrupted=self._is_interrupted,
            touched=tuple(self._touched.values()),
            planned=tuple(self._planned),
            drifted=tuple(self._drifted),
            changes=None if has_error else self._changes,
            first_past_lock=self._past_lock,
            emergency_state=self._emergency,
            other_lines=tuple(self._others),
            outputs=self._outputs,
        )

    def _on_other(self, line: str) -> None:
        """Keep text for people. What looks like a broken event may be a piece of anything, a state as well."""
        text = line.strip()
        if text and not text.startswith("{") and len(self._others) < _OTHERS_KEPT:
            self._others.append(text[:_OTHER_LENGTH])

    def _on_version(self, entry: StreamEntry) -> None:
        self._version = entry.text("terraform") or entry.text("tofu")
        if entry.text("tofu"):
            self._product = "opentofu"

    def _on_diagnostic(self, entry: StreamEntry) -> StreamEvent | None:
        found = read_diagnostic(entry.fields.get("diagnostic"))
        if found is None:
            return None
        self._diagnostics.append(found)
        if found.severity == "error":
            self._is_interrupted = self._is_interrupted or found.summary == _HALTED
            if found.summary == LOCK_SUMMARY:
                self._is_lock_error = True
                self._lock = parse_lock_info(found.detail) or self._lock
        return StreamEvent("diagnostic", found.summary, found.address, at=entry.at, severity=found.severity)

    def _on_planned(self, entry: StreamEntry) -> StreamEvent:
        address, action = entry.change
        self._planned[address, action] = None
        return StreamEvent("planned", entry.message, address, action, at=entry.at)

    def _on_drift(self, entry: StreamEntry) -> StreamEvent:
        address, action = entry.change
        self._drifted[address, action] = None
        return StreamEvent("drift", entry.message, address, action, at=entry.at)

    def _on_start(self, entry: StreamEntry) -> StreamEvent:
        return self._touch(entry, Touch.STARTED, "started")

    def _on_complete(self, entry: StreamEntry) -> StreamEvent:
        return self._touch(entry, Touch.DONE, "done")

    def _on_errored(self, entry: StreamEntry) -> StreamEvent:
        return self._touch(entry, Touch.FAILED, "failed")

    def _touch(self, entry: StreamEntry, touch: Touch, kind: EventKind) -> StreamEvent:
        """Note how far a change came. What reads only, or does nothing, leaves nothing to find."""
        address, action = entry.hook
        before = self._touched.get((address, action))
        id_value = entry.hook_text("id_value") or (before.id_value if before else "")
        if action not in _HARMLESS:
            self._touched[address, action] = Touched(
                address=address,
                action=action,
                touch=touch,
                id_key=entry.hook_text("id_key") or (before.id_key if before else ""),
                id_value=id_value,
                at=entry.at,
                seconds=entry.seconds,
            )
        return StreamEvent(kind, entry.message, address, action, entry.seconds, id_value, entry.at)

    def _on_progress(self, entry: StreamEntry) -> StreamEvent:
        address, action = entry.hook
        return StreamEvent("progress", entry.message, address, action, entry.seconds, at=entry.at)

    def _on_provision(self, entry: StreamEntry) -> StreamEvent:
        """A provisioner's name only: what it runs and prints may hold values."""
        return StreamEvent("progress", entry.message, entry.hook[0], "provision", at=entry.at)

    def _on_waiting(self, entry: StreamEntry) -> StreamEvent:
        return StreamEvent("progress", entry.message, action="lock", at=entry.at)

    def _on_summary(self, entry: StreamEntry) -> StreamEvent:
        self._changes = Changes(*(entry.count(key) for key in ("add", "change", "remove", "import")))
        operation = entry.part("changes").get("operation")
        return StreamEvent(
            "summary", entry.message, action=operation if isinstance(operation, str) else "", at=entry.at
        )

    def _on_outputs(self, entry: StreamEntry) -> StreamEvent:
        """How many outputs there are is told; what they are is kept for who may see it."""
        self._outputs = tuple(read_outputs(entry.part("outputs"))) or self._outputs
        return StreamEvent("output", f"{len(entry.part('outputs'))} outputs", at=entry.at)

    def _on_log(self, entry: StreamEntry) -> None:
        """The runtimes log two things that matter: that they were told to stop, and a state saved nowhere else."""
        if _INTERRUPTED in entry.message:
            self._is_interrupted = True
        elif entry.message.startswith(_EMERGENCY):
            self._emergency = dumped_state(entry) or self._emergency
