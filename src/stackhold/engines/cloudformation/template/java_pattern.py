"""Java's regular expressions in Python's words: what `AllowedPattern` is written in.

Most of both languages is the same. What differs and can be said is translated; what cannot is an error, never a
guess.
"""

from __future__ import annotations

import re
import warnings
from typing import Final

_CLASSES: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": " \\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": " \\t\\n\\x0b\\f\\r",
}
_TOKEN: Final = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\p\{(?P<cls>\w+)\}|\\P\{(?P<not_cls>\w+)\}|\\k<(?P<back>\w+)>"
    r"|\(\?<(?P<group>[A-Za-z]\w*)>|(?P<escape>\\.)|(?P<other>.)",
    re.DOTALL,
)


def java_pattern(pattern: str) -> re.Pattern[str]:
    """The compiled pattern; match it against the whole value. Raises `ValueError` when it cannot be translated."""
    translated: list[str] = []
    inside = False
    for found in _TOKEN.finditer(pattern):
        other = found["other"]
        if other == "[":
            inside = True
        elif other == "]":
            inside = False
        translated.append(_translate(found, inside=inside))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile("".join(translated), re.ASCII)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None


def _translate(found: re.Match[str], *, inside: bool) -> str:
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["back"] is not None:
        return f"(?P={found['back']})"
    if found["group"] is not None:
        return f"(?P<{found['group']}>"
    if found["cls"] is not None:
        members = _members(found["cls"])
        return members if inside else f"[{members}]"
    if found["not_cls"] is not None:
        if inside:
            raise ValueError("\\P inside brackets")
        return f"[^{_members(found['not_cls'])}]"
    if found["escape"] == "\\h":
        return " \\t\\xa0" if inside else "[ \\t\\xa0]"
    if found["escape"] == "\\z":
        return "\\Z"
    return found[0]


def _members(name: str) -> str:
    if name not in _CLASSES:
        raise ValueError(f"\\p{{{name}}}")
    return _CLASSES[name]
