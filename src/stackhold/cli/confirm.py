"""Asks a person, and refuses where nobody can answer.

The answer is waited for in short turns, so that a signal or the deadline ends the question as it ends everything
else in a run.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING

from stackhold.cli.printable import one_line
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.cli.surroundings import Surroundings

_TURN_SECONDS = 0.1


def ask(
    surroundings: Surroundings,
    question: str,
    *,
    yes: bool,
    instead: str = "--yes",
    is_over: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether the person says yes. True at once with `yes`; raises `InputError` where nobody can answer.

    `is_over` is looked at while waiting: once true, the answer is no.
    """
    if yes:
        return True
    if not surroundings.can_ask:
        raise InputError(f"nobody can be asked here: {question}", hint=f"Say it with {instead}.")
    surroundings.stderr.write(f"{one_line(question)} [y/N] ")
    surroundings.stderr.flush()
    while not is_over():
        ready, _, _ = select.select([surroundings.stdin], [], [], _TURN_SECONDS)
        if ready:
            return surroundings.stdin.readline().strip().lower() in ("y", "yes")
    surroundings.stderr.write("\n")
    return False
