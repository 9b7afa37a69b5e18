"""Stands by to ask a child to stop, once, when this process is killed: nothing of it is left then to do so.

The kernel's own way (Linux) is one signal per *thread* of a dying parent that the child comes to belong to for a
moment, and a runtime that is interrupted twice lets go of everything at once, its state with it. So a small process in
a session of its own waits at a pipe: it is told whom to watch, and the end of the pipe is the end of this process.
"""

from __future__ import annotations

import os
import subprocess  # noqa: TID251  # starts nothing but the watcher
from contextlib import suppress
from typing import Final

_SHELL: Final = "/bin/sh"
_WATCH: Final = 'read -r pid || exit 0; read -r over && exit 0; kill -INT "$pid"'
_OVER: Final = b"over\n"
_PATIENCE_S: Final = 5.0


class Watch:
    """One watcher, for one child."""

    def __init__(self, process: subprocess.Popen[bytes], told_by: int) -> None:
        self._process = process
        self._is_dismissed = False
        self.told_by = told_by
        """Where the child writes its process id, in a line, before it becomes the runtime."""

    @classmethod
    def start(cls) -> Watch | None:
        """Stand by; None where the system has nobody who could."""
        asked, told_by = os.pipe()
        try:
            process = subprocess.Popen(
                [_SHELL, "-c", _WATCH],
                stdin=asked,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except (OSError, subprocess.SubprocessError):
            os.close(told_by)
            return None
        finally:
            os.close(asked)
        return cls(process, told_by)

    def dismiss(self) -> None:
        """From now on the child is asked nothing, whatever becomes of this process."""
        if not self._is_dismissed:
            self._is_dismissed = True
            with suppress(OSError):
                os.write(self.told_by, _OVER)
            os.close(self.told_by)

    def end(self) -> None:
        """The child has ended, or never began."""
        self.dismiss()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
