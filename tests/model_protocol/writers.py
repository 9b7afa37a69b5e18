"""Who writes to the store of the model: what the referee knows about each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackhold.testing.turns import TurnClock


@dataclass(slots=True, eq=False)
class Host:
    """A machine."""

    name: str
    clock: TurnClock
    frozen_until: int = 0
    """Nothing of it goes on before: a laptop asleep, a process stopped."""
    cut_off_until: int = 0
    """It reaches no store before."""


class Role(Enum):
    """What kind of writer it is."""

    RUN = "run"
    UNLOCKER = "unlocker"
    CANCELLER = "canceller"
    FOREIGN = "foreign"


@dataclass(slots=True, eq=False)
class Writer:
    """One process."""

    name: str
    host: Host
    role: Role
    lock_id: str | None = None
    """Known from its first write of the lock."""
    seen: set[int] = field(default_factory=set)
    """The writes whose result it has read, or made."""
    has_stamped: bool = False
    has_listed: bool = False
    has_stood_down: bool = False
    was_told: bool = False
    """It has read that the lock is not its own any more."""
    has_seen_stop: bool = False
    """It has been told to begin nothing new."""
    has_late_lock: bool = False
    """A late write of its lock has arrived since it last read that."""
    is_alive: bool = True
    ending: str = ""

    @property
    def is_foreign(self) -> bool:
        """Whether it is another tool."""
        return self.role is Role.FOREIGN
