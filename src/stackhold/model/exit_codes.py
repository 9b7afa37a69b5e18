"""The exit codes of every command (spec 1). `runner run` alone has its own."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means."""

    DONE = 0
    """Everything asked for was done. `diff` without `--fail` exits so whatever it finds."""
    FAILED = 1
    """The command failed; a failed deploy was rolled back in full; `drift` or `diff --fail` found something."""
    PARTLY = 2
    """Done in part: something failed, was skipped or left in place; the record is kept and a second run picks it up.
    `drift` could not read everything."""
    USAGE = 64
    """The command line cannot be understood."""
    DEADLINE = 124
    """The deadline passed."""
    INTERRUPTED = 130
    """Stopped by SIGINT, or at once by a second signal."""
    TERMINATED = 143
    """Stopped by SIGTERM, or by `stackhold cancel`."""
