"""The lock as it is stored in `lock.json`, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.model.ids import LockId
    from stackhold.model.instant import BootInstant, Instant, Millis


@dataclass(frozen=True, slots=True)
class Lock:
    """One acquisition of a stack's lock, as last written.

    The first four fields are the format shared with cdkd (JSON: owner, timestamp, expiresAt, operation); the
    rest is ours and absent (`None`) in a foreign lock.
    """

    owner: str
    """`user@hostname:pid` of the holding process."""
    timestamp: Instant
    """When the lock was taken, by the holder's clock (corrected by the store's when they differ by over 5 s)."""
    expires_at: Instant | None
    """By when the holder must renew. `None`: not a number, which counts as held for ever. For people and cdkd only."""
    operation: str
    id: LockId | None = None
    ttl: Millis | None = None
    """How long the holder may be silent."""
    serial: int = 0
    """Rises with each write of this acquisition, so that no two writes have equal bytes."""
    generation: int | None = None
    boot_id: str | None = None
    """The machine's boot, written on directory stores only, where it judges age better than the wall clock."""
    boot_ms: BootInstant | None = None
    """The boot clock at this write."""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Fields that we do not know, kept as they are."""

    @property
    def is_ours_in_kind(self) -> bool:
        """Whether stackhold wrote it: only such a lock has an id and a ttl."""
        return self.id is not None and self.ttl is not None
