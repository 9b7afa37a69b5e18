"""Looks for what a run before this one had in flight when it ended, and says what the record must say of it.

Every resource that an unresolved entry names is looked for, parents before children, since a child can only be looked
for in its parent. What exists and has no record is taken on; what is recorded and is gone is dropped; a second one
that a late request made is to be deleted. Nothing is changed in the cloud here.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from stackhold.decide.record import empty_record
from stackhold.engines.cloudformation.belonging import refuse_elsewhere
from stackhold.engines.cloudformation.bench import route_of
from stackhold.engines.cloudformation.findings import Findings
from stackhold.engines.cloudformation.lookout import Lookout
from stackhold.engines.cloudformation.names import Earlier
from stackhold.engines.cloudformation.places import digest_of
from stackhold.engines.cloudformation.reading import HandlerOf, looking_context
from stackhold.engines.cloudformation.undo import look_command
from stackhold.engines.cloudformation.updates import as_it_is_now
from stackhold.engines.cloudformation.walk import Crew, walk
from stackhold.errors import StackholdError, StoodDown
from stackhold.model.run import IntentKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.template.desired import DesiredResource
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.record import ResourceRecord, StateRecord
    from stackhold.model.run import Intent
    from stackhold.ports.aws import Aws
    from stackhold.ports.engine import Looking, Recovery

_AT_ONCE: Final = 16
_MAY_BE: Final = {
    IntentKind.CREATE: "{} may exist without being recorded",
    IntentKind.UPDATE: "{} may have been changed, or not",
    IntentKind.DELETE: "{} may be gone, or not",
}
"""What is not known of a resource that could not be looked at, by what was in flight."""
_ORDER: Final = (IntentKind.CREATE, IntentKind.DELETE, IntentKind.UPDATE)
"""What was made first: a resource made anew under the old one's name must not be taken for the old one."""
_MOST_TWINS: Final = 8


class Recoverer:
    """Recovers once, and remembers for the plan what was not there."""

    def __init__(self, aws: Aws, native: Native) -> None:
        self._aws = aws
        self._handler_of = HandlerOf(native)
        self._again: tuple[Intent, ...] = ()
        self.may_still_land: tuple[Intent, ...] = ()
        """Creates that a run which is no more may have sent, and that may be carried out later yet."""

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """Look for all that was left."""
        refuse_elsewhere(self._aws, record)
        ctx = looking_context(self._aws, run)
        findings = Findings(
            record or empty_record(run.identity.stack, run.identity.region),
            handler_of=lambda resource: self._handler_of(resource.type, route_of(resource)),
            read=lambda resource: self._handler_of(resource.type, route_of(resource)).read(
                ctx, resource.physical_id, dict(resource.properties)
            ),
        )
        lookout = Lookout(ctx, self._handler_of, findings, is_patient=may_still_land)
        _Search(left, findings, lookout, run).perform()
        found, absent = findings.result(), findings.absent
        self._again = (*absent, *(intent for intent in found.unknown if intent.kind is IntentKind.CREATE))
        twice = [intent for intent in found.seen if intent.kind is IntentKind.CREATE and _may_be_two(intent)]
        self.may_still_land = (*absent, *twice) if may_still_land else ()
        return found

    def earlier(
        self, desired: Mapping[LogicalId, DesiredResource], stack_tags: Mapping[str, str]
    ) -> dict[LogicalId, Earlier]:
        """How to send creates of this template that an earlier run may have sent already."""
        found: dict[LogicalId, Earlier] = {}
        for intent in self._again:
            wanted, intended = desired.get(intent.logical_id), intent.intended
            is_first = intended is not None and not intended.replacement
            if wanted is None or wanted.type != intent.type or intended is None or not is_first:
                continue
            is_same = intended.digest == digest_of(wanted.type, wanted.properties, stack_tags)
            found[intent.logical_id] = Earlier(intent.run_id, intent.token if is_same else None)
        return found


