from __future__ import annotations

import io
import os
import pty
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackhold.cli.confirm import ask
from stackhold.cli.surroundings import Surroundings
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def terminal() -> Iterator[tuple[Surroundings, int]]:
    """A real terminal, and the end of it at which a person sits."""
    person, end = pty.openpty()
    with os.fdopen(end, "r+b", buffering=0) as raw:
        stream = io.TextIOWrapper(raw, write_through=True)
        yield Surroundings(environ={}, cwd=Path(), stdin=stream, stdout=stream, stderr=stream), person
        stream.detach()
    os.close(person)


@pytest.mark.parametrize(("typed", "answer"), [("y", True), ("YES", True), ("n", False), ("", False), ("sure", False)])
def test_only_a_clear_yes_is_yes(typed: str, answer: bool) -> None:
    with terminal() as (surroundings, person):
        os.write(person, f"{typed}\n".encode())
        assert ask(surroundings, "Go on?", yes=False) is answer


def test_a_run_that_is_over_answers_no_by_itself() -> None:
    with terminal() as (surroundings, _):
        assert not ask(surroundings, "Go on?", yes=False, is_over=lambda: True)


def test_yes_needs_nobody_and_nobody_needs_yes() -> None:
    nobody = Surroundings({}, Path(), io.StringIO(), io.StringIO(), io.StringIO())
    assert ask(nobody, "Go on?", yes=True)
    with pytest.raises(InputError, match=r"nobody can be asked here: Go on\?"):
        ask(nobody, "Go on?", yes=False)
