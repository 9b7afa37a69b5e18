"""Locks, records and runs put into a store by hand, for tests of what reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.model.codec import encode_lock, encode_record, encode_run_log
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant, Millis
from stackhold.model.lock import Lock
from stackhold.model.record import ResourceRecord, StateRecord
from stackhold.model.run import RunIdentity
from stackhold.model.run_log import RunLog
from stackhold.ports.store import Stored
from stackhold.runs.layout import Keys

if TYPE_CHECKING:
    from stackhold.ports.clock import Clock
    from stackhold.ports.store import Store

TTL = Millis(60_000)
OWNER = "maria@ci-7:4711"
LOCK_ID = LockId("0123456789abcdef0123456789abcdef")
RUN = RunId("20240319T080000000Z-0123abcd")


@dataclass
class LockScene:
    """One store and its clock."""

    store: Store
    clock: Clock
    keys: Keys = field(default_factory=lambda: keys("payments"))

    def put(self, key: str, data: bytes) -> None:
        """Write whatever is there now."""
        found = self.store.read(key)
        self.store.write(key, data, expect=found.version if isinstance(found, Stored) else None)

    def lock(self, *, owner: str = OWNER, lock_id: LockId | None = LOCK_ID, serial: int = 1) -> Lock:
        """Put a lock that was renewed just now; without an id it is another tool's."""
        now = self.clock.now()
        lock = Lock(
            owner=owner,
            timestamp=Instant(now - 10_000),
            expires_at=Instant(now + TTL),
            operation="deploy",
            id=lock_id,
            ttl=TTL if lock_id else None,
            serial=serial,
            boot_id=self.clock.boot_id() if lock_id else None,
            boot_ms=self.clock.boot() if lock_id else None,
        )
        self.put(self.keys.lock, encode_lock(lock))
        return lock

    def record(self, at: Keys | None = None, *, resources: int = 2) -> StateRecord:
        """Put a record with so many queues."""
        where = at or self.keys
        record = StateRecord(
            stack=where.stack,
            region=where.region,
            resources={
                LogicalId(f"Queue{n}"): ResourceRecord(PhysicalId(f"q-{n}"), TypeName("AWS::SQS::Queue"), {})
                for n in range(resources)
            },
            outputs={"Url": "https://example.org"},
            last_modified=self.clock.now(),
            serial=3,
        )
        self.put(where.record, encode_record(record))
        return record

    def log(self, run_id: RunId = RUN, *, lock_id: LockId | None = LOCK_ID) -> RunLog:
        """Put the log of a run that is at work."""
        log = RunLog(
            identity=RunIdentity(
                run_id=run_id,
                stack=self.keys.stack,
                region=self.keys.region,
                operation="deploy",
                owner=OWNER,
                engine="cloudformation",
                tool_version="0.1.0",
            ),
            started_at=self.clock.now(),
            deadline_ms=3_600_000,
            lock_wait="3 more tries, 2 s apart",
            lock_id=lock_id,
        )
        self.write_log(log)
        return log

    def write_log(self, log: RunLog) -> None:
        """Put a log."""
        self.put(self.keys.event(log.identity.run_id), encode_run_log(log))


def keys(stack: str, region: str = "eu-west-1", prefix: str = "stackhold") -> Keys:
    """Where a stack lies."""
    return Keys(prefix, StackName(stack), Region(region))
