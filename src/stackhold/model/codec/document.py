"""JSON text to a document of checked fields, and a document to text.

`Fields` hands out the fields that a codec knows, each with its type checked, and keeps the rest: what nobody asked
for is what the codec keeps as `extra`. Every complaint names the object and the place in it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec

from stackhold.errors import RecordUnreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackhold.model.values import JsonMap

_BYTE = re.compile(r"\s*\(byte (\d+)\)$")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)', re.DOTALL)
_MISSING = object()
_KINDS = {str: "text", int: "a whole number", dict: "an object", list: "a list", bool: "true or false"}


def parse(data: bytes, *, key: str) -> Fields:
    """The document in `data`; raises `RecordUnreadable` with line and column when it is no JSON object."""
    try:
        value = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise _unreadable(data, error, key=key) from error
    except RecursionError as error:
        raise RecordUnreadable(f"{key} cannot be read: its JSON is nested too deeply", key=key) from error
    return Fields(value, key=key)


def text_of(document: JsonMap, *, stands_in: Callable[[object], object] | None = None) -> bytes:
    """The document as JSON text, in the order of its keys. `stands_in` gives a value for what JSON does not know."""
    return msgspec.json.format(msgspec.json.encode(document, enc_hook=stands_in), indent=2)


def _unreadable(data: bytes, error: Exception, *, key: str) -> RecordUnreadable:
    """Say where the text stops being JSON."""
    found = _BYTE.search(str(error))
    at = int(found.group(1)) if found else len(data)
    what = "it is no JSON" if found else "it ends in the middle"
    if isinstance(error, msgspec.ValidationError):
        at, what = _number_beyond(data), "a number in it is out of range"
    try:
        data.decode()
    except UnicodeDecodeError as not_text:
        at, what = not_text.start, "it is no UTF-8 text"
    if not data.strip():
        at, what = 0, "it is empty"
    line = data.count(b"\n", 0, at) + 1
    column = at - (data.rfind(b"\n", 0, at) + 1) + 1
    return RecordUnreadable(
        f"{key} cannot be read: {what} (line {line}, column {column})",
        key=key,
        hint=_way_out(key),
    )


def _number_beyond(data: bytes) -> int:
    """Where the first number begins that is beyond what a number can be."""
    for found in _TOKEN.finditer(data):
        number = found.group("number")
        if number is not None and math.isinf(float(number)):
            return found.start()
    return 0


def _way_out(key: str) -> str:
    """What to do about an object that cannot be read: only records have backups."""
    if key.endswith("/state.json"):
        return "Nothing was overwritten. Mend the object, or put one of its backups in its place."
    return "Nothing was overwritten. Mend the object, or move it away once you know what it says."


class Fields:
    """One JSON object while it is being read."""

    __slots__ = ("_key", "_path", "_values")

    def __init__(self, value: object, *, key: str, path: str = "") -> None:
        self._key = key
        self._path = path
        if not isinstance(value, dict):
            raise self.wrong("", "an object", value)
        self._values = dict(value)

    def wrong(self, field: str, expected: str, found: object = _MISSING) -> RecordUnreadable:
        """The error for a field that is not what it should be."""
        where = ".".join(part for part in (self._path, field) if part) or "the whole document"
        kind = "nothing" if found is _MISSING else _kind(found)
        return RecordUnreadable(
            f"{self._key} cannot be read: {where} should be {expected}, but is {kind}",
            key=self._key,
            hint=_way_out(self._key),
        )

    def has(self, field: str) -> bool:
        """Whether a field is there and not null."""
        return self._values.get(field) is not None

    def text(self, field: str) -> str:
        """A text that must be there."""
        value = self._values.pop(field, _MISSING)
        if type(value) is str:
            return value
        raise self.wrong(field, "text", value)

    def name(self, field: str) -> str:
        """A text that must be there and not empty: nothing is called by no name."""
        value = self.text(field)
        if not value:
            raise self.wrong(field, "a name", value)
        return value

    def maybe_text(self, field: str) -> str | None:
        """A text, or None when it is absent or null."""
        value = self._values.pop(field, None)
        if value is None or type(value) is str:
            return value
        raise self.wrong(field, "text", value)

    def number(self, field: str) -> int:
        """A whole number that must be there."""
        value = self._values.pop(field, _MISSING)
        number = _whole(value)
        if number is None:
            raise self.wrong(field, "a whole number", value)
        return number

    def at_least(self, field: str, lowest: int) -> int:
        """A whole number that must be there and not lower."""
        number = self.number(field)
        if number < lowest:
            raise self.wrong(field, f"{lowest} or more", _Number(number))
        return number

    def maybe_at_least(self, field: str, lowest: int) -> int | None:
        """A whole number that is not lower, or None when it is absent or null."""
        return self.at_least(field, lowest) if self.has(field) else self.maybe_number(field)

    def maybe_number(self, field: str) -> int | None:
        """A whole number, or None when it is absent or null."""
        value = self._values.pop(field, None)
        if value is None:
            return None
        number = _whole(value)
        if number is None:
            raise self.wrong(field, "a whole number", value)
        return number

    def number_or_none(self, field: str) -> int | None:
        """A whole number, or None for anything else at all."""
        return _whole(self._values.pop(field, None))

    def flag(self, field: str) -> bool:
        """True or false; false when absent."""
        value = self._values.pop(field, False)
        if type(value) is bool:
            return value
        raise self.wrong(field, "true or false", value)

    def map(self, field: str) -> dict[str, object]:
        """An object that must be there, as it is."""
        value = self._values.pop(field, _MISSING)
        if type(value) is dict:
            return value
        raise self.wrong(field, "an object", value)

    def maybe_map(self, field: str) -> dict[str, object] | None:
        """An object as it is, or None when it is absent or null."""
        value = self._values.pop(field, None)
        if value is None or type(value) is dict:
            return value
        raise self.wrong(field, "an object", value)

    def maybe_texts(self, field: str) -> tuple[str, ...] | None:
        """A list of texts, or None when it is absent or null."""
        value = self._values.pop(field, None)
        if value is None:
            return None
        if type(value) is list and all(type(item) is str for item in value):
            return tuple(value)
        raise self.wrong(field, "a list of texts", value)

    def each(self, field: str, *, required: bool = True) -> Iterator[Fields]:
        """The objects of a list."""
        value = self._values.pop(field, _MISSING if required else [])
        if type(value) is not list:
            raise self.wrong(field, "a list", value)
        for index, item in enumerate(value):
            yield Fields(item, key=self._key, path=self._below(f"{field}.{index}"))

    def entries(self, field: str) -> Iterator[tuple[str, Fields]]:
        """The objects of an object, by name."""
        base = self._below(field)
        for name, item in self.map(field).items():
            yield name, Fields(item, key=self._key, path=f"{base}.{name}")

    def inner(self, field: str) -> Fields:
        """An object that must be there, to be read field by field."""
        return Fields(self.map(field), key=self._key, path=self._below(field))

    def value(self, field: str) -> object:
        """Any value that must be there."""
        value = self._values.pop(field, _MISSING)
        if value is _MISSING:
            raise self.wrong(field, "a value")
        return value

    def rest(self) -> dict[str, object]:
        """What nobody asked for."""
        return self._values

    def _below(self, field: str) -> str:
        return f"{self._path}.{field}" if self._path else field


def _whole(value: object) -> int | None:
    """The whole number that a JSON number is; writers in JavaScript may put `1e3` or `5.0`."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    return None


class _Number(int):
    """A whole number that is wrong for what it is, not for being one."""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, float | _Number):
        return f"the number {value}"
    if value == "":
        return "empty text"
    return _KINDS.get(type(value), "something else")
