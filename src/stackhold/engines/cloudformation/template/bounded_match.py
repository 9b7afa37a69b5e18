"""Whether a text matches a pattern as a whole, in a time that the pattern cannot stretch.

Python's own matcher tries every way to match and cannot be stopped meanwhile: `(a+)+b` keeps it busy for years. Here
all ways are followed at once: from the set of places where a part may begin follows the set where it may end. That
takes a time in proportion to text and pattern, and a bound on the work says so if it ever should not.

Back references and possessive or atomic groups depend on the one way that was taken; a pattern with them goes to
Python's matcher, if so little in it repeats that the number of ways stays small, and is refused otherwise.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Places = frozenset[int]

MOST_STEPS: Final = 1_000_000
"""About a second: far more than any real pattern needs for the longest value."""
_MOST_REPEATS: Final = 2
_NOWHERE: Final[Places] = frozenset()
_ONE_WAY: Final = frozenset({"GROUPREF", "GROUPREF_EXISTS", "ATOMIC_GROUP", "POSSESSIVE_REPEAT"})
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


class TooMuchWork(Exception):
    """The text could not be held against the pattern with as much work as is allowed."""


class BoundedPattern:
    """A compiled pattern whose match always ends."""

    def __init__(self, compiled: re.Pattern[str]) -> None:
        """Raises `ValueError` for a pattern that cannot be matched in bounded time."""
        self._compiled = compiled
        try:
            self._tree: Any = importlib.import_module("re._parser").parse(compiled.pattern, compiled.flags)
            self._follows_one_way = any(_name(op) in _ONE_WAY for op, _ in _nodes(self._tree))
            has_few_ways = _has_few_ways(self._tree)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if self._follows_one_way and not has_few_ways:
            raise ValueError("a back reference or a possessive or atomic group beside several repetitions")

    def fullmatch(self, text: str) -> bool:
        """Whether the whole text matches. Raises `TooMuchWork`."""
        if self._follows_one_way:
            return self._compiled.fullmatch(text) is not None
        try:
            return len(text) in _Following(text, self._compiled.flags).sequence(self._tree, frozenset((0,)))
        except RecursionError:
            raise TooMuchWork from None


class _Following:
    """One text; each method takes the places where a part may begin and gives those where it may end."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags
        self._steps = 0
        self._known: dict[tuple[int, Places], Places] = {}

    def sequence(self, nodes: Iterable[tuple[Any, Any]], places: Places) -> Places:
        for op, argument in nodes:
            if not places:
                return _NOWHERE
            places = self._node(_name(op), argument, places)
        return places

    def _node(self, name: str, argument: Any, places: Places) -> Places:
        self._steps += len(places)
        if self._steps > MOST_STEPS:
            raise TooMuchWork
        match name:
            case "BRANCH":
                return frozenset().union(*(self.sequence(branch, places) for branch in argument[1]))
            case "SUBPATTERN":
                return self._group(argument, places)
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._remembered(argument, places)
            case "AT":
                return frozenset(place for place in places if self._is_at(_name(argument), place))
            case "ASSERT" | "ASSERT_NOT":
                wanted = name == "ASSERT"
                return frozenset(place for place in places if self._sees(argument, place) is wanted)
            case "FAILURE":
                return _NOWHERE
            case _:
                return self._one_character(name, argument, places)

    def _group(self, argument: Any, places: Places) -> Places:
        """A group, with the flags that hold inside it."""
        _, added, removed, inner = argument
        before = self._flags
        self._flags = (before | added) & ~removed
        try:
            return self.sequence(inner, places)
        finally:
            self._flags = before

    def _remembered(self, argument: Any, places: Places) -> Places:
        """A repetition. Repetitions in one another come to the same places again and again."""
        key = (id(argument), places)
        if key not in self._known:
            self._known[key] = self._repeated(argument, places)
        return self._known[key]

    def _repeated(self, argument: Any, places: Places) -> Places:
        least, most, inner = argument
        for _ in range(least):
            after = self.sequence(inner, places)
            if after == places:
                break
            places = after
        found, newest, times = set(places), places, int(least)
        while newest and times < most:
            newest = self.sequence(inner, newest) - found
            found |= newest
            times += 1
        return frozenset(found)

    def _sees(self, argument: Any, place: int) -> bool:
        """Whether what is looked for lies ahead of a place, or behind it."""
        direction, inner = argument
        if direction > 0:
            return bool(self._looked(argument, inner, place))
        begins = place - int(inner.getwidth()[0])
        return begins >= 0 and place in self._looked(argument, inner, begins)

    def _looked(self, argument: Any, inner: Any, place: int) -> Places:
        key = (id(argument), frozenset((place,)))
        if key not in self._known:
            self._known[key] = self.sequence(inner, key[1])
        return self._known[key]

    def _is_at(self, name: str, place: int) -> bool:
        text = self._text
        is_by_line = bool(self._flags & re.MULTILINE)
        match name:
            case "AT_BEGINNING":
                return place == 0 or (is_by_line and text[place - 1] == "\n")
            case "AT_BEGINNING_STRING":
                return place == 0
            case "AT_END":
                rest = text[place : place + 2]
                return rest in ("", "\n") or (is_by_line and rest[:1] == "\n")
            case "AT_END_STRING":
                return place == len(text)
            case "AT_BOUNDARY":
                return self._is_word(place - 1) is not self._is_word(place)
            case _:
                return self._is_word(place - 1) is self._is_word(place)

    def _is_word(self, place: int) -> bool:
        return (
            0 <= place < len(self._text) and re.fullmatch(r"\w", self._text[place], self._flags & re.ASCII) is not None
        )

    def _one_character(self, name: str, argument: Any, places: Places) -> Places:
        end = len(self._text)
        return frozenset(
            place + 1 for place in places if place < end and self._is_in(name, argument, self._text[place])
        )

    def _is_in(self, name: str, argument: Any, character: str) -> bool:
        match name:
            case "ANY":
                return character != "\n" or bool(self._flags & re.DOTALL)
            case "NOT_LITERAL":
                return not self._is_one(("LITERAL", argument), character)
            case "IN":
                items = [(_name(op), value) for op, value in argument]
                is_negated = items[0][0] == "NEGATE"
                return any(self._is_one(item, character) for item in items[is_negated:]) is not is_negated
            case _:
                return self._is_one((name, argument), character)

    def _is_one(self, item: tuple[str, Any], character: str) -> bool:
        """Whether one item of a class has the character, in any case where case does not matter."""
        name, value = item
        if name == "CATEGORY":
            return re.fullmatch(_CATEGORIES[_name(value)], character, self._flags & re.ASCII) is not None
        low, high = value if name == "RANGE" else (value, value)
        is_any_case = self._flags & re.IGNORECASE and (character.isascii() or not self._flags & re.ASCII)
        forms = {character, character.lower(), character.upper()} if is_any_case else {character}
        return any(len(form) == 1 and low <= ord(form) <= high for form in forms)


def _has_few_ways(tree: Any) -> bool:
    """Whether little enough repeats, none of it inside another and none with a choice in it."""
    found = 0
    for op, argument in _nodes(tree):
        if _name(op) in _REPEATS and argument[0] != argument[1]:
            found += 1
            if any(_name(inner) in {*_REPEATS, "BRANCH"} for inner, _ in _nodes(argument[2])):
                return False
    return found <= _MOST_REPEATS


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every node of a parsed pattern."""
    for op, argument in tree:
        yield op, argument
        for part in _parts(_name(op), argument):
            yield from _nodes(part)


def _parts(name: str, argument: Any) -> list[Any]:
    match name:
        case "BRANCH":
            return list(argument[1])
        case "SUBPATTERN":
            return [argument[3]]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [argument[2]]
        case "ASSERT" | "ASSERT_NOT":
            return [argument[1]]
        case "ATOMIC_GROUP":
            return [argument]
        case "GROUPREF_EXISTS":
            return [part for part in argument[1:] if part is not None]
        case _:
            return []


def _name(op: Any) -> str:
    return str(getattr(op, "name", op))
