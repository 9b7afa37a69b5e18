"""`stackhold` and `python -m stackhold`: hand this process's world to the command line and leave with its code.

Signals are answered before anything slow is imported. Leaving is abrupt on purpose: a call that hangs in a thread must
not hold a finished run back.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
"""As type checkers take it; `typing` itself takes a while to import."""
if TYPE_CHECKING:
    from typing import NoReturn

_ALLOCATIONS = 10_000
"""After how many new objects garbage is looked for: what is imported stays, and looking through it again takes time."""


def main() -> NoReturn:
    """Run the command line of this process."""
    _fill_closed_descriptors()
    from stackhold.cli import interruption

    interruption.install()
    import contextlib
    import gc
    import io
    from pathlib import Path

    gc.set_threshold(_ALLOCATIONS)
    from stackhold.cli.app import run
    from stackhold.cli.surroundings import Surroundings
    from stackhold.cli.wiring import process_environment
    from stackhold.model.exit_codes import ExitCode

    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        cwd = Path.cwd()
    except OSError:
        sys.stderr.write("stackhold: the current folder is gone; nothing was changed\n")
        sys.stderr.flush()
        os._exit(ExitCode.FAILED)
    surroundings = Surroundings(
        environ=process_environment(), cwd=cwd, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr
    )
    code = run(sys.argv[1:], surroundings)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _fill_closed_descriptors() -> None:
    """Stand in for streams that were closed before we began, so that no file of ours gets their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    main()
