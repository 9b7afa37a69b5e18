"""Deletes what nobody needs any more: replaced and removed resources after a deploy, everything in a destroy.

Dependents go first, by the dependencies that were recorded; what is independent goes at once. A policy that keeps a
resource drops it from the record and names it. What cannot be deleted stays recorded with the reason, and holds
back only what it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation import undo
from stackhold.engines.cloudformation.attempt import Attempt, Verb, journal_operation, reason_of
from stackhold.engines.cloudformation.graph import without_cycles
from stackhold.engines.cloudformation.walk import near_needs, turned, walk
from stackhold.errors import OutcomeUnknown, ResourceFailed
from stackhold.model.events import EventKind
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.model.journal import RETAINED
from stackhold.model.record import AddPendingDelete, DropPendingDelete, DropResource, PendingDelete
from stackhold.model.run import IntentState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.walk import Crew
    from stackhold.model.journal import JournalOperation
    from stackhold.model.record import RecordChange, ResourceRecord

Key = tuple[LogicalId, PhysicalId]
_SNAPSHOT: Final = "Snapshot"


@dataclass(frozen=True, slots=True)
class Removal:
    """One resource that should go."""

    logical_id: LogicalId
    resource: ResourceRecord
    is_pending: bool = False
    """Recorded among the pending deletes, not among the resources."""
    kept_by: str | None = None
    """The policy that keeps it."""

    @property
    def key(self) -> Key:
        """One physical identity."""
        return self.logical_id, self.resource.physical_id

    def dropped(self) -> RecordChange:
        """What takes it out of the record."""
        if self.is_pending:
            return DropPendingDelete(self.logical_id, self.resource.physical_id)
        return DropResource(self.logical_id)


@dataclass(slots=True)
class Removed:
    """How the removals ended."""

    attempts: list[Attempt] = field(default_factory=list)
    """Those deleted, in order."""
    kept: list[Removal] = field(default_factory=list)
    left: dict[Key, str] = field(default_factory=dict)
    """What is still there, with the reason."""
    untouched: set[Key] = field(default_factory=set)
    """Those among `left` that were never tried, because the run stops."""
    first_error: str = ""

    def operations(self) -> tuple[JournalOperation, ...]:
        """What was done, for the journal: deleted, or only let go of by the record."""
        deleted = tuple(journal_operation(attempt) for attempt in self.attempts)
        kept = (Attempt(one.logical_id, None, before=one.resource, verb=Verb.DELETE) for one in self.kept)
        return (*deleted, *(replace(journal_operation(attempt), extra={RETAINED: True}) for attempt in kept))


class _CleanUp:
    def __init__(self, bench: Bench, removals: Collection[Removal], *, demotes: bool) -> None:
        self._bench = bench
        self._demotes = demotes
        self.removals = {removal.key: removal for removal in removals}
        self.result = Removed()

    def remove(self, key: Key, release: Callable[[], None]) -> None:
        removal = self.removals[key]
        if removal.kept_by is not None and removal.kept_by != _SNAPSHOT:
            self._keep(removal)
            return
        bench, record = self._bench, removal.resource
        began = bench.run.clock.boot()
        attempt = Attempt(
            removal.logical_id, None, before=record, verb=Verb.DELETE, is_leftover=removal.is_pending, began=began
        )
        bench.tell(
            EventKind.OPERATION_STARTED,
            removal.logical_id,
            type=record.type,
            operation="delete",
            physicalId=record.physical_id,
        )
        try:
            if removal.kept_by == _SNAPSHOT:
                raise ResourceFailed(f"{record.type} is to be kept as a snapshot, which this release cannot make")
            if whose := undo.owner(bench, record):
                self._let_go(removal, whose)
                return
            bench.touched.forget(record.physical_id)
            bench.handler(record).delete(
                bench.context(attempt.trace, about=attempt), record.physical_id, dict(record.properties)
            )
        except Exception as error:
            self._failed(removal, attempt, error)
            raise
        bench.save(removal.dropped())
        bench.mark(removal.logical_id, IntentState.DONE, physical_id=record.physical_id)
        attempt.ended = bench.run.clock.boot()
        self.result.attempts.append(attempt)
        bench.tell(
            EventKind.OPERATION_DONE,
            removal.logical_id,
            type=record.type,
            operation="delete",
            physicalId=record.physical_id,
            durationMs=attempt.ended - began,
        )

    def leave(self, key: Key, reason: str) -> None:
        """It stays: say why in the record."""
        removal = self.removals[key]
        self.result.left[key] = reason
        pending = AddPendingDelete(PendingDelete(removal.logical_id, removal.resource, reason))
        changes: list[RecordChange] = []
        if removal.is_pending:
            changes.append(pending)
        elif self._demotes:
            changes += [DropResource(removal.logical_id), pending]
        if changes:
            self._bench.save(*changes)

    def _keep(self, removal: Removal) -> None:
        bench = self._bench
        bench.save(removal.dropped())
        bench.mark(removal.logical_id, IntentState.DONE, physical_id=removal.resource.physical_id)
        self.result.kept.append(removal)
        bench.tell(
            EventKind.OPERATION_SKIPPED,
            removal.logical_id,
            f"kept in the cloud ({removal.kept_by}), no longer in the record",
            type=removal.resource.type,
            operation="retain",
            physicalId=removal.resource.physical_id,
        )

    def _let_go(self, removal: Removal, whose: str) -> None:
        """It is another's: the record forgets it, and nothing else happens to it."""
        bench, record = self._bench, removal.resource
        bench.save(removal.dropped())
        bench.mark(removal.logical_id, IntentState.DONE, physical_id=record.physical_id)
        self.result.kept.append(removal)
        message = f"{record.physical_id} is not deleted: by its tags it is {whose}; it is no longer in this record"
        bench.tell(EventKind.WARNING, removal.logical_id, message)
        bench.tell(
            EventKind.OPERATION_SKIPPED,
            removal.logical_id,
            f"left to its owner, {whose}",
            type=record.type,
            operation="retain",
            physicalId=record.physical_id,
        )

    def _failed(self, removal: Removal, attempt: Attempt, error: Exception) -> None:
        bench, record = self._bench, removal.resource
        is_unclear = isinstance(error, OutcomeUnknown) or attempt.trace.is_unclear
        state = IntentState.UNKNOWN if is_unclear else IntentState.DONE
        bench.mark(removal.logical_id, state, physical_id=record.physical_id)
        self.result.first_error = self.result.first_error or f"{removal.logical_id}: {reason_of(error)}"
        bench.tell(
            EventKind.OPERATION_FAILED,
            removal.logical_id,
            reason_of(error),
            type=record.type,
            operation="delete",
            physicalId=record.physical_id,
            durationMs=bench.run.clock.boot() - attempt.began,
        )


