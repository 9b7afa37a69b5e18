"""Snapshots and Jobs that the tests of the manager's decisions start from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackhold.kube.names import Kind
from stackhold.kube.snapshot import JobFact, Outcome, Snapshot, StateFacts, StateStatus
from stackhold.model.instant import HOUR, MINUTE, Instant

if TYPE_CHECKING:
    from stackhold.engines.terraform.steps import Operation

NOW = Instant(1_796_061_700_000)
OLD, NEW = "h2:" + "a" * 64, "h2:" + "b" * 64
APPLIED = StateFacts(StateStatus.READABLE, OLD)
UID = "6f1c1a52-7a35-4c9e-9f61-0f4c8b0f8a11"


def job(op: Operation, outcome: Outcome, *, ago: int = 30 * MINUTE, **fields: Any) -> JobFact:
    """A Job that ended `ago` before now (or is active), having run for a minute."""
    ended = Instant(NOW - ago)
    given = {
        "name": f"captf-c-prod-{op.value}-a1-{ago:x}",
        "op": op,
        "attempt": 1,
        "outcome": outcome,
        "created_at": Instant(ended - MINUTE),
        "finished_at": None if outcome is Outcome.ACTIVE else ended,
        "inputs_hash": OLD,
        "is_bookkept": outcome is not Outcome.ACTIVE,
    }
    return JobFact(**{**given, **fields})


def settled(kind: Kind = Kind.CLUSTER, **fields: Any) -> Snapshot:
    """An object that was applied, refreshed and checked a minute ago, and lacks nothing."""
    lately = Instant(NOW - MINUTE)
    plain = Snapshot(
        kind=kind,
        uid=UID,
        created_at=Instant(NOW - 24 * HOUR),
        state=APPLIED,
        inputs_hash=OLD,
        last_apply=Instant(NOW - 2 * HOUR),
        last_refresh=lately,
        last_drift_check=lately,
    )
    return replace(plain, **fields)
