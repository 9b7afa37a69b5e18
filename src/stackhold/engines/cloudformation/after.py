"""What every kind of run does after its work when a run before it had left something: the last look for late requests.

Kept apart from the kinds of work, which know nothing of it: the record as the run leaves it is followed from outside.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

from stackhold.decide.record import apply_changes
from stackhold.engines.cloudformation.sweep import sweep
from stackhold.model.exit_codes import ExitCode
from stackhold.model.run import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.model.events import Event
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import RecordChange, StateRecord
    from stackhold.model.run import Intent, IntentState, RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Run, Stop, WorkResult


def with_last_look(
    run: Run,
    record: StateRecord | None,
    lost: Sequence[Intent],
    *,
    bench_for: Callable[[Run], Bench],
    work: Callable[[Bench], WorkResult],
) -> WorkResult:
    """Do the work, then look once more for what requests of the run before may have made meanwhile."""
    if not lost or record is None:
        return work(bench_for(run))
    followed = _Followed(run, record)
    bench = bench_for(followed)
    result = work(bench)
    if run.stopping() is not None or sweep(bench, lost, followed.record):
        return result
    is_done = result.exit_code is ExitCode.DONE
    return dataclasses.replace(
        result,
        record_gone=False,
        outcome=Outcome.FAILED if is_done else result.outcome,
        exit_code=ExitCode.PARTLY if is_done else result.exit_code,
        error=result.error or "what a late request made is still there",
    )


class _Followed:
    """A run whose saves are followed. Thread-safe."""

    def __init__(self, run: Run, record: StateRecord) -> None:
        self._run = run
        self._record = record
        self._lock = threading.Lock()

    @property
    def record(self) -> StateRecord:
        """The record with everything that was saved so far."""
        with self._lock:
            return self._record

    @property
    def identity(self) -> RunIdentity:
        return self._run.identity

    @property
    def clock(self) -> Clock:
        return self._run.clock

    def stopping(self) -> Stop | None:
        return self._run.stopping()

    def check_call(self) -> None:
        self._run.check_call()

    def wait(self, ms: int) -> None:
        self._run.wait(ms)

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        with self._lock:
            self._record = apply_changes(self._record, changes)
        self._run.save(changes, confirmed=confirmed)

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        self._run.mark(logical_id, state, physical_id=physical_id)

    def note(self, logical_id: LogicalId, extra: JsonMap) -> None:
        self._run.note(logical_id, extra)

    def tell(self, event: Event) -> None:
        self._run.tell(event)
