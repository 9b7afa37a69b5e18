"""What a rollback does to each resource: the record as it is now, against what the journal says was before. All pure.

The journal's operations on one resource are taken together, newest first: what counts is how it was before the oldest
of them. So an operation that is undone already asks for nothing, and a rollback that was cut short is planned again
from the same journal. An operation whose outcome is not known is left alone unless that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.diff import diff_properties
from stackhold.engines.cloudformation.refusals import RETAIN, explicit_name
from stackhold.engines.cloudformation.route import Native, is_stateful, route_of
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.errors import InputError
from stackhold.model.codec import resource_from_document
from stackhold.model.journal import LEFTOVER, RETAINED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from stackhold.engines.cloudformation.plan import PropertyChange
    from stackhold.model.ids import LogicalId, PhysicalId, RunId, TypeName
    from stackhold.model.journal import Journal, JournalOperation, JournalSegment
    from stackhold.model.record import ResourceRecord, StateRecord

_KNOWN: Final = frozenset({"CREATE", "UPDATE", "REPLACE", "DELETE"})
MAKING: Final = frozenset({"CREATE", "REPLACE"})
"""The change types that bring a physical identity into being."""


class Way(StrEnum):
    """How one resource goes back."""

    DELETE = "delete"
    """The journal's runs created it."""
    RETAIN = "retain"
    """They created it, and its policy keeps it: only the record lets go of it."""
    RESTORE = "restore"
    """It gets its former properties."""
    PUT_BACK = "put back"
    """Its former self is still there and takes its place again; the new one goes."""
    CREATE_AGAIN = "create again"
    """Its former self is gone and is made anew; if it held data, that is lost."""
    LOOK_FOR = "look for"
    """Whether it came to be is not known: it is looked for, and goes when it is ours."""
    FORGET = "already undone"
    ORPHAN = "orphan"
    """Left as it is, since that was asked for."""
    LEAVE = "leave"
    """It cannot be undone, or not without being told to."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation of the journal, and the run that did it."""

    operation: JournalOperation
    run_id: RunId
    is_ours: bool = True
    """Whether our release, not another tool, did it."""


