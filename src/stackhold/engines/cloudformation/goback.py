"""Goes back when a resource has failed: what this run created goes, what it updated gets its recorded properties.

In reverse dependency order, each after everything that needed it. A replacement's new resource is deleted and its
old one stays, since no clean-up had begun. The failed resource itself is looked for first: only a create that is
provably ours is deleted. What cannot be undone stays recorded, and holds back only what it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation import undo
from stackhold.engines.cloudformation.attempt import Attempt, Verb
from stackhold.engines.cloudformation.patience import Trace
from stackhold.engines.cloudformation.resources.handler import FoundBy, Lost
from stackhold.engines.cloudformation.summary import counted
from stackhold.engines.cloudformation.walk import near_needs, turned, walk
from stackhold.errors import AwsError, OutcomeUnknown, ResourceFailed
from stackhold.model.events import EventKind
from stackhold.model.ids import PhysicalId
from stackhold.model.record import (
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    ResourceRecord,
    SetResource,
)
from stackhold.model.run import IntentState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.known import Known
    from stackhold.engines.cloudformation.plan import Plan
    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.walk import Crew
    from stackhold.model.ids import LogicalId


class Undone(StrEnum):
    """What became of one resource."""

    DELETED = "deleted"
    RESTORED = "restored"
    KEPT = "kept"
    YIELDED = "left to its owner"
    """By its tags it is another's."""
    UNTOUCHED = "untouched"
    """It never came to be."""
    RECREATED = "created again"
    """If it held data, that is lost."""
    LEFT = "left"
    """It could not be undone, or was not tried."""


@dataclass(slots=True)
class WentBack:
    """How going back ended."""

    undone: dict[LogicalId, Undone] = field(default_factory=dict)
    reasons: dict[LogicalId, str] = field(default_factory=dict)
    """For those left or kept: why, and what to do."""
    names_taken: set[LogicalId] = field(default_factory=set)
    """Those kept without a record under a name that their template gives: no deploy can make them again."""
    in_flight: set[LogicalId] = field(default_factory=set)

    @property
    def is_full(self) -> bool:
        """Everything is as it was before."""
        return all(undone is not Undone.LEFT for undone in self.undone.values())


class _GoBack:
    def __init__(self, bench: Bench, plan: Plan, known: Known) -> None:
        self._bench = bench
        self._plan = plan
        self._known = known
        self.result = WentBack()

    def undo(self, attempt: Attempt) -> None:
        """Undo one operation, say so, and remember how it ended."""
        bench = self._bench
        logical_id = attempt.logical_id
        began = bench.run.clock.boot()
        trace = Trace()
        try:
            undone = self._undo(attempt, trace)
        except Exception as error:
            is_unclear = isinstance(error, OutcomeUnknown) or trace.is_unclear or _may_be_unrecorded(attempt)
            bench.mark(logical_id, IntentState.UNKNOWN if is_unclear else IntentState.DONE)
            self.result.undone[logical_id] = Undone.LEFT
            self.result.reasons[logical_id] = str(error)
            bench.tell(
                EventKind.OPERATION_FAILED,
                logical_id,
                f"could not go back: {error}",
                type=attempt.type,
                operation="go back",
                durationMs=bench.run.clock.boot() - began,
            )
            raise
        self.result.undone[logical_id] = undone
        bench.mark(logical_id, IntentState.DONE)
        if undone is not Undone.UNTOUCHED and attempt.verb is not Verb.RECORD:
            bench.tell(
                EventKind.OPERATION_DONE,
                logical_id,
                f"{undone.value} {self.result.reasons.get(logical_id, '')}".rstrip(),
                type=attempt.type,
                operation="go back",
                outcome=undone.value,
                durationMs=bench.run.clock.boot() - began,
            )

    def _undo(self, attempt: Attempt, trace: Trace) -> Undone:
        match attempt.verb:
            case Verb.CREATE:
                return self._undo_create(attempt, trace)
            case Verb.UPDATE:
                return self._restore(attempt, trace)
            case Verb.REPLACE:
                return self._undo_replace(attempt, trace)
            case _:
                self._put_back(attempt)
                return Undone.RESTORED

    def _undo_create(self, attempt: Attempt, trace: Trace) -> Undone:
        record = attempt.after
        if record is not None and attempt.error is None and _policy(attempt) == "Retain":
            self._bench.save(DropResource(attempt.logical_id))
            self._known.drop(attempt.logical_id)
            self.result.reasons[attempt.logical_id] = undo.kept_message(
                self._bench, record, why="DeletionPolicy Retain"
            )
            if undo.keeps_name(self._bench, record):
                self.result.names_taken.add(attempt.logical_id)
            return Undone.KEPT
        return self._delete_new(attempt, trace)

    def _delete_new(self, attempt: Attempt, trace: Trace) -> Undone:
        bench = self._bench
        found = find_made(bench, attempt)
        if found is None:
            return Undone.UNTOUCHED
        try:
            whose = undo.delete(bench, found, trace, logical_id=attempt.logical_id, sent=_sent(bench, attempt))
        except Exception as error:
            if attempt.after is None:
                _keep_for_later(bench, attempt, found, f"its create failed, and so did its removal: {error}")
            raise
        if attempt.verb is Verb.CREATE:
            bench.save(DropResource(attempt.logical_id))
            self._known.drop(attempt.logical_id)
        if whose:
            self.result.reasons[attempt.logical_id] = f"as {found.physical_id}: by its tags it is {whose}"
            return Undone.YIELDED
        return Undone.DELETED

    def _restore(self, attempt: Attempt, trace: Trace) -> Undone:
        """On the route of the update, since the recorded one may not know what that has set."""
        before = attempt.before
        assert before is not None
        if attempt.error is not None and not attempt.trace.left_something:
            self._put_back(attempt)
            return Undone.UNTOUCHED
        bench, change = self._bench, attempt.change
        assert change is not None
        undo.restore(
            bench,
            attempt.logical_id,
            before,
            handler=bench.handler_of(change.type, change.route),
            physical_id=before.physical_id,
            old=attempt.properties,
            trace=trace,
        )
        self._put_back(attempt)
        return Undone.RESTORED

    def _undo_replace(self, attempt: Attempt, trace: Trace) -> Undone:
        undone = self._delete_new(attempt, trace)
        if attempt.is_old_gone:
            return self._create_again(attempt, trace)
        self._put_back(attempt)
        if attempt.before is not None and undone in {Undone.DELETED, Undone.YIELDED}:
            self._bench.save(DropPendingDelete(attempt.logical_id, attempt.before.physical_id))
            return Undone.RESTORED
        return undone

    def _create_again(self, attempt: Attempt, trace: Trace) -> Undone:
        """The old one was deleted first: make it anew from the record. What it held is gone."""
        assert attempt.before is not None
        record = undo.create_again(self._bench, attempt.logical_id, attempt.before, trace, replacement=1)
        self._known.put(attempt.logical_id, record)
        self._bench.save(SetResource(attempt.logical_id, record))
        lost = ", and what it held is lost" if attempt.change is not None and attempt.change.is_stateful else ""
        self.result.reasons[attempt.logical_id] = (
            f"as {record.physical_id}: its type demands that the old one goes first{lost}"
        )
        return Undone.RECREATED

    def _put_back(self, attempt: Attempt) -> None:
        if attempt.before is not None:
            self._known.put(attempt.logical_id, attempt.before)
            self._bench.save(SetResource(attempt.logical_id, attempt.before))


