"""The store of records and locks: objects with opaque versions, swapped only against the version one read.

A key is text with `/` between its parts (`stackhold/wide/us-east-1/lock.json`). An adapter makes no decision:
it says what the store answered. Two writes never have equal bytes (the callers see to that), so equal versions
mean the same write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.model.instant import Instant

Version = NewType("Version", str)
"""Opaque: an ETag as it came, or a digest. Compared for equality with another from the same store, nothing else."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as one read found it. Both times are the store's own, from that same answer."""

    data: bytes
    version: Version
    modified: Instant
    now: Instant


@dataclass(frozen=True, slots=True)
class Absent:
    """There is no such object. `now` is the store's time at that answer."""

    now: Instant


@dataclass(frozen=True, slots=True)
class Written:
    """A confirmed write. `now` is the store's time at its answer."""

    version: Version
    now: Instant


@dataclass(frozen=True, slots=True)
class Entry:
    """One object in a listing."""

    key: str
    modified: Instant
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What a store is, beside its methods."""

    url: str
    """As a user names it with `--state`: `file:.stackhold` or `s3://bucket`."""
    is_local: bool
    """True for a directory: locks carry the boot clock, and a holder's process may be on this very host."""


class Store(Protocol):
    """A directory or a bucket. Every method may raise `StoreUnreachable` or `StoreRefused`, and is thread-safe.

    A conditional method raises `StoreConflict` when the store refused the condition (412, 404, 409) and
    `StoreUnanswered` when a write was sent and not answered. Both are resolved by reading (spec 2).
    """

    @property
    def facts(self) -> StoreFacts:
        """What it is called, and whether it is a directory of this machine."""
        ...

    def read(self, key: str) -> Stored | Absent:
        """The object with its version and the store's time."""
        ...

    def write(self, key: str, data: bytes, *, expect: Version | None) -> Written:
        """Create if absent (`expect=None`) or replace if the object still is that version."""
        ...

    def delete(self, key: str, *, expect: Version) -> None:
        """Delete if the object still is that version."""
        ...

    def list(self, prefix: str) -> Iterator[Entry]:
        """Every object whose key starts with `prefix`, by key; a missing prefix lists nothing."""
        ...

    def prepare(self) -> None:
        """Make ready before the first lock: check that conditions are honoured where that is in doubt (spec 2)."""
        ...
