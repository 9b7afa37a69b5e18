"""Carries out one planned change on one resource: create, update, replace, record, or wait for what is coming up.

Called in a crew's thread once everything that the resource needs is done. What it does is decided only here, where
every value is known: a change that turns out to be none calls nothing. Each outcome is put into the record before
the next call that could lose it.
"""

from __future__ import annotations

import dataclasses
import re
import threading
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation import adoption, undo
from stackhold.engines.cloudformation.attempt import Attempt, Verb, reason_of
from stackhold.engines.cloudformation.carried import carried_baseline
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.settle import wait_settled
from stackhold.errors import AwsError, Bug, ResourceFailed, StackholdError
from stackhold.model.events import EventKind
from stackhold.model.record import AddPendingDelete, DropResource, PendingDelete, ResourceRecord, SetResource
from stackhold.model.run import IntentState

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.known import Known
    from stackhold.engines.cloudformation.plan import Plan, ResourceChange
    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Made, Want
    from stackhold.engines.cloudformation.template.desired import DesiredResource
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import LogicalId


_NOT_FOUND: Final = re.compile(r"NotFound|NoSuch|NonExist|NotExist")


def is_forward(change: ResourceChange) -> bool:
    """Whether the walk over the template has anything to do with it; deletes are the clean-up's."""
    return change.action not in {Action.DELETE, Action.RETAIN}


def is_instant(change: ResourceChange) -> bool:
    """Whether it takes no call."""
    return change.action in {Action.KEEP, Action.RECORD}