def go_back(bench: Bench, plan: Plan, known: Known, attempts: Mapping[LogicalId, Attempt], *, crew: Crew) -> WentBack:
    """Undo every attempt, failed ones included, each after all that needed it. A stop ends this too."""
    work = _GoBack(bench, plan, known)
    undoing = {name: attempt for name, attempt in attempts.items() if attempt.verb is not Verb.NOTHING}
    order = turned(near_needs(undoing.keys(), plan.needs))
    count = sum(attempt.after is not None or attempt.trace.left_something for attempt in undoing.values())
    bench.tell(EventKind.GOING_BACK, message=f"undoing {counted(count, 'operation')}", operations=count)

    def undo(logical_id: LogicalId, release: Callable[[], None]) -> None:
        work.undo(undoing[logical_id])

    walked = walk(order, undo, crew=crew, stopping=bench.run.stopping, goes_on=True)
    result = work.result
    stuck = _held_back(order, by={name for name, undone in result.undone.items() if undone is Undone.LEFT})
    for logical_id in walked.not_started:
        result.undone[logical_id] = Undone.LEFT
        blockers = sorted(need for need in order[logical_id] if need in stuck)
        result.reasons[logical_id] = (
            f"waits for {', '.join(blockers)}" if blockers else "not tried: the run was stopped"
        )
    for logical_id in walked.in_flight:
        result.undone[logical_id] = Undone.LEFT
        result.reasons[logical_id] = "given up in flight"
        bench.mark(logical_id, IntentState.UNKNOWN)
    result.in_flight = walked.in_flight
    return result


def _held_back(order: Mapping[LogicalId, Collection[LogicalId]], *, by: Collection[LogicalId]) -> set[LogicalId]:
    """What could not be undone, and all that waits for it over any number of steps."""
    stuck = set(by)
    while more := {name for name, needs in order.items() if name not in stuck and not stuck.isdisjoint(needs)}:
        stuck |= more
    return stuck


def _may_be_unrecorded(attempt: Attempt) -> bool:
    """Whether something may exist that no record names: no answer came, or one from which no id could be read."""
    return attempt.trace.is_unclear or (attempt.after is None and attempt.trace.left_something)


