"""Time, waiting and nonces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from stackhold.model.instant import BootInstant, Instant


class Clock(Protocol):
    """The machine's clocks. Deadlines and the lock's ttl count on `boot`, which laptop sleep does not stop."""

    def now(self) -> Instant:
        """Wall time, for people and for names; never compared with another machine's."""
        ...

    def boot(self) -> BootInstant:
        """The boot clock."""
        ...

    def boot_id(self) -> str:
        """Names this boot of this machine; empty where the system has no such thing."""
        ...

    def sleep(self, ms: int) -> None:
        """Block this thread for `ms` on the boot clock; may return early only if the process is ending."""
        ...

    def nonce(self) -> str:
        """32 hex characters that were never given before, anywhere."""
        ...
