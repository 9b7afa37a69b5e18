"""Text from outside made fit for a terminal: what it says is shown, what it would do is not.

A record, a lock, an answer of the cloud and a template may hold anything. Every line for people is made by
`lines_text` or `one_line`, so that a value can neither move a cursor nor begin a line that looks like ours; `shown` is
the last check before a stream. JSON for programs does not come here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackhold.cli.paint import CODES, PLAIN, RESET, Paint

if TYPE_CHECKING:
    from collections.abc import Iterable

_OURS = re.compile(rf"(\x1b\[(?:{'|'.join([RESET, *CODES.values()])})m)")


def is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: bytes that were none, or half of a surrogate pair, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """The text with every control character but newline and tab made visible."""
    return text if text.isprintable() else "".join(map(_visible, text))


def one_line(text: str) -> str:
    """The text on one line: newlines and tabs are made visible too."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def lines_text(lines: Iterable[str], *, paint: Paint = PLAIN) -> str:
    """Lines as text, each one line whatever is in it; only our own colours pass, and these only when painting is on."""
    return "\n".join(_pass_colours(line, paint).replace("\n", "\\n").replace("\t", "\\t") for line in lines)


def shown(text: str, *, paint: Paint) -> str:
    """Finished text for people as it may go to a stream."""
    return _pass_colours(text, paint)


def _pass_colours(text: str, paint: Paint) -> str:
    if not paint.on:
        return printable(text)
    return "".join(part if at % 2 else printable(part) for at, part in enumerate(_OURS.split(text)))


def _visible(char: str) -> str:
    if char in "\n\t" or char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
