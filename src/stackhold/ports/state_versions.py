"""The versions of one Terraform state, kept beside a stack's record: written once each, never replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.instant import Instant


@dataclass(frozen=True, slots=True)
class StateVersionEntry:
    """One version in a listing."""

    sequence: int
    """Counts from 1. Which one is current, the record says: a run that was refused may have left a later one."""
    modified: Instant
    """By the store's time."""
    size: int
    """Bytes."""


class StateVersions(Protocol):
    """Every version that was ever written of one state. Thread-safe."""

    def read(self, sequence: int) -> bytes:
        """One version; raises `InputError` when there is no such one, and `StoreError`."""
        ...

    def append(self, sequence: int, data: bytes) -> None:
        """Write a new version. The same bytes already there are as good.

        Raises `StoreConflict` when that number is taken by others, and `StoreError`.
        """
        ...

    def list(self) -> Sequence[StateVersionEntry]:
        """All versions, by number. Raises `StoreError`."""
        ...