@dataclass(frozen=True, slots=True)
class Undoing:
    """What happens to one resource."""

    logical_id: LogicalId
    type: TypeName
    way: Way
    now: ResourceRecord | None = None
    """As recorded; None when it is not."""
    before: ResourceRecord | None = None
    """As it was before the journal's runs; None when it was not there."""
    there: ResourceRecord | None = None
    """Its former self as it was last recorded, where that is still there, or may be."""
    removals: tuple[ResourceRecord, ...] = ()
    """What the journal's runs made and must go."""
    doubt: Entry | None = None
    """The operation whose outcome is not known and which is undone nevertheless."""
    old_first: bool = False
    """What must go goes before the former one is made anew: both cannot be there."""
    changes: tuple[PropertyChange, ...] = ()
    """What it brings back, place by place."""
    loses: tuple[ResourceRecord, ...] = ()
    """Those among `removals` that hold data."""
    held_data: bool = False
    """Whether its former self, which is made anew, held data that does not come back."""
    reason: str = ""

    @property
    def is_instant(self) -> bool:
        """Whether it takes no call."""
        return self.way in {Way.ORPHAN, Way.LEAVE} or (self.way in {Way.FORGET, Way.RETAIN} and not self.removals)

    @property
    def makes_first(self) -> bool:
        """Whether its former self is made anew before anything that refers to it goes back."""
        return self.way is Way.CREATE_AGAIN and not self.old_first

    @property
    def physical_id(self) -> PhysicalId | None:
        """The one that people know it by."""
        known = self.now or self.before or next(iter(self.removals), None)
        return known.physical_id if known else None


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Everything that one rollback does. Without segments there is nothing to undo."""

    undoings: Mapping[LogicalId, Undoing]
    segments: tuple[JournalSegment, ...]
    record: StateRecord | None = None
    orphans: frozenset[LogicalId] = field(default_factory=frozenset)


def plan_rollback(
    record: StateRecord | None,
    journal: Journal | None,
    *,
    native: Native,
    orphans: frozenset[LogicalId] = frozenset(),
    reverts_failed: bool = False,
) -> RollbackPlan:
    """Decide for every resource that the journal names. Raises `InputError`, `RecordUnreadable`."""
    segments = journal.segments if journal is not None else ()
    entries = _by_resource(segments)
    unknown = sorted(orphans - entries.keys())
    if unknown:
        raise InputError(
            f"--orphan names {', '.join(unknown)}, and the rollback journal says nothing of it",
            hint=f"It speaks of {', '.join(sorted(entries)) or 'nothing'}.",
        )
    if not entries:
        return RollbackPlan({}, segments, record)
    if record is None:
        raise InputError(
            f"the rollback journal speaks of {len(entries)} resources, and the record that goes with it is gone",
            hint="Put the newest of the stack's backups in its place as state.json, and roll back again.",
        )
    undoings = {
        name: _Case(name, tuple(found), record, native, reverts_failed, name in orphans).decided()
        for name, found in entries.items()
    }
    return RollbackPlan(undoings, segments, record, orphans)


def what_is_left(
    segments: Iterable[JournalSegment],
    done: Collection[LogicalId],
    *,
    moved: Callable[[Mapping[str, object]], Mapping[str, object]] = dict,
) -> tuple[JournalSegment, ...]:
    """The journal's segments without what is undone; a segment of which nothing is left goes.

    `moved` gives properties the ids of what was made anew, which the journal will not tell any more.
    """
    left = []
    for segment in segments:
        kept = tuple(_moved(one, moved) for one in segment.operations if one.logical_id not in done)
        if kept == segment.operations and kept:
            left.append(segment)
        elif kept:
            left.append(replace(segment, operations=kept, reason="rollback-partial"))
    return tuple(left)


def _moved(
    operation: JournalOperation, moved: Callable[[Mapping[str, object]], Mapping[str, object]]
) -> JournalOperation:
    previous = operation.previous
    properties = previous.get("properties") if previous is not None else None
    if previous is None or not isinstance(properties, dict):
        return operation
    return replace(operation, previous={**previous, "properties": moved(properties)})


def _by_resource(segments: Iterable[JournalSegment]) -> dict[LogicalId, list[Entry]]:
    """The operations on each resource, oldest first; resources in the order of their newest operation."""
    found: dict[LogicalId, list[Entry]] = {}
    for segment in segments:
        for operation in segment.operations:
            entries = found.pop(operation.logical_id, [])
            found[operation.logical_id] = [*entries, Entry(operation, segment.run_id, segment.tool_version is not None)]
    return found


@dataclass(frozen=True, slots=True)
class _Case:
    """One resource, what is recorded of it, and what the journal says of it."""

    logical_id: LogicalId
    entries: tuple[Entry, ...]
    record: StateRecord
    native: Native
    reverts_failed: bool
    is_orphan: bool

    def decided(self) -> Undoing:
        entries = [one for one in self.entries if not one.operation.extra.get(LEFTOVER)]
        blank = Undoing(self.logical_id, self.entries[-1].operation.type, Way.FORGET, now=self._now)
        if not entries:
            return blank
        if self._now is not None and all(_is_done_delete(one.operation) for one in entries):
            return self._there_again(blank, entries[-1].operation, self._now)
        if self.is_orphan:
            is_new = entries[0].operation.change_type == "CREATE"
            return replace(blank, way=Way.ORPHAN, before=None if is_new else self._now)
        odd = sorted({one.operation.change_type for one in entries} - _KNOWN)
        if odd:
            return replace(blank, way=Way.LEAVE, reason=f"nobody here knows how to undo {', '.join(odd)}")
        doubt = next((one for one in reversed(entries) if not self._is_proven(one)), None)
        if doubt is not None and not self.reverts_failed:
            return replace(blank, way=Way.LEAVE, reason=_doubtful(doubt))
        blank = replace(blank, doubt=doubt)
        first = entries[0].operation
        if first.change_type == "CREATE":
            return self._finished(self._to_nothing(blank))
        if first.previous is None:
            return replace(blank, way=Way.LEAVE, reason="the journal does not say how it was before")
        before = _former(first)
        return self._finished(self._to_former(replace(blank, before=before), before, entries))

    @property
    def _now(self) -> ResourceRecord | None:
        return self.record.resources.get(self.logical_id)

    @property
    def _pending(self) -> dict[PhysicalId, ResourceRecord]:
        """What is recorded as to be deleted under this logical id."""
        items = (item.resource for item in self.record.pending_deletes if item.logical_id == self.logical_id)
        return {resource.physical_id: resource for resource in items}

    def _there_again(self, blank: Undoing, deleted: JournalOperation, now: ResourceRecord) -> Undoing:
        """It was deleted and is recorded: made anew already, most often under another id.

        One that was only found again, after a rollback that did not end, may lack what comes after its create.
        """
        before = _former(deleted) if deleted.previous is not None else None
        if before is not None and now.is_adopted:
            return self._in_place(replace(blank, before=before), before, now)
        return replace(blank, before=before) if before and before.physical_id != now.physical_id else blank

    def _is_proven(self, entry: Entry) -> bool:
        """Whether it was done: the journal says so, or the record shows it."""
        operation, now = entry.operation, self._now
        if operation.status is None:
            return True
        if operation.physical_id in self._pending:
            return operation.change_type in MAKING
        if operation.change_type == "CREATE":
            return now is not None
        if operation.change_type == "REPLACE" and now is not None and operation.previous is not None:
            return now.physical_id != _former(operation).physical_id
        return False

    def _to_nothing(self, blank: Undoing) -> Undoing:
        """It was not there before."""
        removals = tuple(self._pending.values())
        if self._now is not None:
            keeps = self._now.deletion_policy == RETAIN
            way = Way.RETAIN if keeps else Way.DELETE
            return replace(blank, way=way, removals=removals if keeps else (self._now, *removals))
        if removals:
            return replace(blank, way=Way.DELETE, removals=removals)
        return replace(blank, way=Way.LOOK_FOR) if blank.doubt is not None else blank

    def _to_former(self, blank: Undoing, before: ResourceRecord, entries: list[Entry]) -> Undoing:
        now, pending = self._now, self._pending
        made = {one.operation.physical_id for one in entries if one.operation.change_type in MAKING}
        if any(one.operation.status and one.operation.change_type == "REPLACE" for one in entries) and now is not None:
            made.add(now.physical_id)
        made -= {before.physical_id}
        removals = tuple(item for physical_id, item in pending.items() if physical_id in made)
        if now is not None and now.physical_id == before.physical_id:
            return self._in_place(replace(blank, removals=removals), before, now)
        is_replaced = now is not None and (now.physical_id in made or before.physical_id in pending)
        if now is not None and is_replaced:
            removals = (now, *removals)
        blank = replace(blank, removals=removals)
        if (there := pending.get(before.physical_id)) is not None:
            return replace(blank, way=Way.PUT_BACK, there=there, changes=self._changes(there, before))
        if now is not None and not is_replaced:
            return self._in_place(blank, before, now)
        return replace(
            blank,
            way=Way.CREATE_AGAIN,
            old_first=self._cannot_be_beside(before, removals) or blank.doubt is not None,
            there=self._perhaps_there(before, entries),
        )

    def _in_place(self, blank: Undoing, before: ResourceRecord, now: ResourceRecord) -> Undoing:
        """It is there, under its old id or as it was created again."""
        doubt = blank.doubt.operation.change_type if blank.doubt else None
        if doubt in MAKING:
            return replace(blank, way=Way.LOOK_FOR)
        if now.properties == before.properties and doubt is None and not now.is_adopted:
            return blank
        return replace(blank, way=Way.RESTORE, changes=self._changes(now, before))

    def _changes(self, now: ResourceRecord, before: ResourceRecord) -> tuple[PropertyChange, ...]:
        handler = self.native(now.type)
        return diff_properties(now.type, dict(now.properties), dict(before.properties), handler=handler)

    def _cannot_be_beside(self, before: ResourceRecord, removals: tuple[ResourceRecord, ...]) -> bool:
        if not removals:
            return False
        schema = schema_for(before.type)
        if schema is not None and schema.delete_first:
            return True
        name = explicit_name(before.type, before.properties, native=self.native)
        return name is not None and name in {
            explicit_name(item.type, item.properties, native=self.native) for item in removals
        }

    def _perhaps_there(self, before: ResourceRecord, entries: list[Entry]) -> ResourceRecord | None:
        """The former one as last recorded, if a policy kept it or its delete is in doubt."""
        is_kept = self._now is not None and self._now.update_replace_policy == RETAIN
        for one in reversed(entries):
            operation = one.operation
            if operation.previous is None or operation.change_type not in {"REPLACE", "DELETE"}:
                continue
            is_doubtful = operation.change_type == "DELETE" and (operation.status or operation.extra.get(RETAINED))
            last = _former(operation)
            if last.physical_id == before.physical_id and (is_kept or is_doubtful):
                return last
        return None

    def _finished(self, undoing: Undoing) -> Undoing:
        """With the data that goes; left alone when there is no handler for something that must be called."""
        called = [*undoing.removals, *([undoing.before] if undoing.before and not undoing.is_instant else [])]
        try:
            routes = [route_of(self.logical_id, item, native=self.native) for item in called]
        except InputError as error:
            return replace(undoing, way=Way.LEAVE, removals=(), reason=error.message)
        loses = tuple(
            item
            for item, route in zip(undoing.removals, routes, strict=False)
            if is_stateful(item.type, route, native=self.native)
        )
        held_data = (
            undoing.way is Way.CREATE_AGAIN
            and undoing.before is not None
            and is_stateful(undoing.before.type, routes[-1], native=self.native)
        )
        return replace(undoing, loses=loses, held_data=held_data)


def _former(operation: JournalOperation) -> ResourceRecord:
    """The resource as it was before an operation."""
    assert operation.previous is not None
    path = f"{operation.logical_id}.previousState"
    return resource_from_document(operation.previous, key="the rollback journal", path=path)


def _is_done_delete(operation: JournalOperation) -> bool:
    return operation.change_type == "DELETE" and operation.status is None


def _doubtful(entry: Entry) -> str:
    operation = entry.operation
    what = f"its {operation.change_type.lower()} failed" if operation.status == "failed" else "its outcome is not known"
    return (
        f"{what} ({operation.change_type.lower()} {operation.physical_id}); undo it too with --revert-failed, or leave "
        f"it as it is with --orphan {operation.logical_id}"
    )