def find_made(bench: Bench, attempt: Attempt) -> ResourceRecord | None:
    """What a create has made, if there is anything that is provably ours.

    Known when the create was answered. Otherwise, unless AWS carried out or may have carried out a call, nothing is
    there; else it is read by the name it was sent with, or looked for by its tags. Raises `ResourceFailed` when that
    cannot tell: that nothing is found proves nothing, for the request may land yet.
    """
    if attempt.after is not None or not attempt.trace.left_something:
        return attempt.after
    if attempt.trace.physical_id:
        return _as_record(attempt, PhysicalId(attempt.trace.physical_id))
    is_ours = attempt.is_own_name or attempt.trace.changes > 0
    takes_over = _handler(bench, attempt).takes_over
    if attempt.name and is_ours and not takes_over and _is_readable_by_name(bench, attempt):
        return _as_record(attempt, PhysicalId(attempt.name))
    found = _found_by_tags(bench, attempt)
    if found is not None:
        return _as_record(attempt, found)
    raise ResourceFailed(
        f"whether {attempt.logical_id} ({attempt.type}) came to be is not known",
        hint=f"Look for it with: {look_command(bench, attempt)}",
    )


def remove_half_made(bench: Bench, attempt: Attempt) -> str | None:
    """Delete what a failed create left behind when nothing else is undone; what remains becomes a pending delete.

    Gives the reason why it is not gone, or None.
    """
    try:
        found = find_made(bench, attempt)
    except ResourceFailed as error:
        bench.mark(attempt.logical_id, IntentState.UNKNOWN)
        return f"{error.message}. {error.hint}"
    except Exception as error:
        bench.mark(attempt.logical_id, IntentState.UNKNOWN)
        return str(error)
    if found is None:
        bench.mark(attempt.logical_id, IntentState.DONE)
        return None
    try:
        undo.delete(bench, found, logical_id=attempt.logical_id, sent=_sent(bench, attempt))
    except Exception as error:
        reason = f"its create failed, and so did its removal: {error}"
        _keep_for_later(bench, attempt, found, reason)
        return reason
    bench.mark(attempt.logical_id, IntentState.DONE)
    return None


def keep_half_made(bench: Bench, attempt: Attempt) -> None:
    """Record what an unfinished create is known to have made as to be deleted, when nothing is undone now."""
    if attempt.after is None and attempt.trace.changes and attempt.trace.physical_id:
        made = _as_record(attempt, PhysicalId(attempt.trace.physical_id))
        _keep_for_later(bench, attempt, made, "its create did not come to its end")


def _keep_for_later(bench: Bench, attempt: Attempt, found: ResourceRecord, reason: str) -> None:
    bench.save(AddPendingDelete(PendingDelete(attempt.logical_id, found, reason)))
    bench.mark(attempt.logical_id, IntentState.DONE)


def look_command(bench: Bench, attempt: Attempt) -> str:
    """The read-only AWS command that looks for a resource whose create was not answered."""
    identity = bench.run.identity
    return undo.look_command(
        type_name=attempt.type,
        name=attempt.name,
        logical_id=attempt.logical_id,
        region=identity.region,
        run_id=identity.run_id,
    )


def _handler(bench: Bench, attempt: Attempt) -> Handler:
    """The handler of what was to be made."""
    assert attempt.change is not None
    return bench.handler_of(attempt.change.type, attempt.change.route)


def _sent(bench: Bench, attempt: Attempt) -> Mapping[str, str]:
    """The ownership tags that the create was sent with."""
    return bench.want(attempt.logical_id, _handler(bench, attempt), attempt.properties).tags


def _is_readable_by_name(bench: Bench, attempt: Attempt) -> bool:
    handler = _handler(bench, attempt)
    return handler.read(bench.context(), PhysicalId(attempt.name), attempt.properties) is not None


def _found_by_tags(bench: Bench, attempt: Attempt) -> PhysicalId | None:
    """What carries the very tags of this create, or has the name that only this could give it, where a name may have
    met another's; None when there is nothing yet, or nobody can tell."""
    handler = _handler(bench, attempt)
    if handler.found_by not in {FoundBy.TAG, FoundBy.TOKEN} and not handler.takes_over:
        return None
    before = attempt.before
    lost = Lost(
        logical_id=attempt.logical_id,
        name=attempt.name if handler.takes_over else "",
        is_own_name=handler.takes_over and attempt.is_own_name,
        tags=_sent(bench, attempt),
        place=handler.place(attempt.properties),
        known=frozenset({before.physical_id} if before is not None else ()),
    )
    try:
        return handler.find(bench.context(), lost)
    except (AwsError, ResourceFailed):
        return None


def _as_record(attempt: Attempt, physical_id: PhysicalId) -> ResourceRecord:
    assert attempt.change is not None
    return ResourceRecord(
        physical_id=physical_id,
        type=attempt.type,
        properties=attempt.properties,
        provisioned_by=attempt.change.route.value,
    )


def _policy(attempt: Attempt) -> str | None:
    desired = attempt.change.desired if attempt.change else None
    return desired.deletion_policy if desired else None
