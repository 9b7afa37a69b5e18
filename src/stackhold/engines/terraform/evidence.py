"""Reads what a run that died has left on this host: its streams, and whether a process of it is still at work."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.diagnostics import Stream
from stackhold.engines.terraform.leftovers import Evidence
from stackhold.engines.terraform.process import is_process_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.engines.terraform.diagnostics import StreamSummary, Touched
    from stackhold.engines.terraform.leftovers import StepNote

STREAMS: Final = "streams"
DUMP: Final = b'"Emergency state dump"'
_CHANGING: Final = ("apply", "destroy", "refresh")


def evidence_of(note: StepNote) -> Evidence:
    """What can be known here of a run; without its streams, what it noted is all."""
    folder = Path(note.workdir) / STREAMS
    touched: list[Touched] = []
    first_past_lock = None
    dump: bytes | None = None
    for name, summary in _summaries(folder):
        if name in _CHANGING:
            touched.extend(summary.touched)
            dump = summary.emergency_state or dump
        if name == note.step:
            first_past_lock = summary.first_past_lock
    return Evidence(
        note,
        first_past_lock=first_past_lock,
        touched=tuple(touched),
        emergency_state=dump,
        is_running=any(is_process_alive(file) for file in sorted(folder.glob("*.pid"))),
    )


def redact_dumps(folder: Path) -> None:
    """Take states out of the streams in a folder, once they are kept where they belong."""
    for file in sorted(folder.glob("*.out")):
        with contextlib.suppress(OSError):
            lines = file.read_bytes().splitlines(keepends=True)
            kept = [line for line in lines if DUMP not in line]
            if len(kept) < len(lines):
                file.write_bytes(b"".join(kept))


def _summaries(folder: Path) -> Iterator[tuple[str, StreamSummary]]:
    """Per stream in the order of the steps: the step's name, and what its stream says."""
    for file in sorted(folder.glob("*.out")):
        stream = Stream()
        try:
            with file.open("r", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    stream.feed(line)
        except OSError:
            continue
        yield file.stem.partition("-")[2].replace("-", " "), stream.finish()
