"""Reads a file that another process is still writing, line by line.

No more is held of it than one line and one chunk; a line that is longer than any that a runtime prints is cut.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MIB: Final = 1 << 20
LONGEST_LINE: Final = 16 * _MIB
_MOST_PER_LOOK: Final = 4 * _MIB
_CHUNK: Final = 64 * 1024


class Tail:
    """Reads a growing file by lines, holding no more of it than one line and one chunk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._unfinished = bytearray()
        self._ready: deque[str] = deque()

    def more(self) -> Iterator[str]:
        """The complete lines that came since the last call, of at most the next few MiB."""
        yield from self._read(_MOST_PER_LOOK)

    def rest(self) -> Iterator[str]:
        """All that is left, with an unfinished last line."""
        yield from self._read(sys.maxsize)
        if self._unfinished:
            yield self._finish()

    def _read(self, most: int) -> Iterator[str]:
        with self._path.open("rb", buffering=0) as file:
            end = min(file.seek(0, os.SEEK_END), self._offset + most)
            while self._ready or self._offset < end:
                while self._ready:
                    yield self._ready.popleft()
                file.seek(self._offset)
                chunk = file.read(min(_CHUNK, max(0, end - self._offset)))
                self._offset += len(chunk)
                self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        *complete, unfinished = chunk.split(b"\n")
        for piece in complete:
            self._extend(piece)
            self._ready.append(self._finish())
        self._extend(unfinished)

    def _extend(self, piece: bytes) -> None:
        self._unfinished += piece[: LONGEST_LINE - len(self._unfinished)]

    def _finish(self) -> str:
        line = self._unfinished.decode(errors="replace")
        self._unfinished.clear()
        return line
