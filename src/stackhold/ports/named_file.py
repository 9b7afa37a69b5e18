"""Reads a file that a user names, and nothing that is no file.

A pipe may have no writer and a device no end: only regular files are read, and never more than a byte over the limit.
Who asked says what the file was to be; the reason why it cannot be read is in `Unreadable`.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, os.strerror(errno.EISDIR)),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)


class Unreadable(Exception):
    """A named file cannot be read; the text says why, without its name."""


def read_named_file(path: Path, *, limit: int) -> bytes:
    """A regular file's bytes; raises `Unreadable` for anything else, and for more than `limit` bytes."""
    try:
        _check_kind(os.stat(path))
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            _check_kind(os.fstat(handle))
            data = _read(handle, limit + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    except ValueError as error:
        raise Unreadable("its name is no path") from error
    if len(data) > limit:
        raise Unreadable(f"it has more than {limit:,} bytes")
    return data


def _check_kind(facts: os.stat_result) -> None:
    if stat.S_ISREG(facts.st_mode):
        return
    raise Unreadable(next((said for is_kind, said in _KINDS if is_kind(facts.st_mode)), "it is a device, not a file"))


def _read(handle: int, most: int) -> bytes:
    parts: list[bytes] = []
    left = most
    while left and (part := os.read(handle, min(left, 1 << 20))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
