"""The drift baseline: what AWS has after a deploy, for the properties that the template leaves open.

Part of it comes with create answers; the rest is read in bulk, one read per type where the API has one, when the
last operation on that type is done and the crew has room, or else when everything is. It never delays a dependent,
and a read that fails is a warning: drift is then told from the declared properties alone.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections import Counter
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.attempt import Verb
from stackhold.engines.cloudformation.carried import carried_baseline
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.resources.handler import Handler
from stackhold.model.events import EventKind
from stackhold.model.record import SetResource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackhold.engines.cloudformation.attempt import Attempt
    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.known import Known
    from stackhold.engines.cloudformation.plan import ResourceChange, Route
    from stackhold.engines.cloudformation.resources.handler import Seen
    from stackhold.engines.cloudformation.walk import Crew
    from stackhold.model.ids import LogicalId, PhysicalId, TypeName
    from stackhold.model.record import ResourceRecord

_Group = tuple["TypeName", "Route"]


class Baseline:
    """Collects what must be read, reads it beside other work, and saves it once the deploy has succeeded."""

    def __init__(self, bench: Bench, changes: Sequence[ResourceChange], *, crew: Crew) -> None:
        """`changes`: everything that the walk carries out, so that the last of each type is known."""
        self._bench = bench
        self._crew = crew
        self._left = Counter((change.type, change.route) for change in changes)
        self._waiting: dict[_Group, dict[LogicalId, ResourceRecord]] = {}
        self._seen: dict[LogicalId, tuple[PhysicalId, Seen]] = {}
        self._reading = 0
        self._changed = threading.Condition()

    def note(self, attempt: Attempt) -> None:
        """An operation is done. Starts the read of its type if it was the last and a thread is free."""
        if not self._bench.options.baseline or attempt.change is None:
            return
        group = (attempt.change.type, attempt.change.route)
        with self._changed:
            self._left[group] -= 1
            if _needs_read(attempt):
                assert attempt.after is not None
                self._waiting.setdefault(group, {})[attempt.logical_id] = attempt.after
            is_due = self._left[group] == 0 and group in self._waiting
        if is_due and self._crew.has_room():
            self._start(group)

    def start_all(self) -> None:
        """Start every read that is still due."""
        for group in tuple(self._waiting):
            self._start(group)

    def finish(self, known: Known, attempts: Mapping[LogicalId, Attempt], stopping: Callable[[], object]) -> None:
        """Read what is left, wait for all of it, and save. Ends early when the run stops."""
        self.start_all()
        with self._changed:
            while self._reading and stopping() is None:
                self._changed.wait(0.1)
            seen = dict(self._seen)
        for logical_id, (physical_id, found) in seen.items():
            record = known.record(logical_id)
            if record is not None and record.physical_id == physical_id:
                before = attempts[logical_id].before if attempts[logical_id].verb is Verb.UPDATE else None
                handler = self._bench.handler(record)
                baseline = carried_baseline(before, record, found.properties, handler=handler)
                observed = dataclasses.replace(record, observed=baseline)
                known.put(logical_id, observed)
                attempts[logical_id].after = observed
                self._bench.save(SetResource(logical_id, observed))

    def _start(self, group: _Group) -> None:
        with self._changed:
            wanted = self._waiting.pop(group, None) or {}
        for part in self._parts(group, wanted):
            with self._changed:
                self._reading += 1
            self._crew.start(functools.partial(self._read, group, part))

    def _parts(
        self, group: _Group, wanted: Mapping[LogicalId, ResourceRecord]
    ) -> list[Mapping[LogicalId, ResourceRecord]]:
        """One read for all where the handler has a bulk read; else one for each, so that they run side by side."""
        if type(self._bench.handler_of(*group)).read_many is not Handler.read_many:
            return [wanted] if wanted else []
        return [{logical_id: record} for logical_id, record in wanted.items()]

    def _read(self, group: _Group, wanted: Mapping[LogicalId, ResourceRecord]) -> None:
        bench = self._bench
        found: dict[PhysicalId, Seen] = {}
        try:
            handler = bench.handler_of(*group)
            by_id = {record.physical_id: dict(record.properties) for record in wanted.values()}
            found = handler.read_many(bench.context(), by_id)
        except Exception as error:
            bench.tell(
                EventKind.WARNING,
                message=f"no drift baseline for {len(wanted)} of {group[0]}: {error}",
                type=group[0],
            )
        finally:
            with self._changed:
                for logical_id, record in wanted.items():
                    if record.physical_id in found:
                        self._seen[logical_id] = (record.physical_id, found[record.physical_id])
                self._reading -= 1
                self._changed.notify_all()


def _needs_read(attempt: Attempt) -> bool:
    record = attempt.after
    is_awaited = attempt.change is not None and attempt.change.action is Action.WAIT
    return (
        (is_awaited or attempt.verb in {Verb.CREATE, Verb.UPDATE, Verb.REPLACE})
        and record is not None
        and (record.observed is None or attempt.lacks_baseline)
        and not record.is_settling
    )
