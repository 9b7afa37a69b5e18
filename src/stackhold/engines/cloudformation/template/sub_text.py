"""The text of `Fn::Sub`: which parts are literal and which are names. Pure; knows nothing of what names mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_PART: Final = re.compile(r"\$\{([^}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:]+")


@dataclass(frozen=True, slots=True)
class SubName:
    """`${name}`, blanks around it trimmed."""

    name: str


def sub_parts(text: str) -> list[str | SubName]:
    """Literal text and names in order. `${!x}` is the literal `${x}`. Raises `ValueError` naming a bad part."""
    parts: list[str | SubName] = []
    literal = ""
    end = 0
    for found in _PART.finditer(text):
        literal += text[end : found.start()]
        end = found.end()
        inner = found[1]
        if inner.startswith("!"):
            literal += "${" + inner[1:] + "}"
            continue
        name = inner.strip(" \t")
        if not _NAME.fullmatch(name):
            raise ValueError(found[0])
        if literal:
            parts.append(literal)
        literal = ""
        parts.append(SubName(name))
    literal += text[end:]
    return [*parts, literal] if literal else parts
