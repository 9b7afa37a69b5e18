"""The engine behind `rollback`: undoes what earlier runs left half done, by their journal and the record alone.

It needs no template. What is undone leaves the journal when the run settles; a rollback that is cut short before
that is planned again from the same journal, and what is undone already asks for nothing. What cannot be undone stays
in the journal and holds back only what it depends on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.after import with_last_look
from stackhold.engines.cloudformation.belonging import refuse_elsewhere
from stackhold.engines.cloudformation.bench import DEFAULT_OPTIONS, Bench, DeployOptions
from stackhold.engines.cloudformation.intents import create_again_intent, update_intent
from stackhold.engines.cloudformation.names import Naming
from stackhold.engines.cloudformation.reading import HandlerOf, refuse_other_region
from stackhold.engines.cloudformation.recover import Recoverer
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.rollback_plan import Way, plan_rollback
from stackhold.engines.cloudformation.rollback_work import RollbackExecution
from stackhold.errors import Bug
from stackhold.model.run import Intent, IntentKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stackhold.engines.cloudformation.plan import ResourceChange
    from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing
    from stackhold.engines.cloudformation.route import Native
    from stackhold.engines.cloudformation.values import Lookup, Props
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.model.journal import Journal
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.aws import Aws
    from stackhold.ports.engine import JournalEngine, Looking, RecoveringEngine, Recovery, Run, Work, WorkResult


class RollbackEngine:
    """Undoes what is in a stack's rollback journal."""

    def __init__(
        self,
        *,
        aws: Aws,
        orphans: frozenset[LogicalId] = frozenset(),
        reverts_failed: bool = False,
        options: DeployOptions = DEFAULT_OPTIONS,
        native: Native = handler_for,
    ) -> None:
        """`orphans` are left as they are; `reverts_failed` undoes what failed, or is not known, too."""
        self._aws = aws
        self._orphans = orphans
        self._reverts_failed = reverts_failed
        self._options = options
        self._native = native
        self._handler_of = HandlerOf(native)
        self._recoverer = Recoverer(aws, native)

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """What was found of what a run before had in flight: the record is right before anything goes back."""
        return self._recoverer.recover(left, record, run, may_still_land=may_still_land)

    def plan_back(self, record: StateRecord | None, journal: Journal | None, identity: RunIdentity) -> RollbackWork:
        """What a rollback would do. Raises `InputError` when the journal cannot be followed."""
        refuse_other_region(self._aws, identity.region)
        refuse_elsewhere(self._aws, record)
        plan = plan_rollback(
            record, journal, native=self._native, orphans=self._orphans, reverts_failed=self._reverts_failed
        )
        intents = tuple(self._intents(plan, identity))
        lost = self._recoverer.may_still_land
        return RollbackWork(plan=plan, intents=intents, steps=_steps(plan), bench_for=self._bench, lost=lost)

    def _intents(self, plan: RollbackPlan, identity: RunIdentity) -> Iterator[Intent]:
        """One per physical identity that may come to be, change or go."""
        naming = Naming(self._aws.account(), identity.region, identity.stack, identity.run_id)
        for name, undoing in plan.undoings.items():
            if undoing.way is Way.CREATE_AGAIN and undoing.before is not None:
                yield create_again_intent(name, undoing.before, naming, native=self._native)
            if undoing.way is Way.RESTORE and undoing.now is not None:
                names = {*undoing.now.properties, *(undoing.before.properties if undoing.before else ())}
                yield update_intent(name, undoing.now, identity.run_id, changed=names, native=self._native)
            for item in undoing.removals:
                yield Intent(name, item.type, IntentKind.DELETE, identity.run_id, physical_id=item.physical_id)

    def _bench(self, run: Run) -> Bench:
        return Bench(
            run=run, aws=self._aws, handler_of=self._handler_of, resolve=_resolve, decide=_decide, options=self._options
        )


@dataclass(frozen=True, slots=True)
class RollbackWork:
    """One rollback, decided."""

    plan: RollbackPlan
    intents: Sequence[Intent]
    steps: Sequence[JsonMap]
    bench_for: Callable[[Run], Bench] = field(repr=False)
    lost: Sequence[Intent] = ()
    """Creates that a run before may have sent and that may be carried out later yet."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no journal, so nothing to undo."""
        return not self.plan.segments

    def perform(self, run: Run) -> WorkResult:
        """Carry it out."""
        return with_last_look(
            run,
            self.plan.record,
            self.lost,
            bench_for=self.bench_for,
            work=lambda bench: RollbackExecution(bench, self.plan).perform(),
        )


def _steps(plan: RollbackPlan) -> tuple[JsonMap, ...]:
    return tuple(_step(undoing) for undoing in plan.undoings.values() if undoing.way is not Way.FORGET)


def _step(undoing: Undoing) -> JsonMap:
    return {"logicalId": undoing.logical_id, "type": undoing.type, "operation": undoing.way.value}


def _resolve(type_name: TypeName, logical_id: LogicalId, properties: Props, lookup: Lookup) -> Props:
    raise Bug(f"{logical_id}: a rollback has no template whose references could be resolved")


def _decide(change: ResourceChange, properties: Props) -> ResourceChange:
    raise Bug(f"{change.logical_id}: a rollback compares nothing with a template")


if TYPE_CHECKING:
    _engine: type[JournalEngine] = RollbackEngine
    _recovers: type[RecoveringEngine] = RollbackEngine
    _work: type[Work] = RollbackWork
