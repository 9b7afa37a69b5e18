"""The last look of a run after a recovery: has a request of the run before been carried out meanwhile?

What that made and the record does not hold is deleted: a twin of what this run has made under the same tags, or
something that nobody wants any more. What cannot be deleted now is recorded, to be deleted by the next run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.bench import route_of
from stackhold.engines.cloudformation.findings import TWIN, Findings
from stackhold.engines.cloudformation.lookout import Lookout
from stackhold.errors import CloudError, StackholdError, StoodDown
from stackhold.model.events import EventKind
from stackhold.model.record import AddPendingDelete, PendingDelete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.model.record import ResourceRecord, StateRecord
    from stackhold.model.run import Intent

_MOST_TWINS: Final = 8


def sweep(bench: Bench, intents: Sequence[Intent], record: StateRecord) -> bool:
    """Delete what these creates have made since they were looked for, with `record` as this run leaves it.

    False when something of it had to be recorded: the record must not go then. A stop ends the sweep: the entries stay
    in the run file, and the next run looks again.
    """
    if not intents:
        return True
    findings = Findings(record, handler_of=bench.handler, read=bench.read)
    lookout = Lookout(bench.context(), bench.handler_of, findings, is_patient=False)
    is_clean = True
    for intent in intents:
        try:
            for twin in _twins(bench, lookout, intent):
                is_clean = _remove(bench, intent, twin) and is_clean
        except StoodDown:
            break
        except StackholdError as error:
            bench.tell(EventKind.WARNING, intent.logical_id, f"could not be looked for once more: {error}")
    return is_clean


def _twins(bench: Bench, lookout: Lookout, intent: Intent) -> list[ResourceRecord]:
    found: list[ResourceRecord] = []
    if bench.run.stopping() is not None or not lookout.is_sendable(intent):
        return found
    place, handler = lookout.place(intent), lookout.handler(intent)
    for _ in range(_MOST_TWINS if place is not None else 0):
        assert place is not None
        physical_id = lookout.find(intent, handler, place)
        twin = lookout.as_record(intent, handler, physical_id, place) if physical_id is not None else None
        if twin is None:
            break
        found.append(twin)
    return found


def _remove(bench: Bench, intent: Intent, twin: ResourceRecord) -> bool:
    try:
        handler = bench.handler_of(twin.type, route_of(twin))
        bench.touched.forget(twin.physical_id)
        handler.delete(bench.context(), twin.physical_id, dict(twin.properties))
    except CloudError as error:
        bench.save(AddPendingDelete(PendingDelete(intent.logical_id, twin, f"{TWIN}; {error}")))
        bench.tell(EventKind.WARNING, intent.logical_id, f"{twin.physical_id} is {TWIN}, and could not be deleted yet")
        return False
    bench.tell(EventKind.WARNING, intent.logical_id, f"deleted {twin.physical_id}: {TWIN}")
    return True
