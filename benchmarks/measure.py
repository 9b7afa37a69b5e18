"""Runs one command as a whole process and tells its wall time, CPU time and peak memory, by the kernel's account.

The measuring process must stay small: on Linux a child's peak starts at its parent's size.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. `wall` and `cpu` in seconds, `peak` in MB (10^6 bytes)."""

    wall: float
    cpu: float
    peak: float


def measure(command: Sequence[str], environment: Mapping[str, str]) -> Measured:
    """Run it to the end; raises `RuntimeError` with its output when it fails."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
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
