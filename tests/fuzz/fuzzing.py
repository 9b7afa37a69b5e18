"""Tries mutated inputs on one parser, for a time, and keeps each kind of failure once, made small.

An input that is answered in a new way (a new kind of complaint, numbers and quoted words aside) is mutated further:
that leads from the outer checks to the inner ones without any measuring inside the code. Everything follows from the
seed. What takes longer than `LIMIT_SECONDS` of processor time is a failure too.
"""

from __future__ import annotations

import contextlib
import random
import re
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.fuzz.mutate import mutated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fuzz.parsers import Parser

LIMIT_SECONDS: Final = 2.0
_MOST_KEPT: Final = 1_000
_LONGEST_KEPT: Final = 8_000
"""Long inputs are tried, and not mutated further: what is slow to read would be nearly all that is tried."""
_FURTHER: Final = 0.7
"""How often what was kept is mutated, and not an input to begin with."""
_TAKEN_KEPT: Final = 0.05
_SMALLER_TRIES: Final = 400
_SMALLER_SECONDS: Final = 5.0
_LESS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[^\x20-\x7e]+|[0-9]+")


class TooSlow(BaseException):
    """An input took more than its time; no `Exception`, so that no parser takes it for its own."""


@dataclass(frozen=True)
class Failure:
    """An input that was answered with something else than the parser may say."""

    parser: str
    data: bytes
    what: str
    where: str


@dataclass
class Fuzzing:
    """One parser being fuzzed."""

    parser: Parser
    seed: int
    tried: int = 0
    taken: int = 0
    failures: dict[str, Failure] = field(default_factory=dict)

    def run(self, seconds: float) -> None:
        """Go on until so much time has passed."""
        chance = random.Random(f"{self.seed} {self.parser.name}")
        kept, known = list(self.parser.seeds), set[str]()
        until = time.monotonic() + seconds
        with tempfile.TemporaryDirectory(prefix="stackhold-fuzz-") as name, _bounded():
            folder = Path(name)
            for data in self.parser.seeds:
                self._try(data, folder)
            while time.monotonic() < until:
                data = mutated(chance.choice(kept if chance.random() < _FURTHER else self.parser.seeds), kept, chance)
                answer = self._try(data, folder)
                if answer not in known or (not answer and chance.random() < _TAKEN_KEPT):
                    known.add(answer)
                    if len(kept) < _MOST_KEPT and len(data) < _LONGEST_KEPT:
                        kept.append(data)

    def _try(self, data: bytes, folder: Path) -> str:
        """The kind of the answer; a failure is kept."""
        self.tried += 1
        answer, failure = judge(self.parser, data, folder)
        if failure is None:
            self.taken += answer == ""
        elif failure.where not in self.failures:
            self.failures[failure.where] = _smaller(self.parser, failure, folder)
        return answer


def judge(parser: Parser, data: bytes, folder: Path) -> tuple[str, Failure | None]:
    """The kind of the answer to one input, empty when it was taken; and the failure that it is, if it is one."""
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
        try:
            parser.parse(data, folder)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except parser.refuses as error:
        return _LESS.sub("_", f"{type(error).__name__} {error}"), None
    except (Exception, TooSlow) as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if "stackhold" in frame.filename]
        last = own[-1] if own else None
        where = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}" if last else type(error).__name__
        if isinstance(error, TooSlow):
            where = f"TooSlow {_size_of(data)}"
        what = "".join(traceback.format_exception(error, limit=-6))
        return where, Failure(parser.name, data, what, where)
    return "", None


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow(f"more than {LIMIT_SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


def play_one(parser: Parser, data: bytes) -> Failure | None:
    """Try one input."""
    with tempfile.TemporaryDirectory(prefix="stackhold-fuzz-") as folder, _bounded():
        return judge(parser, data, Path(folder))[1]


def _smaller(parser: Parser, failure: Failure, folder: Path) -> Failure:
    """The same failure from a shorter input."""
    if failure.where.startswith("TooSlow"):
        return failure
    part, tries, until = max(1, len(failure.data) // 2), 0, time.monotonic() + _SMALLER_SECONDS
    while part and tries < _SMALLER_TRIES and time.monotonic() < until:
        at = 0
        while at < len(failure.data) and tries < _SMALLER_TRIES and time.monotonic() < until:
            tries += 1
            shorter = failure.data[:at] + failure.data[at + part :]
            found = judge(parser, shorter, folder)[1]
            if found is not None and found.where == failure.where:
                failure = found
            else:
                at += part
        part //= 2
    return failure


def _size_of(data: bytes) -> str:
    return f"for {len(data).bit_length()} bits of length"
