"""What the real runtimes printed, as recorded under `tests/golden/terraform`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from stackhold.engines.terraform.diagnostics import Stream

if TYPE_CHECKING:
    from stackhold.engines.terraform.diagnostics import StreamEvent, StreamSummary

_FOLDER = Path(__file__).parents[2] / "golden" / "terraform"
RUNTIMES = ("terraform-1.11", "terraform-1.15", "opentofu-1.12")


def lines(runtime: str, name: str) -> list[str]:
    """The lines of a stream."""
    return (_FOLDER / runtime / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()


def streams(runtime: str) -> list[str]:
    """The names of all recorded streams."""
    return sorted(path.stem for path in (_FOLDER / runtime).glob("*.jsonl"))


def events(runtime: str, name: str) -> list[StreamEvent]:
    """What is told of a stream."""
    stream = Stream()
    return [event for line in lines(runtime, name) if (event := stream.feed(line)) is not None]


def summary(runtime: str, name: str) -> StreamSummary:
    """What is known of a stream once it is over."""
    return summary_of(lines(runtime, name))


def summary_of(text: list[str]) -> StreamSummary:
    """The same of lines that a test made."""
    stream = Stream()
    for line in text:
        stream.feed(line)
    return stream.finish()


def stderr(runtime: str, name: str) -> str:
    """What a step without a stream printed on standard error."""
    return (_FOLDER / runtime / f"{name}.txt").read_text(encoding="utf-8")


def document(runtime: str, name: str) -> bytes:
    """What a step printed that prints one document."""
    return (_FOLDER / runtime / f"{name}.json").read_bytes()


def exit_code(runtime: str, name: str) -> int:
    """How the recorded step ended."""
    codes: dict[str, int] = json.loads((_FOLDER / runtime / "exits.json").read_bytes())
    return codes[name]
