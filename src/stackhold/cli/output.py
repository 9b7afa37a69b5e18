"""Where a command's answer goes: text for people on stdout, or one JSON document there and the text on stderr."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from stackhold.cli.paint import Paint
from stackhold.cli.printable import shown
from stackhold.errors import StackholdError

if TYPE_CHECKING:
    from stackhold.cli.surroundings import Surroundings
    from stackhold.model.values import JsonMap


@dataclass(frozen=True, slots=True)
class Output:
    """One command's output. Every command gives exactly one document with `--json`, however it ends."""

    surroundings: Surroundings
    as_json: bool

    @property
    def human(self) -> TextIO:
        """The stream for people's text."""
        return self.surroundings.stderr if self.as_json else self.surroundings.stdout

    def say(self, text: str) -> None:
        """Text for people, a newline added when there is none."""
        self._show(self.human, text if text.endswith("\n") or not text else text + "\n")

    def warn(self, text: str) -> None:
        """Text that people must see even when the answer goes into a pipe."""
        self._show(self.surroundings.stderr, text + "\n")

    def answer(self, document: JsonMap, text: str) -> None:
        """The command's answer: the document with `--json`, the text without."""
        if self.as_json:
            _write(self.surroundings.stdout, json_text(document))
        else:
            self.say(text)

    def _show(self, stream: TextIO, text: str) -> None:
        """Write for people: whatever comes from outside, nothing but our colours acts on the terminal."""
        _write(stream, shown(text, paint=Paint(self.surroundings.color_on(stream))))


def _write(stream: TextIO, text: str) -> None:
    """Write at once. A reader that has gone away is no failure of the command: what it did, it did."""
    try:
        with contextlib.suppress(BrokenPipeError):
            stream.write(text)
            stream.flush()
    except OSError as error:
        raise StackholdError(
            f"the output cannot be written: {error.strerror or error}",
            hint="What was done before that is recorded.",
        ) from error


def json_text(document: JsonMap) -> str:
    """A document as text; what JSON does not know is shown as text."""
    return json.dumps(document, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, frozenset | set):
        return sorted(value, key=str)
    return str(value)
