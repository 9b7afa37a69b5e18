"""The machine's own clocks, behind the `Clock` port.

The boot clock is the one that laptop sleep does not stop: `CLOCK_BOOTTIME` on Linux, the monotonic clock
elsewhere (macOS counts sleep in it). Nobody else in the package reads a clock or takes randomness.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stackhold.model.instant import BootInstant, Instant

if TYPE_CHECKING:
    from stackhold.ports.clock import Clock

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_SLICE_MS = 1000
_NS = 1_000_000


class SystemClock:
    """The real thing. Holds no state but the boot's name, read once."""

    def __init__(self) -> None:
        self._boot_id: str | None = None

    def now(self) -> Instant:
        """Wall time."""
        return Instant(time.time_ns() // _NS)

    def boot(self) -> BootInstant:
        """The boot clock."""
        return BootInstant(time.clock_gettime_ns(_BOOT_CLOCK) // _NS)

    def boot_id(self) -> str:
        """The kernel's random name for this boot; empty where there is none."""
        if self._boot_id is None:
            text = ""
            with contextlib.suppress(OSError):
                text = _BOOT_ID.read_text(encoding="ascii").strip()
            self._boot_id = text
        return self._boot_id

    def sleep(self, ms: int) -> None:
        """Block for `ms` on the boot clock.

        In slices: the system's sleep counts on a clock that stops while the machine sleeps, so one long sleep
        would end too late.
        """
        until = self.boot() + ms
        while (left := until - self.boot()) > 0:
            time.sleep(min(left, _SLICE_MS) / 1000)

    def nonce(self) -> str:
        """32 hex characters from the system's randomness."""
        return os.urandom(16).hex()


if TYPE_CHECKING:
    _: type[Clock] = SystemClock
