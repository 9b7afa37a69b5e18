"""The many ways to write a function: name, partial or full ARN, each with or without a qualifier."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FUNCTION: Final = re.compile(
    r"(?:(?:arn:[\w-]+:lambda:[a-z0-9-]+:\d{12}:|\d{12}:|[a-z0-9-]+-\d:\d{12}:)?function:)?"
    r"(?P<name>[A-Za-z0-9_-]+)(?::(?P<qualifier>\$LATEST(?:\.PUBLISHED)?|[A-Za-z0-9_-]+))?"
)


class FunctionName(NamedTuple):
    """A function and the version or alias that is meant; without one, the function itself."""

    name: str
    qualifier: str | None = None

    def params(self) -> dict[str, str]:
        """For calls that take both apart."""
        return {"FunctionName": self.name, **({"Qualifier": self.qualifier} if self.qualifier else {})}


def parse(text: str) -> FunctionName:
    """Take apart what a property holds; text of another shape is passed on for AWS to judge."""
    match = _FUNCTION.fullmatch(text)
    return FunctionName(match["name"], match["qualifier"]) if match else FunctionName(text)


def as_declared(seen: str, declared: str) -> str:
    """What AWS says, in the words of the template when both mean one function."""
    return declared if declared and parse(seen) == parse(declared) else seen
