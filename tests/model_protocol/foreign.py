"""Another tool that shares the bucket, as far as its writing goes: no renewals, no fencing, little care.

It takes an expired lock over by deleting and creating, by its own clock; keeps none of our fields; saves first
without a condition and then over its own version; and deletes whatever lock is there when it is done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.model_protocol.cloud import Verb

from stackhold.errors import OutcomeUnknown, StoreConflict, StoreError
from stackhold.model.instant import MINUTE
from stackhold.ports.store import Absent, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.model_protocol.client import CloudClient
    from tests.model_protocol.store import Depot, ModelStore
    from tests.model_protocol.writers import Writer

    from stackhold.ports.store import Version
    from stackhold.runs.layout import Keys

_FIELDS = ("version", "region", "stackName", "resources", "outputs", "lastModified")


@dataclass(slots=True)
class ForeignTool:
    """One deploy of the other tool."""

    depot: Depot
    store: ModelStore
    writer: Writer
    keys: Keys
    client: CloudClient
    sizes: Mapping[str, int]
    _version: Version | None = None

    def deploy(self) -> None:
        """Lock, read, change, save, release."""
        try:
            if not self._has_locked():
                return
            found = self.store.read(self.keys.record)
            self._change(self._record(found))
            self.store.read(self.keys.lock)
            self.depot.force(self.writer, self.keys.lock, None)
        except (StoreError, OutcomeUnknown):
            return

    def _has_locked(self) -> bool:
        for _ in range(2):
            try:
                self.store.write(self.keys.lock, self._lock(), expect=None)
            except StoreConflict:
                pass
            else:
                return True
            found = self.store.read(self.keys.lock)
            if isinstance(found, Stored):
                if json.loads(found.data)["expiresAt"] >= self.writer.host.clock.now():
                    return False
                self.depot.force(self.writer, self.keys.lock, None)
        return False

    def _lock(self) -> bytes:
        now = self.writer.host.clock.now()
        lock = {"owner": self.writer.name, "timestamp": now, "expiresAt": now + 30 * MINUTE, "operation": "deploy"}
        return json.dumps(lock).encode()

    def _record(self, found: Stored | Absent) -> dict[str, Any]:
        document: dict[str, Any] = {
            "version": 8,
            "region": self.keys.region,
            "stackName": self.keys.stack,
            "resources": {},
            "outputs": {},
        }
        if isinstance(found, Stored):
            document |= {name: value for name, value in json.loads(found.data).items() if name in _FIELDS}
        return document

    def _change(self, record: dict[str, Any]) -> None:
        resources = record["resources"]
        for name, size in self.sizes.items():
            if name not in resources:
                physical_id = f"{name}-{self.writer.name}"
                self.client.call(Verb.CREATE, physical_id)
                resources[name] = {
                    "physicalId": physical_id,
                    "resourceType": "Model::Thing",
                    "properties": {"size": size},
                    "attributes": {},
                }
                self._save(record)
        for name in [name for name in resources if name not in self.sizes]:
            self.client.call(Verb.DELETE, resources.pop(name)["physicalId"])
            self._save(record)

    def _save(self, record: dict[str, Any]) -> None:
        record["lastModified"] = self.writer.host.clock.now()
        data = json.dumps(record).encode()
        if self._version is None:
            self.store.read(self.keys.record)
            self.depot.force(self.writer, self.keys.record, data)
            found = self.depot.inner.read(self.keys.record)
            assert isinstance(found, Stored)
            self._version = found.version
        else:
            self._version = self.store.write(self.keys.record, data, expect=self._version).version
