"""JSON with places: like the standard reader, but each value knows its line, and nulls and double keys are errors."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Final

from stackhold.engines.cloudformation.template.nodes import (
    MAX_DEPTH,
    ListNode,
    MapNode,
    Node,
    Place,
    ScalarNode,
    entry_at,
    number,
)
from stackhold.errors import TemplateError

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r'"([^"\\\x00-\x1f]*)"')
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD: Final = re.compile(r"[A-Za-z]+")


def read_json(text: str, file: str) -> tuple[Node, tuple[str, ...]]:
    """The document as a tree, and warnings. Raises `TemplateError` with line and column."""
    reader = _Reader(text, file)
    return reader.document(), tuple(reader.warnings)


class _Reader:
    """One pass over one text; `at` is where it has come to."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self._at = 0
        self.warnings: list[str] = []
        self._path: list[str] = []
        """The keys of the maps around what is read."""

    def document(self) -> Node:
        node = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("more text after the end of the JSON document")
        return node

    def _value(self, depth: int) -> Node:
        self._skip()
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels")
        first = self._text[self._at : self._at + 1]
        if first == "{":
            return self._map(depth)
        if first == "[":
            return self._list(depth)
        place = self._place(self._at)
        if first == '"':
            text = self._string()
            return ScalarNode(text, text, place)
        return self._word(place)

    def _word(self, place: Place) -> ScalarNode:
        if found := _NUMBER.match(self._text, self._at):
            self._at = found.end()
            node = number(found[0], place)
            if isinstance(node.value, str):
                self.warnings.append(as_written(self._file, node))
            return node
        found = _WORD.match(self._text, self._at)
        word = found[0] if found else ""
        if word == "null":
            raise self._error("null values are not allowed in templates")
        if word not in ("true", "false"):
            shown = word or self._text[self._at : self._at + 1]
            raise self._error(f"not JSON: {shown!r} is no value" if shown else "not JSON: the text ends early")
        self._at += len(word)
        return ScalarNode(word, word == "true", place)

    def _map(self, depth: int) -> MapNode:
        place = self._place(self._at)
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        self._at += 1
        self._skip()
        while not self._take("}"):
            if entries and not self._take(","):
                raise self._error("not JSON: a comma or '}' is missing")
            self._skip()
            start = self._at
            if self._text[start : start + 1] != '"':
                raise self._error("not JSON: a key in double quotes is missing")
            key = self._string()
            if key in entries:
                raise self._error(f"the key {key!r} stands twice in one map", at=start)
            self._skip()
            if not self._take(":"):
                raise self._error(f"not JSON: a colon is missing after the key {key!r}")
            keys[key] = self._place(start)
            self._path.append(key)
            entries[key] = self._value(depth + 1)
            self._path.pop()
            self._skip()
        return MapNode(entries, place, keys)

    def _list(self, depth: int) -> ListNode:
        place = self._place(self._at)
        items: list[Node] = []
        self._at += 1
        self._skip()
        while not self._take("]"):
            if items and not self._take(","):
                raise self._error("not JSON: a comma or ']' is missing")
            items.append(self._value(depth + 1))
            self._skip()
        return ListNode(tuple(items), place)

    def _string(self) -> str:
        if found := _PLAIN.match(self._text, self._at):
            self._at = found.end()
            return found[1]
        start = self._at
        found = _STRING.match(self._text, start)
        if not found:
            raise self._error("not JSON: a text is not closed, or holds a control character")
        try:
            text: str = json.loads(found[0])
            text.encode()
        except ValueError:
            raise self._error("not JSON: a text holds an invalid escape") from None
        self._at = found.end()
        return text

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _take(self, mark: str) -> bool:
        if self._text.startswith(mark, self._at):
            self._at += 1
            return True
        return False

    def _place(self, at: int) -> Place:
        line = bisect_right(self._lines, at)
        return Place(line, at - self._lines[line - 1] + 1)

    def _error(self, message: str, at: int | None = None) -> TemplateError:
        place = self._place(self._at if at is None else at)
        return TemplateError(
            message, file=self._file, line=place.line, column=place.column, logical_id=entry_at(self._path)
        )


def as_written(file: str, node: ScalarNode) -> str:
    """The warning about a number that CloudFormation might not read as it is written."""
    return f"{file}:{node.place.line}: the number {node.text} is used as written; put it in quotes to say so"
