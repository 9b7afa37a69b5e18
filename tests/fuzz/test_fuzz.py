"""Each parser for a moment; `make faults` and `make fuzz` give them more. And: the fuzzer notices what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.fuzz.fuzzing import Fuzzing
from tests.fuzz.parsers import Parser, parsers

from stackhold.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 0.25


@pytest.mark.parametrize("name", parsers())
def test_a_parser_answers_any_input_as_it_says(name: str) -> None:
    fuzzing = Fuzzing(parsers()[name], seed=1)
    fuzzing.run(SECONDS)
    assert fuzzing.failures == {}
    assert fuzzing.tried > len(fuzzing.parser.seeds)


def fragile(data: bytes, _: Path) -> None:
    """Fails in its own way on a line that begins with a tab."""
    if data.startswith(b"\t") or b"\n\t" in data:
        raise ZeroDivisionError
    raise InputError("no")


def test_another_error_is_found_and_made_small() -> None:
    fuzzing = Fuzzing(Parser("fragile", fragile, (InputError,), (b"some\nlines of text\n" * 5,)), seed=1)
    fuzzing.run(SECONDS)
    [failure] = fuzzing.failures.values()
    assert failure.where.startswith("ZeroDivisionError")
    assert len(failure.data) <= 2
