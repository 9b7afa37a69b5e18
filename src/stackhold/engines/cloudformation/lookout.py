"""Looks for one resource at a time: where it must be, by what was sent for it, and reads what is there.

One empty answer proves nothing shortly after a change: as long as a request of the run before may still be carried
out, what is found by tags, and what seems to be gone, is looked at more than once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stackhold.engines.cloudformation.bench import route_of
from stackhold.engines.cloudformation.meaning import has_unknown
from stackhold.engines.cloudformation.places import decoded
from stackhold.engines.cloudformation.plan import Route
from stackhold.engines.cloudformation.resources import finding
from stackhold.engines.cloudformation.resources.handler import FoundBy, Lost
from stackhold.engines.cloudformation.template.resolve import resolve
from stackhold.errors import ResourceFailed
from stackhold.model.record import ResourceRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackhold.engines.cloudformation.bench import HandlerOf
    from stackhold.engines.cloudformation.findings import Findings
    from stackhold.engines.cloudformation.resources.handler import Context, Handler, Seen
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import PhysicalId
    from stackhold.model.record import StateRecord
    from stackhold.model.run import Intended, Intent

_PAUSES_MS: Final = (1_000, 2_000)
_BY_TAGS: Final = frozenset({FoundBy.TAG, FoundBy.TOKEN})


class Lookout:
    """Where a recovery, or a run at its end, looks from. Thread-safe."""

    def __init__(self, ctx: Context, handler_of: HandlerOf, findings: Findings, *, is_patient: bool) -> None:
        """`is_patient`: what was changed may be so recent that reads do not show it yet."""
        self._ctx = ctx
        self._handler_of = handler_of
        self._findings = findings
        self._is_patient = is_patient

    def handler(self, intent: Intent) -> Handler:
        """Who would have carried it out."""
        route = Route.CLOUD_CONTROL if _of(intent).route == Route.CLOUD_CONTROL.value else Route.NATIVE
        return self._handler_of(intent.type, route)

    def handler_of(self, record: ResourceRecord) -> Handler:
        """Who carries a recorded resource out."""
        return self._handler_of(record.type, route_of(record))

    def is_sendable(self, intent: Intent) -> bool:
        """Whether everything that its create needed is there; if not, it was never sent."""
        resources = self._findings.record.resources
        return all(need in resources for need in _of(intent).dependencies or ())

    def place(self, intent: Intent) -> Props | None:
        """Where its result must be; None when what its place names is not there, and so neither is it."""
        found: Any = resolve(decoded(dict(_of(intent).place)), self._findings.known.lookup)
        return None if has_unknown(found) else found

    def find(self, intent: Intent, handler: Handler, place: Props) -> PhysicalId | None:
        """What its create has made, if no other resource of the stack accounts for it. The answer is claimed."""
        scope = {name: place.get(name) for name in handler.scope}
        taken: set[PhysicalId] = set()
        while True:
            found = self._look(lambda: handler.find(self._ctx, self._lost(intent, handler, place, taken)), handler)
            if found is None or self._findings.claim((intent.type, found), scope):
                return found
            taken.add(found)

    def read(self, record: ResourceRecord, *, names: Iterable[str] = (), is_patient: bool = True) -> Seen | None:
        """A recorded resource as it is; None when it is gone. `names`: further properties to be shown. What was only to
        be deleted is no newcomer that reads might not show yet: no patience for that."""
        handler = self.handler_of(record)
        asked = {**{name: {} for name in names}, **record.properties}

        def look() -> Seen | None:
            return handler.read(self._ctx, record.physical_id, asked)

        found: Seen | None = self._again(look) if is_patient else look()
        return found

    def as_record(
        self, intent: Intent, handler: Handler, physical_id: PhysicalId, place: Props
    ) -> ResourceRecord | None:
        """What the record says of a resource that was found; None when it is gone again."""
        intended = _of(intent)
        seen = finding.read_found(handler, self._ctx, physical_id, names=intended.properties, place=place)
        if seen is None:
            return None
        asked = set(intended.properties)
        plain = {name: value for name, value in place.items() if name in asked and not finding.is_digest(value)}
        return ResourceRecord(
            physical_id=physical_id,
            type=intent.type,
            properties={**plain, **{name: value for name, value in seen.properties.items() if name in asked}},
            attributes=dict(seen.attributes),
            dependencies=intended.dependencies,
            deletion_policy=intended.deletion_policy,
            update_replace_policy=intended.update_replace_policy,
            provisioned_by=intended.route or Route.NATIVE.value,
            adopted_as=intended.digest or "",
        )

    def _lost(self, intent: Intent, handler: Handler, place: Props, taken: set[PhysicalId]) -> Lost:
        record, intended = self._findings.record, _of(intent)
        rule = handler.name_rule
        name = intent.name or (str(place.get(rule.property) or "") if rule else "")
        if rule is not None and not name:
            raise ResourceFailed("the name that its create was sent with is not known")
        return Lost(
            logical_id=intent.logical_id,
            name=name,
            is_own_name=intended.is_own_name,
            tags=intent.tags,
            place=place,
            known=frozenset({*taken, *_accounted_for(record, intent, handler, place)}),
            stack=frozenset(item.physical_id for item in record.resources.values()),
        )

    def _look(self, look: Callable[[], PhysicalId | None], handler: Handler) -> PhysicalId | None:
        found: PhysicalId | None = self._again(look) if handler.found_by in _BY_TAGS else look()
        return found

    def _again(self, look: Callable[[], Any]) -> Any:
        """Look until there is something, a few times while answers may be behind."""
        found = look()
        for pause in _PAUSES_MS if self._is_patient else ():
            if found is not None:
                break
            self._ctx.wait(pause)
            found = look()
        return found


def _accounted_for(record: StateRecord, intent: Intent, handler: Handler, place: Props) -> set[PhysicalId]:
    """What the record holds of this type, in the same scope. What the create was to replace may be the new one, under
    the old name; what a try to make it had left to delete may be taken on after all."""
    replaces = _of(intent).replaces if handler.found_by is FoundBy.NAME else None
    held = [
        resource
        for name, resource in record.resources.items()
        if (name, resource.physical_id) != (intent.logical_id, replaces)
    ]
    held += [item.resource for item in record.pending_deletes if item.logical_id != intent.logical_id]
    return {
        resource.physical_id
        for resource in held
        if resource.type == intent.type
        and all(resource.properties.get(name) == place.get(name) for name in handler.scope)
    }


def _of(intent: Intent) -> Intended:
    if intent.intended is None:
        raise ResourceFailed("its run file does not tell where to look")
    return intent.intended
