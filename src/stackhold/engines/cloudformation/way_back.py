"""How one resource goes back: the calls, and what of them is put into the record.

A record is changed only after the call that makes it true, and so that whoever plans again from it, whenever this
rollback ends, goes on from there: what was made anew is recorded before what had taken its place goes.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation import undo
from stackhold.engines.cloudformation.bench import route_of
from stackhold.engines.cloudformation.moved import Moves
from stackhold.engines.cloudformation.names import ownership_tags, physical_name
from stackhold.engines.cloudformation.plan import Route
from stackhold.engines.cloudformation.resources.handler import Lost
from stackhold.engines.cloudformation.rollback_plan import MAKING, Way
from stackhold.errors import Bug, ResourceFailed
from stackhold.model.record import (
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    ResourceRecord,
    SetResource,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.patience import Trace
    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.engines.cloudformation.rollback_plan import Entry, RollbackPlan, Undoing
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.record import RecordChange


class WayBack:
    """What a rollback does to one resource after the other. Thread-safe."""

    def __init__(self, bench: Bench, plan: RollbackPlan) -> None:
        self._bench = bench
        record = plan.record
        pending = [item.resource for item in record.pending_deletes] if record is not None else []
        self._recorded = (*record.resources.values(), *pending) if record is not None else ()
        self._moves = Moves()
        self._saved: list[RecordChange] = []
        self._lock = threading.Lock()
        for undoing in plan.undoings.values():
            before, now = undoing.before, undoing.now
            if undoing.way not in {Way.FORGET, Way.RESTORE} or before is None or now is None:
                continue
            if before.physical_id != now.physical_id:
                self._moves.add(before, now)

    def save(self, *changes: RecordChange, confirmed: bool = False) -> None:
        """Put changes into the record, and remember them."""
        with self._lock:
            self._saved.extend(changes)
        self._bench.save(*changes, confirmed=confirmed)

    def saved(self) -> list[RecordChange]:
        """Every change so far."""
        with self._lock:
            return list(self._saved)

    def moved(self, properties: Mapping[str, object]) -> Props:
        """Properties with the ids that others have by now."""
        return self._moves.applied(properties)

    def make(self, undoing: Undoing, trace: Trace) -> str:
        """Its former self, before anything goes back; what is to be said of it."""
        before = self._former(undoing)
        if undoing.there is not None and self._bench.read(undoing.there) is not None:
            self._take_place(undoing, undoing.there, trace)
            return "it is still there"
        return self._create(undoing, before, trace)

    def back(self, undoing: Undoing, trace: Trace) -> str:
        """All the rest of its way back; what is to be said of it."""
        match undoing.way:
            case Way.LEAVE:
                raise ResourceFailed(undoing.reason)
            case Way.ORPHAN:
                return self._orphan(undoing)
            case Way.FORGET:
                return self._forget(undoing, trace)
            case Way.LOOK_FOR:
                return self._look_for(undoing, trace)
            case Way.RETAIN:
                return self._retain(undoing, trace)
            case Way.DELETE:
                self._remove(undoing, trace, is_living=True)
                return ""
            case Way.RESTORE:
                return self._restore(undoing, trace)
            case Way.PUT_BACK:
                return self._put_back(undoing, trace)
            case Way.CREATE_AGAIN:
                return self._create_last(undoing, trace)

    def _former(self, undoing: Undoing) -> ResourceRecord:
        """Its former self, with the ids that others have by now."""
        before = undoing.before
        if before is None:
            raise Bug(f"{undoing.logical_id}: {undoing.way} without a former self")
        return dataclasses.replace(before, properties=self._moves.applied(before.properties))

    def _orphan(self, undoing: Undoing) -> str:
        if undoing.before is not None or undoing.now is None:
            return "left as it is, and out of the journal"
        self.save(DropResource(undoing.logical_id))
        return undo.kept_message(self._bench, undoing.now, why="--orphan")

    def _retain(self, undoing: Undoing, trace: Trace) -> str:
        assert undoing.now is not None
        self.save(DropResource(undoing.logical_id))
        self._remove(undoing, trace, is_living=False)
        why = f"DeletionPolicy {undoing.now.deletion_policy}"
        return undo.kept_message(self._bench, undoing.now, why=why)

    def _forget(self, undoing: Undoing, trace: Trace) -> str:
        before, now = undoing.before, undoing.now
        if before is not None and now is not None and before.physical_id == now.physical_id and before != now:
            self.save(SetResource(undoing.logical_id, before))
        self._remove(undoing, trace, is_living=False)
        return ""

    def _look_for(self, undoing: Undoing, trace: Trace) -> str:
        found = self._remove_lost(undoing, trace)
        self._forget(undoing, trace)
        return found or "it never came to be"

    def _restore(self, undoing: Undoing, trace: Trace) -> str:
        now, before = undoing.now, self._former(undoing)
        assert now is not None
        target = before
        if now.physical_id != before.physical_id:
            target = dataclasses.replace(before, physical_id=now.physical_id, attributes=now.attributes)
        old = dict(now.properties)
        if undoing.doubt is not None:
            seen = self._bench.read(now)
            if seen is None:
                return self._create(undoing, before, trace)
            old = dict(undoing.doubt.operation.properties or seen.properties)
        if undoing.doubt is not None or old != target.properties:
            self._bring(undoing, now, target, old, trace)
        if now.is_adopted and route_of(now) is not Route.CLOUD_CONTROL:
            self._bring(undoing, now, target, {}, trace)
        self.save(SetResource(undoing.logical_id, target))
        self._remove(undoing, trace, is_living=False)
        return ""

    def _bring(self, undoing: Undoing, there: ResourceRecord, target: ResourceRecord, old: Props, trace: Trace) -> None:
        """Bring one that is there from `old`, or from just made, to what it was."""
        undo.restore(
            self._bench,
            undoing.logical_id,
            target,
            handler=self._bench.handler(there),
            physical_id=there.physical_id,
            old=old,
            trace=trace,
        )

    def _put_back(self, undoing: Undoing, trace: Trace) -> str:
        there = undoing.there
        assert there is not None
        note = ""
        if undoing.doubt is not None and self._bench.read(there) is None:
            note = self._create(undoing, self._former(undoing), trace)
        else:
            self._take_place(undoing, there, trace)
        self._remove(undoing, trace, is_living=False)
        return note

    def _create_last(self, undoing: Undoing, trace: Trace) -> str:
        """Either it was made anew already and what took its place goes, or both cannot be there: then it goes first."""
        if undoing.makes_first:
            self._bench.save(confirmed=True)
            self._remove(undoing, trace, is_living=False)
            return ""
        self._remove_lost(undoing, trace)
        self._remove(undoing, trace, is_living=True)
        return self.make(undoing, trace)

    def _take_place(self, undoing: Undoing, there: ResourceRecord, trace: Trace) -> None:
        """The former one, which is `there`, is as it was and recorded again; what had taken its place is to be
        deleted."""
        before = self._former(undoing)
        if there.properties != before.properties:
            self._bring(undoing, there, before, dict(there.properties), trace)
        self.save(
            SetResource(undoing.logical_id, before),
            DropPendingDelete(undoing.logical_id, before.physical_id),
            *self._demoted(undoing),
        )

    def _demoted(self, undoing: Undoing) -> list[RecordChange]:
        now = undoing.now
        if now is None or now not in undoing.removals or undoing.old_first:
            return []
        return [AddPendingDelete(PendingDelete(undoing.logical_id, now, "rolled back; its former self is back"))]

    def _create(self, undoing: Undoing, before: ResourceRecord, trace: Trace) -> str:
        """Make it anew. If it held data, that is lost."""
        bench, name = self._bench, undoing.logical_id
        record = undo.create_again(bench, name, before, trace)
        self._moves.add(before, record)
        self.save(SetResource(name, record), DropPendingDelete(name, before.physical_id), *self._demoted(undoing))
        if record.is_settling:
            record = undo.settled(bench, record)
            self.save(SetResource(name, record))
        return f"as {record.physical_id}" + (f"; what {before.physical_id} held is lost" if undoing.held_data else "")

    def _remove(self, undoing: Undoing, trace: Trace, *, is_living: bool) -> None:
        """Delete what the journal's runs made; `is_living`: the recorded one is among it, under its logical id."""
        for item in undoing.removals:
            undo.delete(self._bench, item, trace, logical_id=undoing.logical_id)
            if is_living and item is undoing.now:
                self.save(DropResource(undoing.logical_id))
            else:
                self.save(DropPendingDelete(undoing.logical_id, item.physical_id))

    def _remove_lost(self, undoing: Undoing, trace: Trace) -> str:
        """Delete what a create of which no answer came has made, if that is provably ours; what was found."""
        if undoing.doubt is None or undoing.doubt.operation.change_type not in MAKING:
            return ""
        found = self._lost(undoing.doubt)
        if found is None:
            return ""
        undo.delete(self._bench, found, trace, logical_id=undoing.logical_id)
        return f"found as {found.physical_id}, and deleted"

    def _lost(self, entry: Entry) -> ResourceRecord | None:
        """What an unanswered create made, if that is provably ours: by its name, by its tags, or by its place."""
        operation, identity = entry.operation, self._bench.run.identity
        record = ResourceRecord(
            physical_id=operation.physical_id,
            type=operation.type,
            properties=dict(operation.properties or {}),
            provisioned_by=operation.provisioned_by,
        )
        try:
            if not entry.is_ours:
                raise ResourceFailed("another tool has made it, and leaves no sign that it was its own")
            handler = self._bench.handler(record)
            found = handler.find(self._bench.context(), self._sent(entry, record, handler))
        except ResourceFailed as error:
            command = undo.look_command(
                type_name=operation.type,
                name=operation.physical_id,
                logical_id=operation.logical_id,
                region=identity.region,
                run_id=entry.run_id,
            )
            raise ResourceFailed(
                f"whether {operation.physical_id or 'it'} came to be, and is ours, is not known: {error.message}; look "
                f"for it with: {command}; leave it as it is with --orphan {operation.logical_id}"
            ) from error
        return dataclasses.replace(record, physical_id=found) if found is not None else None

    def _sent(self, entry: Entry, record: ResourceRecord, handler: Handler) -> Lost:
        """What the create was sent with, and where its result must be."""
        identity, logical_id = self._bench.run.identity, entry.operation.logical_id
        own_name = None
        if (rule := handler.name_rule) is not None and not record.properties.get(rule.property):
            own_name = physical_name(
                rule,
                dict(record.properties),
                account=self._bench.aws.account(),
                region=identity.region,
                stack=identity.stack,
                logical_id=logical_id,
                run_id=entry.run_id,
            )
        others = self._recorded
        return Lost(
            logical_id=logical_id,
            name=own_name or record.physical_id,
            is_own_name=own_name is not None and own_name == record.physical_id,
            tags=ownership_tags(identity.stack, identity.region, entry.run_id, logical_id),
            place=handler.place(dict(record.properties)),
            known=frozenset(item.physical_id for item in others if item.type == record.type),
            stack=frozenset(item.physical_id for item in others),
        )
