"""Finds the blocks in a file of the configuration language, without understanding expressions. Pure.

Enough of the language is known to never take for a block what stands in a comment, a string, a heredoc, a template
inside either, or an object. A broken file gives what can be seen of it: the runtime reports the mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(
    r"""
    (?P<comment> \#[^\n]* | //[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<heredoc> <<-?(?P<mark>[^\W\d][\w-]*)[ \t]*\r?\n )
  | (?P<quote> " )
  | (?P<open> [{(\[] )
  | (?P<close> [})\]] )
  | (?P<newline> \n )
  | (?P<word> [^\W\d][\w-]* )
  | (?P<space> [ \t\r]+ )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LITERAL: Final = re.compile(r'(?:\\.|\$\$\{|%%\{|(?![$%]\{)[^"\\\n])*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a block."""

    path: tuple[tuple[str, ...], ...]
    """Its own words and those of the blocks around it, the outermost first: `(("terraform",), ("backend", "s3"))`."""
    line: int


def headers(text: str) -> Iterator[Header]:
    """All blocks, in order."""
    return _Scan(text).run()


class _Kind(Enum):
    BODY = auto()
    """A block's inside, or the file: statements, one a line."""
    EXPRESSION = auto()
    """Inside an object or any bracket."""
    STRING = auto()
    HEREDOC = auto()
    TEMPLATE = auto()
    """Inside `${…}` or `%{…}`."""


@dataclass(slots=True)
class _Frame:
    kind: _Kind
    words: tuple[str, ...] = ()
    """Of a body: the block's own words."""
    mark: str = ""
    begin: int = 0


@dataclass(slots=True)
class _Statement:
    """What stands on the line so far: the words of a block's header, unless anything else came."""

    words: list[str] = field(default_factory=list)
    may_be_block: bool = True


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._frames = [_Frame(_Kind.BODY)]
        self._statement = _Statement()
        self._counted_to = 0
        self._line = 1

    def run(self) -> Iterator[Header]:
        while self._at < len(self._text):
            match self._frames[-1].kind:
                case _Kind.STRING:
                    self._string()
                case _Kind.HEREDOC:
                    self._heredoc()
                case _:
                    if (found := self._token()) is not None:
                        yield found

    def _token(self) -> Header | None:
        token = _TOKEN.match(self._text, self._at)
        assert token is not None
        begin, self._at = self._at, token.end()
        match token.lastgroup:
            case "open":
                return self._open(token[0], begin)
            case "close":
                self._close()
            case "quote":
                self._frames.append(_Frame(_Kind.STRING, begin=self._at))
            case "heredoc":
                self._statement.may_be_block = False
                self._frames.append(_Frame(_Kind.HEREDOC, mark=token["mark"]))
            case "newline":
                if self._frames[-1].kind is _Kind.BODY:
                    self._statement = _Statement()
            case "word":
                self._word(token[0])
            case "other":
                self._statement.may_be_block = False
        return None

    def _word(self, word: str) -> None:
        if self._frames[-1].kind is _Kind.BODY:
            self._statement.words.append(word)

    def _open(self, bracket: str, begin: int) -> Header | None:
        is_block = (
            bracket == "{"
            and self._frames[-1].kind is _Kind.BODY
            and self._statement.may_be_block
            and bool(self._statement.words)
        )
        words = tuple(self._statement.words)
        if self._frames[-1].kind is _Kind.BODY:
            self._statement = _Statement(may_be_block=is_block)
        if not is_block:
            self._frames.append(_Frame(_Kind.EXPRESSION))
            return None
        self._frames.append(_Frame(_Kind.BODY, words))
        path = tuple(frame.words for frame in self._frames if frame.words)
        return Header(path, self._line_at(begin))

    def _close(self) -> None:
        if len(self._frames) > 1:
            closed = self._frames.pop()
            if closed.kind is _Kind.BODY:
                self._statement = _Statement()

    def _string(self) -> None:
        literal = _LITERAL.match(self._text, self._at)
        assert literal is not None
        self._at = literal.end()
        if self._text.startswith(("${", "%{"), self._at):
            self._statement.may_be_block = False
            self._at += 2
            self._frames.append(_Frame(_Kind.TEMPLATE))
            return
        begin = self._frames.pop().begin
        if self._text.startswith('"', self._at):
            self._word(self._text[begin : self._at])
            self._at += 1
        elif self._at < len(self._text) and self._text[self._at] == "\\":
            self._at += 1

    def _heredoc(self) -> None:
        mark = re.escape(self._frames[-1].mark)
        special = re.compile(
            rf"(?P<end>^[ \t]*{mark}[ \t\r]*$)|(?P<escape>\$\$\{{|%%\{{)|(?P<open>[$%]\{{)", re.MULTILINE
        )
        found = special.search(self._text, self._at)
        self._at = len(self._text) if found is None else found.end()
        if found is None or found.lastgroup == "end":
            self._frames.pop()
        elif found.lastgroup == "open":
            self._frames.append(_Frame(_Kind.TEMPLATE))

    def _line_at(self, position: int) -> int:
        self._line += self._text.count("\n", self._counted_to, position)
        self._counted_to = position
        return self._line