class Operations:
    """The operations of one deploy. Thread-safe; `attempts` remembers each."""

    def __init__(self, bench: Bench, plan: Plan, known: Known) -> None:
        self._bench = bench
        self._plan = plan
        self._known = known
        self._has_dependents = {need for needs in plan.needs.values() for need in needs}
        self._cut = threading.Event()
        self.attempts: dict[LogicalId, Attempt] = {}

    def carry_out(self, logical_id: LogicalId, release: Callable[[], None]) -> None:
        """Do what the plan says for a resource; `release` lets its dependents start early."""
        change = self._plan.changes[logical_id]
        if change.action is Action.KEEP:
            return
        bench = self._bench
        attempt = Attempt(logical_id, change, before=change.recorded, began=bench.run.clock.boot())
        self.attempts[logical_id] = attempt
        try:
            self._dispatch(attempt, change, release)
        except Exception as error:
            self._cut.set()
            attempt.error = error
            attempt.ended = bench.run.clock.boot()
            bench.tell(
                EventKind.OPERATION_FAILED,
                logical_id,
                reason_of(error),
                type=change.type,
                operation=attempt.operation,
                durationMs=attempt.ended - attempt.began,
            )
            raise
        attempt.ended = bench.run.clock.boot()
        if attempt.verb is not Verb.NOTHING:
            self._tell_done(attempt)
        bench.mark(logical_id, IntentState.DONE)

    def has_failed(self) -> bool:
        """Whether one has failed, even if the walk has not heard of it yet."""
        return self._cut.is_set()

    def is_cut(self) -> bool:
        """Whether waits for slow resources are cut short: the run stops, or something has failed."""
        return self._cut.is_set() or self._bench.run.stopping() is not None

    def _dispatch(self, attempt: Attempt, change: ResourceChange, release: Callable[[], None]) -> None:
        match change.action:
            case Action.RECORD:
                self._record_only(attempt, change)
            case Action.WAIT:
                self._wait(attempt, change, self._planned(change), release)
            case Action.CREATE:
                self._create(attempt, change, self._resolved(change), release)
            case Action.UPDATE | Action.REPLACE | Action.MAY_REPLACE:
                self._change(attempt, change, release)
            case _:
                raise Bug(f"{attempt.logical_id}: {change.action} is not the walk's to do")

    def _change(self, attempt: Attempt, change: ResourceChange, release: Callable[[], None]) -> None:
        properties = self._resolved(change)
        decided = self._bench.decide(change, properties)
        match decided.action:
            case Action.REPLACE:
                self._replace(attempt, decided, properties, release)
            case Action.UPDATE | Action.MAY_REPLACE:
                self._update(attempt, decided, properties, release)
            case Action.WAIT:
                self._wait(attempt, decided, properties, release)
            case _:
                self._unchanged(attempt, decided, properties)

    def _resolved(self, change: ResourceChange) -> Props:
        desired = _desired(change)
        return self._bench.resolve(change.type, change.logical_id, desired.properties, self._known.lookup)

    def _planned(self, change: ResourceChange) -> Props:
        """What the plan found to be no change: nothing in it was unknown."""
        return self._plan.resolved.get(change.logical_id, dict(_recorded(change).properties))

    def _create(self, attempt: Attempt, change: ResourceChange, properties: Props, release: Callable[[], None]) -> None:
        attempt.verb = Verb.CREATE
        handler, ctx = self._begin(attempt, change)
        made = self._make(attempt, handler, ctx, properties)
        record = self._record(change, properties, made)
        attempt.after = record
        self._put(attempt.logical_id, record)
        self._settle(attempt, handler, ctx, release)

    def _make(self, attempt: Attempt, handler: Handler, ctx: Context, properties: Props) -> Made:
        want = self._bench.want(attempt.logical_id, handler, properties)
        attempt.properties = properties
        attempt.name = want.name
        rule = handler.name_rule
        attempt.is_own_name = bool(want.name) and rule is not None and not properties.get(rule.property)
        made = handler.create(ctx, want)
        self._bench.touched.add(made.physical_id, made.attributes)
        return made

    def _update(self, attempt: Attempt, change: ResourceChange, properties: Props, release: Callable[[], None]) -> None:
        attempt.verb = Verb.UPDATE
        recorded = _recorded(change)
        handler, ctx = self._begin(attempt, change)
        attempt.properties = properties
        want = self._bench.want(attempt.logical_id, handler, properties)
        if recorded.is_adopted:
            made = adoption.bring(handler, ctx, change, want)
        else:
            made = _updated(handler, ctx, recorded, want)
        self._bench.touched.add(made.physical_id, made.attributes)
        record = self._record(change, properties, made)
        attempt.lacks_baseline = record.observed is None
        record = dataclasses.replace(
            record,
            attributes={**recorded.attributes, **made.attributes},
            observed=carried_baseline(recorded, record, record.observed, handler=handler, moved=made.moved),
        )
        attempt.after = record
        self._put(attempt.logical_id, record)
        self._settle(attempt, handler, ctx, release, polls_first=recorded.is_adopted)

    def _replace(
        self, attempt: Attempt, change: ResourceChange, properties: Props, release: Callable[[], None]
    ) -> None:
        attempt.verb = Verb.REPLACE
        recorded = _recorded(change)
        attempt.keeps_old = change.keeps_old is not None
        handler, ctx = self._begin(attempt, change)
        if change.old_first:
            self._delete_old(attempt, recorded, ctx)
        elif _keeps_its_name(handler, recorded, properties):
            raise ResourceFailed(
                f"{attempt.logical_id} ({change.type}) must be replaced, and its explicit name is still taken by the "
                "old one",
                hint="Give it another name, or leave the name open.",
            )
        made = self._make(attempt, handler, ctx, properties)
        record = self._record(change, properties, made)
        attempt.after = record
        self._known.put(attempt.logical_id, record)
        if attempt.is_old_gone or attempt.keeps_old:
            self._bench.save(SetResource(attempt.logical_id, record))
        else:
            pending = PendingDelete(attempt.logical_id, recorded, "replaced; deleted once everything else is done")
            self._bench.save(SetResource(attempt.logical_id, record), AddPendingDelete(pending))
        self._settle(attempt, handler, ctx, release)

    def _delete_old(self, attempt: Attempt, recorded: ResourceRecord, ctx: Context) -> None:
        """For types that cannot exist twice. A kept old one blocks its successor: AWS says so at the create."""
        if attempt.keeps_old:
            return
        if attempt.change is None or not attempt.change.is_gone:
            if whose := undo.owner(self._bench, recorded):
                raise ResourceFailed(
                    f"{recorded.physical_id} would be deleted first, and by its tags it is {whose}",
                    hint="Give the new one another name: the old one then leaves the record, and is not deleted.",
                )
            self._bench.touched.forget(recorded.physical_id)
            self._bench.handler(recorded).delete(ctx, recorded.physical_id, dict(recorded.properties))
        attempt.is_old_gone = True
        self._known.drop(attempt.logical_id)
        self._bench.save(DropResource(attempt.logical_id))

    def _record_only(self, attempt: Attempt, change: ResourceChange) -> None:
        attempt.verb = Verb.RECORD
        attempt.after = self._as_planned(change, self._planned(change))
        self._put(attempt.logical_id, attempt.after)

    def _unchanged(self, attempt: Attempt, change: ResourceChange, properties: Props) -> None:
        recorded = _recorded(change)
        record = self._as_planned(change, properties)
        if record != recorded:
            attempt.verb = Verb.RECORD
            attempt.after = record
            self._put(attempt.logical_id, record)
        self._bench.tell(
            EventKind.OPERATION_SKIPPED,
            attempt.logical_id,
            "nothing to change, now that every value is known",
            type=change.type,
            operation=Action.KEEP.value,
        )

    def _wait(self, attempt: Attempt, change: ResourceChange, properties: Props, release: Callable[[], None]) -> None:
        """Poll what an earlier run left coming up."""
        attempt.verb = Verb.RECORD
        attempt.after = self._as_planned(change, properties)
        handler, ctx = self._begin(attempt, change)
        self._settle(attempt, handler, ctx, release, polls_first=True)

    def _settle(
        self,
        attempt: Attempt,
        handler: Handler,
        ctx: Context,
        release: Callable[[], None],
        *,
        polls_first: bool = False,
    ) -> None:
        record = attempt.after
        assert record is not None
        if not record.is_settling:
            return
        if not handler.dependents_wait:
            release()
        if not self._bench.options.wait and self._may_leave(attempt.logical_id, handler):
            return
        bench = self._bench
        bench.tell(
            EventKind.OPERATION_SETTLING,
            attempt.logical_id,
            type=record.type,
            operation=attempt.operation,
            physicalId=record.physical_id,
        )
        made = wait_settled(
            handler,
            ctx,
            physical_id=record.physical_id,
            properties=dict(record.properties),
            clock=bench.run.clock,
            is_cut=self.is_cut,
            polls_first=polls_first,
        )
        if made is None:
            return
        settled = dataclasses.replace(record, is_settling=False, attributes={**record.attributes, **made.attributes})
        if made.observed is not None:
            before = attempt.before if attempt.verb is Verb.UPDATE else None
            baseline = carried_baseline(before, settled, made.observed, handler=handler)
            settled = dataclasses.replace(settled, observed=baseline)
            attempt.lacks_baseline = False
        bench.touched.add(made.physical_id, made.attributes)
        attempt.after = settled
        self._put(attempt.logical_id, settled)

    def _may_leave(self, logical_id: LogicalId, handler: Handler) -> bool:
        return not handler.dependents_wait or logical_id not in self._has_dependents

    def _begin(self, attempt: Attempt, change: ResourceChange) -> tuple[Handler, Context]:
        bench = self._bench
        bench.tell(
            EventKind.OPERATION_STARTED,
            attempt.logical_id,
            type=change.type,
            operation=attempt.operation,
            **({"physicalId": attempt.before.physical_id} if attempt.before else {}),
        )
        return bench.handler_of(change.type, change.route), bench.context(attempt.trace, about=attempt)

    def _put(self, logical_id: LogicalId, record: ResourceRecord) -> None:
        self._known.put(logical_id, record)
        self._bench.save(SetResource(logical_id, record))

    def _record(self, change: ResourceChange, properties: Props, made: Made) -> ResourceRecord:
        desired = _desired(change)
        return ResourceRecord(
            physical_id=made.physical_id,
            type=change.type,
            properties=properties,
            attributes=dict(made.attributes),
            dependencies=self._dependencies(change.logical_id),
            deletion_policy=desired.deletion_policy,
            update_replace_policy=desired.update_replace_policy,
            provisioned_by=change.route.value,
            observed=made.observed if self._bench.options.baseline else None,
            is_settling=not made.is_settled,
            extra=dict(change.recorded.extra) if change.recorded else {},
        )

    def _as_planned(self, change: ResourceChange, properties: Props) -> ResourceRecord:
        """The record with what no call is made for: dependencies, policies, and properties that AWS has already.

        Without the last, such as a generated name that the template has come to name, every later plan would find
        the same again.
        """
        desired = _desired(change)
        return dataclasses.replace(
            _recorded(change),
            properties=properties,
            dependencies=self._dependencies(change.logical_id),
            deletion_policy=desired.deletion_policy,
            update_replace_policy=desired.update_replace_policy,
        )

    def _dependencies(self, logical_id: LogicalId) -> tuple[LogicalId, ...]:
        return tuple(sorted(self._plan.needs.get(logical_id, ())))

    def _tell_done(self, attempt: Attempt) -> None:
        record = attempt.after
        self._bench.tell(
            EventKind.OPERATION_DONE,
            attempt.logical_id,
            "still settling" if record and record.is_settling else "",
            type=attempt.type,
            operation=attempt.operation,
            durationMs=attempt.ended - attempt.began,
            **({"physicalId": record.physical_id} if record else {}),
        )


