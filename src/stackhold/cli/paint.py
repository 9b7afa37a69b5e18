"""Colour for text on a terminal, and nothing anywhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CODES: Final = {"green": "32", "yellow": "33", "red": "31", "cyan": "36", "bold": "1", "dim": "2"}
"""The codes that we use, by style."""
RESET: Final = "0"


@dataclass(frozen=True, slots=True)
class Paint:
    """Wraps text in a colour when on; gives it back unchanged when not."""

    on: bool = False

    def __call__(self, style: str, text: str) -> str:
        """The text in a style."""
        return f"\x1b[{CODES[style]}m{text}\x1b[{RESET}m" if self.on and text else text


PLAIN = Paint()
