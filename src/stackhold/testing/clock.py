"""A clock for tests: it stands still until told to move, or jumps to the next wake-up when everybody sleeps.

With `jumps_when=n` (1 by default, right for one thread) the clock jumps to the earliest wake-up as soon as n
threads sleep in it; with 0 it moves only by `advance`. No test that uses it ever waits for real time. Wall and
boot clock start at different places, neither at zero, and can be moved apart with `set_wall`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING

from stackhold.model.instant import BootInstant, Instant

if TYPE_CHECKING:
    from stackhold.ports.clock import Clock

START = Instant(1_710_835_200_000)
"""Where wall time starts unless told otherwise: 2024-03-19T08:00:00Z."""
BOOT_START = BootInstant(86_461_007)
_REAL_SECONDS = 30.0


class FakeClock:
    """A `Clock` that tests move. Thread-safe."""

    def __init__(
        self,
        start: Instant = START,
        *,
        boot_start: BootInstant = BOOT_START,
        jumps_when: int = 1,
        boot_id: str = "b0075eed-0000-4000-8000-000000000001",
        seed: str | None = None,
    ) -> None:
        """`seed` makes nonces repeatable; two clocks with one seed give the same ones."""
        self._changed = threading.Condition()
        self._wall_offset = start - boot_start
        self._boot: int = boot_start
        self._jumps_when = jumps_when
        self._boot_id = boot_id
        self._seed = os.urandom(8).hex() if seed is None else seed
        self._nonces = 0
        self._wake_ups: list[int] = []

    def now(self) -> Instant:
        """Wall time."""
        with self._changed:
            return Instant(self._boot + self._wall_offset)

    def boot(self) -> BootInstant:
        """The boot clock."""
        with self._changed:
            return BootInstant(self._boot)

    def boot_id(self) -> str:
        """The name of this boot."""
        return self._boot_id

    def sleep(self, ms: int) -> None:
        """Block until the clock has moved by `ms`, by jump or by `advance`."""
        with self._changed:
            wake_up = self._boot + max(0, ms)
            self._wake_ups.append(wake_up)
            self._changed.notify_all()
            try:
                while self._boot < wake_up:
                    if not self._jump():
                        self._changed.wait()
            finally:
                self._wake_ups.remove(wake_up)
                self._changed.notify_all()

    def nonce(self) -> str:
        """32 hex characters, new each time."""
        with self._changed:
            self._nonces += 1
            return hashlib.sha256(f"{self._seed}:{self._nonces}".encode()).hexdigest()[:32]

    def advance(self, ms: int) -> None:
        """Let `ms` pass on both clocks, waking who has slept long enough."""
        if ms < 0:
            raise ValueError("time does not run backwards; set_wall moves the wall clock alone")
        with self._changed:
            self._boot += ms
            self._changed.notify_all()

    def set_wall(self, at: Instant) -> None:
        """Set the wall clock, either way, as an administrator or NTP would; the boot clock stays."""
        with self._changed:
            self._wall_offset = at - self._boot

    def reboot(self, boot_id: str) -> None:
        """Start another boot: a new name, and the boot clock begins low again. Wall time goes on."""
        with self._changed:
            wall = self._boot + self._wall_offset
            self._boot = 1_009
            self._wall_offset = wall - self._boot
            self._boot_id = boot_id

    def wait_sleepers(self, count: int) -> None:
        """Block until `count` threads sleep in this clock; raises `TimeoutError` when that never happens."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._asleep()) >= count, timeout=_REAL_SECONDS):
                raise TimeoutError(f"{len(self._asleep())} threads sleep, {count} were expected")

    def _asleep(self) -> list[int]:
        return [wake_up for wake_up in self._wake_ups if wake_up > self._boot]

    def _jump(self) -> bool:
        asleep = self._asleep()
        if not self._jumps_when or len(asleep) < self._jumps_when:
            return False
        self._boot = min(asleep)
        self._changed.notify_all()
        return True


if TYPE_CHECKING:
    _: type[Clock] = FakeClock
