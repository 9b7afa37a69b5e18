"""A template as a tree that knows where each part stands in its file, whatever the syntax was.

Numbers keep the text they were written with beside their value, since text made from them must show just that.
There are no nulls, no duplicate keys and no aliases left: the readers have refused or resolved them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_DEPTH = 80
"""Lists and maps within each other."""
MAX_NODES = 250_000
"""After aliases are resolved."""

_SECTIONS = ("Parameters", "Mappings", "Conditions", "Resources", "Outputs")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,299})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file, counted from 1."""

    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """Text, a boolean or a number."""

    text: str
    """As text: a number as written, a boolean in lower case."""
    value: str | bool | int | float
    place: Place
    written: str | None = None
    """Of a boolean, the word that stands in the file: where a name is wanted, `Yes` is one."""

    @property
    def name(self) -> str:
        """As the name of something."""
        return self.text if self.written is None else self.written


@dataclass(frozen=True, slots=True)
class ListNode:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class MapNode:
    """A map; an intrinsic function is one with a single key."""

    entries: Mapping[str, Node]
    place: Place
    keys: Mapping[str, Place]
    """Where each key stands."""


Node = ScalarNode | ListNode | MapNode

EMPTY = MapNode({}, Place(), {})


def number(text: str, place: Place) -> ScalarNode:
    """A number as the file has it.

    One that would not read the same when written out again (0777, 1.10, 0x1F) stays text, as written; the schema
    makes it a number again where a property is one.
    """
    if _WHOLE.fullmatch(text) and text != "-0":
        return ScalarNode(text, int(text), place)
    if "_" not in text and "x" not in text.lower():
        value = float(text) if _is_float(text) else None
        if value is not None and repr(value) == text:
            return ScalarNode(text, value, place)
    return ScalarNode(text, text, place)


def entry_at(path: Sequence[str]) -> str:
    """The entry of a section that a place lies in, as messages call it, from the keys around it: of a resource its
    logical id. Empty outside of every entry."""
    if len(path) < 2 or path[0] not in _SECTIONS:
        return ""
    return path[1] if path[0] == "Resources" else f"{path[0]}.{path[1]}"


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "." in text or "e" in text.lower()


def kind(node: Node) -> str:
    """What a node is, for messages."""
    if isinstance(node, MapNode):
        return "a map"
    if isinstance(node, ListNode):
        return "a list"
    if isinstance(node.value, bool):
        return f"the boolean {node.text}"
    return f"the text {node.text!r}" if isinstance(node.value, str) else f"the number {node.text}"
