from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.cli.output import Output
from stackhold.cli.paint import Paint
from stackhold.cli.printable import is_text, lines_text, one_line, printable, shown
from stackhold.cli.surroundings import Surroundings

ON = Paint(on=True)
COLOUR = re.compile(r"\x1b\[\d+m")
MOVES = "\x1b[2J\x1b[1;1Hstackhold: all is well\r\x07\x9b31m\u202e"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(st.lists(st.text()))
def test_lines_are_as_many_as_they_were_and_hold_nothing_that_acts(lines: list[str]) -> None:
    said = lines_text(lines)
    assert said.split("\n") == [one_line(line) for line in lines] or lines == []
    assert all(char == "\n" or char.isprintable() for char in said)


@given(st.text())
def test_what_is_printable_already_stays_as_it_is(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert one_line(one_line(text)) == one_line(text)


def test_only_our_own_colours_pass_and_only_where_there_are_colours() -> None:
    line = f"{ON('red', 'stateful')} {MOVES}"
    for text in (lines_text([line], paint=ON), shown(line, paint=ON)):
        assert text.startswith("\x1b[31mstateful\x1b[0m ")
        assert "\x1b" not in COLOUR.sub("", text)
        assert "\\x1b[2J" in text
    assert "\x1b" not in shown(line, paint=Paint())
    assert one_line("a\x1b]0;title\x07\n\tb\u2028") == "a\\x1b]0;title\\x07\\n\\tb\\u2028"


@pytest.mark.parametrize("as_json", [True, False])
def test_whatever_a_command_says_is_checked_at_the_stream(as_json: bool) -> None:
    out, err = _Terminal(), _Terminal()
    output = Output(Surroundings(environ={}, cwd=Path(), stdin=io.StringIO(), stdout=out, stderr=err), as_json=as_json)
    output.say(MOVES)
    output.warn(MOVES)
    output.answer({}, MOVES)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out.getvalue() + err.getvalue())


def test_bytes_that_were_no_text_are_none() -> None:
    assert is_text("Grüße")
    assert not is_text(b"a\xff".decode("utf-8", "surrogateescape"))
