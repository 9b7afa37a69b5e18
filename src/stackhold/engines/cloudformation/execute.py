"""Carries a plan out: the coordinator of a deploy and of a destroy, in the calling thread.

Forward over the template's graph, then outputs, then the clean-up. A failure before the clean-up goes back, unless
that is turned off; a stop leaves things as they are and says in the journal what was done. Whatever happens, the
record holds what exists, and every resource has an outcome in the summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.attempt import Attempt, Verb, journal_operation, reason_of
from stackhold.engines.cloudformation.baseline import Baseline
from stackhold.engines.cloudformation.cleanup import Removal, Removed, remove_all
from stackhold.engines.cloudformation.goback import (
    Undone,
    WentBack,
    go_back,
    keep_half_made,
    look_command,
    remove_half_made,
)
from stackhold.engines.cloudformation.known import Known
from stackhold.engines.cloudformation.operations import Operations, is_forward, is_instant
from stackhold.engines.cloudformation.outputs import resolve_outputs
from stackhold.engines.cloudformation.plan import Action
from stackhold.engines.cloudformation.summary import not_tried, still_there, summary_of, told
from stackhold.engines.cloudformation.taken_names import is_same_one
from stackhold.engines.cloudformation.walk import Crew, Walked, walk
from stackhold.errors import StackholdError, StoodDown
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.record import SetStack
from stackhold.model.run import IntentState, Outcome
from stackhold.ports.engine import WorkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.plan import Plan
    from stackhold.model.ids import LogicalId
    from stackhold.model.journal import JournalOperation
    from stackhold.model.record import ResourceRecord, StateRecord

_CHANGING: Final = frozenset({Verb.CREATE, Verb.UPDATE, Verb.REPLACE, Verb.DELETE})


@dataclass(frozen=True, slots=True)
class StackFacts:
    """What the first save says of the stack as a whole."""

    stack_id: str
    record: StateRecord | None

    @property
    def is_first(self) -> bool:
        """Whether nothing of the stack was recorded before."""
        return self.record is None or not (self.record.resources or self.record.pending_deletes)


class DeployExecution:
    """One deploy."""

    def __init__(self, bench: Bench, plan: Plan, facts: StackFacts) -> None:
        self._bench = bench
        self._plan = plan
        self._facts = facts
        records = facts.record.resources if facts.record else {}
        self._known = Known(records, handler_of=bench.handler, read=bench.read)
        self._operations = Operations(bench, plan, self._known)
        self._crew = Crew(bench.options.concurrency)
        self._outputs: dict[str, str] = {}
        self._exports: dict[str, str] = {}

    def perform(self) -> WorkResult:
        """Do it all."""
        try:
            return self._perform()
        finally:
            if self._bench.run.stopping() is not None:
                self._bench.given_up.set()
            self._crew.dismiss()

    def _perform(self) -> WorkResult:
        self._save_stack()
        walked, baseline = self._forward()
        problem = self._first_problem(walked) or (self._resolve_outputs() if walked.is_complete else "")
        stop = self._bench.run.stopping()
        if not problem and walked.is_complete:
            removals = self._removals()
            if self._is_saved(removals):
                return self._complete(baseline, removals)
        self._settle_marks(walked)
        if stop is not None or not problem:
            return self._stopped(walked, problem)
        if not self._bench.options.rollback:
            return self._kept_going(walked, problem)
        return self._back(problem)

    def _save_stack(self) -> None:
        record = self._facts.record
        lineage = record.lineage if record and record.lineage else self._bench.run.clock.nonce()
        parameters = dict(self._plan.parameters) if self._facts.is_first else None
        tags = dict(self._plan.own_tags) if self._facts.is_first else None
        self._bench.save(SetStack(lineage=lineage, stack_id=self._facts.stack_id, parameters=parameters, tags=tags))

    def _forward(self) -> tuple[Walked[LogicalId], Baseline]:
        changes = self._plan.changes
        needs = {name: self._plan.needs.get(name, frozenset()) for name, item in changes.items() if is_forward(item)}
        baseline = Baseline(
            self._bench, [changes[name] for name in needs if changes[name].action is not Action.KEEP], crew=self._crew
        )
        attempts = self._operations.attempts

        def carry_out(name: LogicalId, release: Callable[[], None]) -> None:
            self._operations.carry_out(name, release)
            if name in attempts:
                baseline.note(attempts[name])

        walked = walk(
            needs,
            carry_out,
            crew=self._crew,
            stopping=self._bench.run.stopping,
            is_instant=lambda name: is_instant(changes[name]),
            is_held=self._operations.has_failed,
        )
        return walked, baseline

    def _resolve_outputs(self) -> str:
        try:
            self._outputs, self._exports = resolve_outputs(self._plan.outputs, self._known.lookup)
        except StackholdError as error:
            self._bench.tell(EventKind.WARNING, message=str(error))
            return str(error)
        return ""

    def _is_saved(self, removals: list[Removal]) -> bool:
        """Whether the new ids of replaced resources are safe, so that the old ones may go."""
        if any(removal.is_pending for removal in removals):
            try:
                self._bench.save(confirmed=True)
            except StoodDown:
                return False
        return True

    def _complete(self, baseline: Baseline, removals: list[Removal]) -> WorkResult:
        bench, plan = self._bench, self._plan
        baseline.start_all()
        removed = remove_all(bench, removals, old_needs=plan.old_needs, crew=self._crew, demotes=True)
        baseline.finish(self._known, self._operations.attempts, bench.run.stopping)
        bench.save(SetStack(outputs=self._outputs, parameters=dict(plan.parameters), tags=dict(plan.own_tags)))
        is_done = not removed.left
        return WorkResult(
            outcome=Outcome.SUCCEEDED if is_done else Outcome.FAILED,
            exit_code=ExitCode.DONE if is_done else ExitCode.PARTLY,
            done=(*self._done(), *removed.operations()),
            settled=not removed.untouched,
            exports=self._changed_exports(),
            summary=self._summary(removed=removed),
            error="" if is_done else (removed.first_error or still_there(removed)),
        )

    def _removals(self) -> list[Removal]:
        """What the clean-up has to do; of what is in use again, under whatever logical id, the record only lets go."""
        plan = self._plan
        found: list[Removal] = []
        for name, change in plan.changes.items():
            if change.recorded is None:
                continue
            if change.action is Action.DELETE:
                found.append(Removal(name, change.recorded, kept_by=change.keeps_old))
            elif change.action is Action.RETAIN:
                found.append(Removal(name, change.recorded, kept_by=change.keeps_old or "Retain"))
            else:
                found += self._old_one(name)
        found += [Removal(item.logical_id, item.resource, is_pending=True) for item in plan.pending_deletes]
        in_use = [removal for removal in found if self._is_in_use(removal.resource)]
        for removal in in_use:
            self._bench.save(removal.dropped())
            self._bench.mark(removal.logical_id, IntentState.DONE, physical_id=removal.resource.physical_id)
        return [removal for removal in found if removal not in in_use]

    def _is_in_use(self, resource: ResourceRecord) -> bool:
        """Whether a resource of the stack, as it is now, is that very one of the cloud."""
        living = (self._known.record(name) for name, change in self._plan.changes.items() if is_forward(change))
        return any(
            is_same_one(one, resource) and is_same_one(one, resource, scope=self._bench.handler(resource).scope)
            for one in living
            if one is not None
        )

    def _old_one(self, name: LogicalId) -> list[Removal]:
        attempt = self._operations.attempts.get(name)
        if attempt is None or attempt.verb is not Verb.REPLACE or attempt.before is None or attempt.is_old_gone:
            return []
        if not attempt.keeps_old:
            return [Removal(name, attempt.before, is_pending=True)]
        self._bench.tell(
            EventKind.OPERATION_SKIPPED,
            name,
            f"the old one is kept in the cloud as {attempt.before.physical_id} (UpdateReplacePolicy), no longer in the "
            "record",
            type=attempt.type,
            operation="retain",
            physicalId=attempt.before.physical_id,
        )
        return []

    def _back(self, problem: str) -> WorkResult:
        bench = self._bench
        back = go_back(bench, self._plan, self._known, self._operations.attempts, crew=self._crew)
        left = [name for name, undone in back.undone.items() if undone is Undone.LEFT]
        attempts = self._operations.attempts
        return WorkResult(
            outcome=Outcome.FAILED,
            exit_code=ExitCode.FAILED if back.is_full else ExitCode.PARTLY,
            done=tuple(_with_status(attempts[name]) for name in left if attempts[name].verb in _CHANGING),
            settled=back.is_full,
            keeps_journal=back.is_full and not self._facts.is_first,
            record_gone=back.is_full and self._facts.is_first,
            summary=self._summary(back=back),
            error=problem,
        )

    def _kept_going(self, walked: Walked[LogicalId], problem: str) -> WorkResult:
        """No going back: what was done stays, and what a failed create left behind goes."""
        reasons: dict[LogicalId, str] = {}
        as_before: set[LogicalId] = set()
        for name in walked.failed:
            attempt = self._operations.attempts[name]
            if attempt.verb in {Verb.CREATE, Verb.REPLACE} and attempt.after is None:
                reason = remove_half_made(self._bench, attempt)
                if reason is not None:
                    reasons[name] = reason
                elif not attempt.is_old_gone:
                    as_before.add(name)
            else:
                self._bench.mark(name, IntentState.DONE)
        return WorkResult(
            outcome=Outcome.FAILED,
            exit_code=ExitCode.PARTLY,
            done=tuple(operation for operation in self._done() if operation.logical_id not in as_before),
            settled=False,
            summary=self._summary(reasons=reasons),
            error=problem,
        )

    def _stopped(self, walked: Walked[LogicalId], problem: str) -> WorkResult:
        """A stop: nothing is undone. The journal says what was done, and what may have been."""
        for name in walked.failed:
            keep_half_made(self._bench, self._operations.attempts[name])
        done = self._done()
        nothing_done = not done and not walked.in_flight
        return WorkResult(
            outcome=Outcome.FAILED if problem else Outcome.INTERRUPTED,
            exit_code=ExitCode.PARTLY,
            done=done,
            settled=nothing_done,
            keeps_journal=nothing_done and not self._facts.is_first,
            record_gone=nothing_done and self._facts.is_first,
            summary=self._summary(not_started=walked.not_started),
            error=problem or "not everything was done",
        )

    def _settle_marks(self, walked: Walked[LogicalId]) -> None:
        """Tell the run how far each intent has come: what was never sent is resolved, what is unclear is not."""
        attempts = self._operations.attempts
        for name in walked.not_started:
            self._bench.mark(name, IntentState.DONE)
        for name in walked.failed:
            trace = attempts[name].trace
            if trace.is_unclear:
                self._bench.mark(name, IntentState.UNKNOWN)
            elif not trace.left_something or attempts[name].after is not None:
                self._bench.mark(name, IntentState.DONE)
        for name in walked.in_flight:
            self._bench.mark(name, IntentState.UNKNOWN)
        for name, change in self._plan.changes.items():
            if not is_forward(change):
                self._bench.mark(name, IntentState.DONE)

    def _first_problem(self, walked: Walked[LogicalId]) -> str:
        """What failed first; a call that was not let go is the stop's doing, not a failure."""
        for name, error in walked.failed.items():
            if isinstance(error, StoodDown):
                continue
            attempt = self._operations.attempts.get(name)
            looks = f"; look for it with: {look_command(self._bench, attempt)}" if attempt and _is_lost(attempt) else ""
            return f"{name}: {reason_of(error)}{looks}"
        return ""

    def _done(self) -> tuple[JournalOperation, ...]:
        """Finished operations in order, then those that failed half-way or are not known."""
        attempts = [attempt for attempt in self._operations.attempts.values() if attempt.verb in _CHANGING]
        finished = sorted((item for item in attempts if item.ended and item.error is None), key=lambda item: item.ended)
        others = [item for item in attempts if item not in finished and (item.trace.left_something or not item.ended)]
        return tuple(_with_status(attempt) for attempt in [*finished, *others])

    def _changed_exports(self) -> Mapping[str, object] | None:
        had_outputs = bool(self._facts.record and self._facts.record.outputs)
        return dict(self._exports) if self._exports or had_outputs else None

    def _summary(
        self,
        *,
        removed: Removed | None = None,
        back: WentBack | None = None,
        reasons: Mapping[LogicalId, str] | None = None,
        not_started: Collection[LogicalId] | None = None,
    ) -> dict[str, object]:
        resources = {
            name: told(attempt)
            for name, attempt in self._operations.attempts.items()
            if attempt.verb is not Verb.NOTHING or attempt.error
        }
        for name, undone in (back.undone if back else {}).items():
            resources[name]["wentBack"] = undone.value
            if reason := (back.reasons.get(name) if back else None):
                resources[name]["reason"] = reason
            if back and name in back.names_taken:
                resources[name]["isNameTaken"] = True
        for name, reason in (reasons or {}).items():
            resources[name]["reason"] = reason
        if not_started is not None:
            resources.update(not_tried(self._plan, not_started))
        return summary_of(resources, removed)