class _Search:
    """The search for everything that was left."""

    def __init__(self, left: Sequence[Intent], findings: Findings, lookout: Lookout, run: Looking) -> None:
        self._findings = findings
        self._lookout = lookout
        self._run = run
        self._entries: dict[LogicalId, list[Intent]] = {}
        for intent in sorted(left, key=lambda one: _ORDER.index(one.kind)):
            self._entries.setdefault(intent.logical_id, []).append(intent)

    def perform(self) -> None:
        """All of it, parents first. Raises `StoodDown` when the run stops before that is done."""
        crew = Crew(_AT_ONCE)
        try:
            walked = walk(self._needs(), self._look, crew=crew, stopping=self._run.stopping, goes_on=True)
        finally:
            crew.dismiss()
        for error in walked.failed.values():
            raise error
        if self._run.stopping() is not None:
            raise StoodDown("the run was stopped while it looked for what an earlier one had in flight")
        for logical_id in walked.not_started:
            # Entries of several runs may need each other in a ring.
            self._look(logical_id, lambda: None)

    def _needs(self) -> dict[LogicalId, set[LogicalId]]:
        return {
            name: {
                need
                for intent in entries
                for need in (intent.intended.dependencies if intent.intended else None) or ()
                if need in self._entries and need != name
            }
            for name, entries in self._entries.items()
        }

    def _look(self, logical_id: LogicalId, release: Callable[[], None]) -> None:
        for intent in self._entries[logical_id]:
            try:
                self._of_kind(intent)
            except StoodDown:
                raise
            except Exception as error:
                # Whatever it is, it must not keep the others from being found.
                self._findings.give_up(intent, self._advice(intent, error))

    def _of_kind(self, intent: Intent) -> None:
        match intent.kind:
            case IntentKind.CREATE:
                self._look_for_created(intent)
            case IntentKind.DELETE:
                self._look_for_deleted(intent)
            case IntentKind.UPDATE:
                self._look_at_updated(intent)

    def _look_for_created(self, intent: Intent) -> None:
        """What its create has made, unless the record has it; going back may have deleted even that again."""
        findings, lookout = self._findings, self._lookout
        recorded = findings.resource(intent.logical_id)
        if recorded is not None and _is_its_own(recorded, intent):
            if lookout.read(recorded) is not None:
                self._recorded(intent, recorded)
                return
            findings.drop(intent.logical_id, recorded)
            recorded = None
        place = lookout.place(intent) if lookout.is_sendable(intent) else None
        if place is None:
            findings.miss(intent)
            return
        handler = lookout.handler(intent)
        found = lookout.find(intent, handler, place)
        resource = lookout.as_record(intent, handler, found, place) if found is not None else None
        if resource is None:
            findings.miss(intent)
        elif recorded is None or recorded.physical_id == _replaced(intent):
            self._take_on(intent, resource, recorded)
        else:
            findings.add_twin(intent.logical_id, resource)
            findings.resolve(intent)

    def _take_on(self, intent: Intent, resource: ResourceRecord, recorded: ResourceRecord | None) -> None:
        """Nothing is recorded, or what this was to replace: that goes later, unless it stays or is gone already."""
        intended = intent.intended
        stays = intended is not None and (intended.keeps_old or intended.old_first)
        is_same = recorded is not None and recorded.physical_id == resource.physical_id
        self._findings.take_on(intent.logical_id, resource, instead_of=None if stays or is_same else recorded)
        self._findings.resolve(intent)

    def _recorded(self, intent: Intent, recorded: ResourceRecord) -> None:
        """It is recorded. Where two runs may have sent its create, there may be a second one."""
        findings, lookout = self._findings, self._lookout
        findings.resolve(intent)
        if not _may_be_two(intent):
            return
        handler, place = lookout.handler(intent), lookout.place(intent)
        for _ in range(_MOST_TWINS if place is not None else 0):
            assert place is not None
            twin = lookout.find(intent, handler, place)
            resource = lookout.as_record(intent, handler, twin, place) if twin is not None else None
            if resource is None:
                return
            findings.add_twin(intent.logical_id, resource)

    def _look_for_deleted(self, intent: Intent) -> None:
        """What is gone is dropped from the record; a resource taken on under its name stays. One that is still there
        may yet be deleted by a request on its way."""
        findings, lookout = self._findings, self._lookout
        is_open = False
        recorded = findings.resource(intent.logical_id)
        if recorded is not None and not recorded.is_adopted and recorded.physical_id == intent.physical_id:
            is_open = lookout.read(recorded, is_patient=False) is not None
            if not is_open:
                findings.drop(intent.logical_id, recorded)
        for pending in findings.record.pending_deletes:
            if (pending.logical_id, pending.resource.physical_id) != (intent.logical_id, intent.physical_id):
                continue
            if lookout.read(pending.resource, is_patient=False) is None:
                findings.drop_pending(pending)
            else:
                is_open = True
        if not is_open:
            findings.resolve(intent)

    def _look_at_updated(self, intent: Intent) -> None:
        """Half an update may have been made: the record says what is there of what was to change."""
        findings, lookout = self._findings, self._lookout
        recorded = findings.resource(intent.logical_id)
        if recorded is None or recorded.is_adopted or recorded.physical_id != intent.physical_id:
            findings.resolve(intent)
            return
        changed = intent.intended.properties if intent.intended else ()
        seen = lookout.read(recorded, names=changed)
        if seen is not None:
            now = as_it_is_now(recorded, seen, changed, handler=self._lookout.handler_of(recorded))
            if now != recorded:
                findings.correct(intent.logical_id, now)
        else:
            self._moved_or_gone(intent, recorded)
        findings.resolve(intent)

    def _moved_or_gone(self, intent: Intent, recorded: ResourceRecord) -> None:
        """Some changes in place give a resource another id."""
        lookout, handler = self._lookout, self._lookout.handler_of(recorded)
        place = lookout.place(intent)
        found: PhysicalId | None = None
        if place:
            found = lookout.find(intent, handler, place)
        if found is None:
            self._findings.drop(intent.logical_id, recorded)
            return
        moved = dataclasses.replace(recorded, physical_id=found)
        self._findings.correct(intent.logical_id, moved)

    def _advice(self, intent: Intent, error: Exception) -> str:
        command = look_command(
            type_name=intent.type,
            name=intent.physical_id or intent.name or "",
            logical_id=intent.logical_id,
            region=self._run.identity.region,
            run_id=intent.run_id,
        )
        why = str(error) if isinstance(error, StackholdError) else f"{type(error).__name__}: {error}"
        return f"{_MAY_BE[intent.kind].format(f'{intent.logical_id} ({intent.type})')}: {why}; look with: {command}"


def _is_its_own(recorded: ResourceRecord, intent: Intent) -> bool:
    """Whether the record has what this create made, rather than what it was to replace."""
    return recorded.type == intent.type and recorded.physical_id != _replaced(intent)


def _replaced(intent: Intent) -> PhysicalId | None:
    return intent.intended.replaces if intent.intended else None


def _may_be_two(intent: Intent) -> bool:
    """Whether more than one run may have sent this create."""
    return intent.first_seen_at is not None or (intent.intended is not None and intent.intended.is_again)
