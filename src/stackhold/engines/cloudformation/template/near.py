"""What a name that does not exist may have been meant to be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEAR, _NEAR_TYPE = 0.6, 0.8
"""How much two names must have in common; those of types are long, and alike in their first part always."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the name that is nearest, first of all one that differs in case alone; empty when none is near."""
    names = list(known)
    for other in names:
        if other.lower() == name.lower():
            return f"Did you mean {other}?"
    near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR_TYPE if "::" in name else _NEAR)
    return f"Did you mean {near[0]}?" if near else ""