class DestroyExecution:
    """One destroy: everything that is recorded, dependents first."""

    def __init__(self, bench: Bench, plan: Plan, record: StateRecord) -> None:
        self._bench = bench
        self._plan = plan
        self._record = record

    def perform(self) -> WorkResult:
        """Do it all."""
        bench, plan = self._bench, self._plan
        removals = [
            Removal(name, change.recorded, kept_by=_keeper(change.action, change.keeps_old))
            for name, change in plan.changes.items()
            if change.recorded is not None
        ]
        removals += [Removal(item.logical_id, item.resource, is_pending=True) for item in plan.pending_deletes]
        crew = Crew(bench.options.concurrency)
        removed = remove_all(bench, removals, old_needs=plan.old_needs, crew=crew, demotes=False)
        crew.dismiss()
        if removed.left and bench.run.stopping() is not None:
            bench.given_up.set()
        is_done = not removed.left
        return WorkResult(
            outcome=Outcome.SUCCEEDED if is_done else Outcome.FAILED,
            exit_code=ExitCode.DONE if is_done else ExitCode.PARTLY,
            done=removed.operations(),
            settled=is_done,
            record_gone=is_done,
            exports={} if self._record.outputs and is_done else None,
            summary=summary_of({}, removed),
            error="" if is_done else (removed.first_error or still_there(removed)),
        )


def _with_status(attempt: Attempt) -> JournalOperation:
    if attempt.error is None and attempt.ended:
        return journal_operation(attempt)
    return journal_operation(attempt, status="unknown" if attempt.trace.is_unclear or not attempt.ended else "failed")


def _is_lost(attempt: Attempt) -> bool:
    return attempt.verb in {Verb.CREATE, Verb.REPLACE} and attempt.after is None and attempt.trace.is_unclear


def _keeper(action: Action, keeps_old: str | None) -> str | None:
    return keeps_old or ("Retain" if action is Action.RETAIN else None)
