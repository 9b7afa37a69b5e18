"""Spans of time as people write them: `300`, `90s`, `5m`, `2h`, `1h30m`, `250ms`.

A bare number counts seconds. What is no duration raises `ValueError` with a sentence; who asked adds the source.
"""

from __future__ import annotations

import re

from stackhold.model.instant import HOUR, MINUTE, SECOND, Millis

_UNITS = {"ms": 1, "s": SECOND, "m": MINUTE, "h": HOUR}
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
_BARE = re.compile(_NUMBER)
_PART = re.compile(rf"({_NUMBER})(ms|s|m|h)")


def parse_duration(text: str) -> Millis:
    """The span that a text means; raises `ValueError`."""
    wanted = text.strip().lower()
    if _BARE.fullmatch(wanted):
        return Millis(round(float(wanted) * SECOND))
    parts = _PART.findall(wanted)
    if not parts or "".join(number + unit for number, unit in parts) != wanted:
        raise ValueError(f"{text!r} is no duration; write seconds or a unit, such as 300, 90s, 5m or 2h")
    return Millis(sum(round(float(number) * _UNITS[unit]) for number, unit in parts))


def flag_text(ms: int) -> str:
    """The shortest text that `parse_duration` reads back as this span."""
    for unit in ("h", "m", "s"):
        if ms and ms % _UNITS[unit] == 0:
            return f"{ms // _UNITS[unit]}{unit}"
    return f"{ms}ms" if ms else "0"
