"""Where a command runs: environment, folder and streams, handed in so that nothing below reads them by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One command's world."""

    environ: Mapping[str, str]
    cwd: Path
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @property
    def can_ask(self) -> bool:
        """Whether somebody can answer a question: both ends of the conversation are a terminal."""
        return self.stdin.isatty() and self.stderr.isatty()

    @property
    def is_debug(self) -> bool:
        """Whether an unexpected error shows its traceback (`STACKHOLD_DEBUG=1`)."""
        return self.environ.get("STACKHOLD_DEBUG", "") not in ("", "0")

    def color_on(self, stream: TextIO) -> bool:
        """Whether text for this stream may be coloured: a terminal that is not dumb, and no `NO_COLOR`."""
        return stream.isatty() and not self.environ.get("NO_COLOR") and self.environ.get("TERM", "") != "dumb"
