"""Where resources that were created again are called differently now: old ids and attributes, each with its new one.

A resource that goes back to its recorded properties finds former ids in them. Where such a resource had to be made
anew, its new id stands in for the old one, wherever that is a word of its own: alone, in an ARN, in a policy.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.record import ResourceRecord

_SHORTEST: Final = 6
"""A shorter text means too many things."""


class Moves:
    """What is called differently now. Thread-safe."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lock = threading.Lock()

    def add(self, old: ResourceRecord, new: ResourceRecord) -> None:
        """A resource was made anew."""
        with self._lock:
            self._texts.update(_pairs(old, new))

    def applied(self, properties: Mapping[str, Any]) -> Props:
        """The properties with every former id replaced."""
        with self._lock:
            texts = dict(self._texts)
        if not texts:
            return dict(properties)
        longest_first = sorted(texts, key=len, reverse=True)
        pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w-])")
        return {name: _replaced(value, pattern, texts) for name, value in properties.items()}


def _pairs(old: ResourceRecord, new: ResourceRecord) -> Iterator[tuple[str, str]]:
    names = ((old.physical_id, new.physical_id), *_shared(old.attributes, new.attributes))
    for before, after in names:
        if before != after and len(before) >= _SHORTEST and after:
            yield before, after


def _shared(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, before in old.items():
        after = new.get(name)
        if isinstance(before, str) and isinstance(after, str):
            yield before, after
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from _shared(before, after)


def _replaced(value: Any, pattern: re.Pattern[str], texts: Mapping[str, str]) -> Any:
    match value:
        case str():
            return pattern.sub(lambda found: texts[found.group()], value)
        case dict():
            return {name: _replaced(item, pattern, texts) for name, item in value.items()}
        case list() | tuple():
            return [_replaced(item, pattern, texts) for item in value]
    return value
