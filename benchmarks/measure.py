"""Runs one command as a whole process and tells its wall time, CPU time and peak memory, by the kernel's account.

The measuring process must stay small: on Linux a child's peak starts at its parent's size. And the kernel's account
takes the largest of a process and all that it has waited for, so `measure_apart` looks at the process itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. `wall` and `cpu` in seconds, `peak` in MB (10^6 bytes)."""

    wall: float
    cpu: float
    peak: float


def measure(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """Run it to the end; raises `RuntimeError` with its output when it fails."""
    started = time.perf_counter()
    return _finished(_start(command, environment, folder), command, started)


def measure_apart(command: Sequence[str], environment: Mapping[str, str], *, folder: Path | None = None) -> Measured:
    """The same, but `peak` is that of the process alone, without those that it starts (Linux; else as `measure`)."""
    started = time.perf_counter()
    process = _start(command, environment, folder)
    peak = _Peak(process.pid)
    measured = _finished(process, command, started)
    found = peak.stop()
    return replace(measured, peak=found) if found else measured


class _Peak:
    """Follows the peak of one process, which is gone with it."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._ended = threading.Event()
        self._peak = 0.0
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self) -> float:
        """The peak in MB; 0 where it cannot be seen."""
        self._ended.set()
        self._thread.join()
        return self._peak

    def _follow(self) -> None:
        while not self._ended.wait(_LOOK_S):
            with suppress(OSError):
                for line in self._status.read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        self._peak = int(line.split()[1]) * 1024 / 1e6


def _start(command: Sequence[str], environment: Mapping[str, str], folder: Path | None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, **environment},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finished(process: subprocess.Popen[str], command: Sequence[str], started: float) -> Measured:
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} exited {process.returncode}:\n{output[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(wall=wall, cpu=usage.ru_utime + usage.ru_stime, peak=usage.ru_maxrss * unit / 1e6)