def remove_all(
    bench: Bench,
    removals: Collection[Removal],
    *,
    old_needs: Mapping[LogicalId, Collection[LogicalId]],
    crew: Crew,
    demotes: bool,
) -> Removed:
    """Delete all of them, dependents first. `demotes`: what a deploy could not delete becomes a pending delete."""
    work = _CleanUp(bench, removals, demotes=demotes)
    order, circles = _order(work.removals, old_needs)
    for circle in circles:
        bench.tell(EventKind.WARNING, message=_circle_words(circle))
    walked = walk(order, work.remove, crew=crew, stopping=bench.run.stopping, goes_on=True)
    result = work.result
    for key, error in walked.failed.items():
        work.leave(key, reason_of(error))
    is_stopped = bench.run.stopping() is not None
    for key in walked.not_started:
        blockers = sorted({other[0] for other in order[key]} & {other[0] for other in result.left})
        if is_stopped and not blockers:
            result.left[key] = "not tried: the run was stopped"
            result.untouched.add(key)
        else:
            work.leave(key, f"waits for {', '.join(blockers) or 'what depends on it'}")
        bench.mark(key[0], IntentState.DONE, physical_id=key[1])
    for key in walked.in_flight:
        result.left[key] = "given up in flight: whether it is gone is not known"
        bench.mark(key[0], IntentState.UNKNOWN, physical_id=key[1])
    return result


def _order(
    removals: Mapping[Key, Removal], old_needs: Mapping[LogicalId, Collection[LogicalId]]
) -> tuple[dict[Key, set[Key]], list[tuple[LogicalId, ...]]]:
    """For each removal those that must go before it: the dependents, by the graph they were made under.

    And the circles in that graph, which a record that was edited can have: one need of each is left out, for otherwise
    nothing in it would ever go.
    """
    keys_of: dict[LogicalId, list[Key]] = {}
    needs: dict[LogicalId, set[LogicalId]] = {name: set(before) for name, before in old_needs.items()}
    for removal in removals.values():
        keys_of.setdefault(removal.logical_id, []).append(removal.key)
        needs.setdefault(removal.logical_id, set()).update(removal.resource.dependencies or ())
    near, circles = without_cycles(near_needs(keys_of.keys(), needs))
    before = turned(near)
    order = {
        key: {other for dependent in before[key[0]] for other in keys_of[dependent] if other != key} for key in removals
    }
    return order, circles


def _circle_words(circle: tuple[LogicalId, ...]) -> str:
    needs = ", ".join(f"{name} needs {need}" for name, need in zip(circle, (*circle[1:], circle[0]), strict=True))
    return f"the record has a circle ({needs}); {circle[0]} is deleted without waiting for {circle[-1]}"
