"""How one run behaves: its two clocks, its grace, and the rhythm of its lock.

The values were chosen by whoever started the run; the defaults are those of the product. Tests choose quicker ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from stackhold.model.instant import MINUTE, SECOND, Millis, Span, words

DEFAULT_DEADLINE = Span(Millis(3600 * SECOND))
FIRST_POLL_MS = 200
LONGEST_POLL_MS = 5 * SECOND


@dataclass(frozen=True, slots=True)
class RetryWait:
    """Try a few more times, a fixed pause apart, then give up."""

    attempts: int = 3
    pause_ms: int = 2 * SECOND

    @property
    def span(self) -> Span:
        """How long that can take in all; never configured."""
        return Span(Millis(self.attempts * self.pause_ms))

    def __str__(self) -> str:
        return f"{self.attempts} more tries, {words(self.pause_ms)} apart"


@dataclass(frozen=True, slots=True)
class FixedWait:
    """Wait up to a span, polling after 0.2 s and doubling to 5 s. Zero: fail at once on a held lock."""

    ms: int
    source: str = ""
    """How it was set (`--lock-timeout`, a file); empty for the built-in default."""

    @property
    def span(self) -> Span:
        """How long that can take in all."""
        return Span(Millis(self.ms), self.source)

    def __str__(self) -> str:
        return words(self.ms) if self.ms else "no wait"


LockWait = RetryWait | FixedWait


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of one guarded run, in milliseconds."""

    deadline: Span = DEFAULT_DEADLINE
    lock_wait: LockWait = RetryWait()
    grace_ms: int = 10 * MINUTE
    """From the stop to the end of the process; the margin at its end belongs to saving and releasing."""
    ttl_ms: int = 30 * MINUTE
    """How long the holder may be silent."""
    renew_every_ms: int = 2 * MINUTE
    stop_poll_ms: int = 15 * SECOND
    """How long a run lasts before it looks for a stop request, and how often it then does."""
    unlock_command: str = "stackhold force-unlock"
    """The exact command that clears this stack's lock, with every flag that decides which lock it means."""