def _updated(handler: Handler, ctx: Context, recorded: ResourceRecord, want: Want) -> Made:
    """Update it. One that is not there says so, and what brings it back."""
    try:
        return handler.update(ctx, recorded.physical_id, dict(recorded.properties), want)
    except AwsError as error:
        if not _NOT_FOUND.search(error.code) or not _is_gone(handler, ctx, recorded):
            raise
        raise ResourceFailed(
            f"{recorded.type} {recorded.physical_id} is recorded and gone from the cloud ({error.code})",
            hint=f"Deploy with --replace {want.logical_id} to have it made anew.",
        ) from error


def _is_gone(handler: Handler, ctx: Context, recorded: ResourceRecord) -> bool:
    try:
        return handler.read(ctx, recorded.physical_id, dict(recorded.properties)) is None
    except StackholdError:
        return False


def _keeps_its_name(handler: Handler, recorded: ResourceRecord, properties: Props) -> bool:
    rule = handler.name_rule
    if rule is None or recorded.type != handler.type:
        return False
    name = properties.get(rule.property)
    return bool(name) and name == recorded.properties.get(rule.property)


def _desired(change: ResourceChange) -> DesiredResource:
    if change.desired is None:
        raise Bug(f"{change.logical_id}: {change.action} without a desired resource")
    return change.desired


def _recorded(change: ResourceChange) -> ResourceRecord:
    if change.recorded is None:
        raise Bug(f"{change.logical_id}: {change.action} without a recorded resource")
    return change.recorded
