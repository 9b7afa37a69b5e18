"""Keeps the versions of a Terraform state in a stack's store, one object each, under a number of its own.

A version is created if its number is free and never written again, so that two runs cannot overwrite each other's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackhold.errors import InputError, StoreConflict
from stackhold.ports.state_versions import StateVersionEntry
from stackhold.ports.store import Absent, Written
from stackhold.runs import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.ports.clock import Clock
    from stackhold.ports.state_versions import StateVersions
    from stackhold.ports.store import Store
    from stackhold.runs.layout import Keys

_NAME = re.compile(r"(\d{8,18})\.tfstate", re.ASCII)


class StoreStateVersions:
    """`StateVersions` in a store."""

    def __init__(self, store: Store, keys: Keys, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock

    def read(self, sequence: int) -> bytes:
        """One version."""
        found = self._store.read(self._keys.state_version(sequence))
        if isinstance(found, Absent):
            raise InputError(
                f"{self._keys.stack} ({self._keys.region}) has no state version {sequence}",
                hint=f"Its versions are under {self._keys.state_versions} in {self._store.facts.url}.",
            )
        return found.data

    def append(self, sequence: int, data: bytes) -> None:
        """Write a version if its number is free."""
        key = self._keys.state_version(sequence)
        answer = resolve.write(self._store, key, data, expect=None, clock=self._clock)
        if not isinstance(answer, Written):
            raise StoreConflict(f"{key} is there already, with another state", key=key)

    def list(self) -> Sequence[StateVersionEntry]:
        """All versions, by number."""
        found: list[StateVersionEntry] = []
        for entry in self._store.list(self._keys.state_versions):
            name = _NAME.fullmatch(entry.key.removeprefix(self._keys.state_versions))
            if name is not None:
                found.append(StateVersionEntry(int(name[1]), entry.modified, entry.size))
        return sorted(found, key=lambda entry: entry.sequence)


if TYPE_CHECKING:
    _: type[StateVersions] = StoreStateVersions
