"""Carries a rollback out: the coordinator, in the calling thread.

Each step starts when all that must go back before it has. One that fails, or is left alone, holds back what it still
depends on, and nothing else. What is undone is out of the journal that the result hands over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.decide.record import apply_changes
from stackhold.engines.cloudformation.patience import Trace
from stackhold.engines.cloudformation.rollback_order import Part, order_of
from stackhold.engines.cloudformation.rollback_plan import Way, what_is_left
from stackhold.engines.cloudformation.summary import counted, summary_of
from stackhold.engines.cloudformation.walk import Crew, walk
from stackhold.engines.cloudformation.way_back import WayBack
from stackhold.errors import OutcomeUnknown
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.journal import PREVIOUS_OUTPUTS, PREVIOUS_PARAMETERS, PREVIOUS_TAGS
from stackhold.model.record import SetStack
from stackhold.model.run import IntentState, Outcome
from stackhold.ports.engine import WorkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.bench import Bench
    from stackhold.engines.cloudformation.rollback_order import Step
    from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing
    from stackhold.engines.cloudformation.walk import Walked
    from stackhold.model.ids import LogicalId


class RollbackExecution:
    """One rollback."""

    def __init__(self, bench: Bench, plan: RollbackPlan) -> None:
        self._bench = bench
        self._plan = plan
        self._order = order_of(plan)
        self._way_back = WayBack(bench, plan)
        self._told: dict[LogicalId, dict[str, Any]] = {}
        self._crew = Crew(bench.options.concurrency)

    def perform(self) -> WorkResult:
        """Do it all."""
        bench = self._bench
        count = len(self._plan.undoings)
        bench.tell(EventKind.GOING_BACK, message=f"going back on {counted(count, 'resource')}", operations=count)
        try:
            walked = walk(
                self._order,
                self._carry_out,
                crew=self._crew,
                stopping=bench.run.stopping,
                goes_on=True,
                is_instant=lambda step: self._plan.undoings[step[0]].is_instant,
            )
            return self._ended(walked)
        finally:
            if bench.run.stopping() is not None:
                bench.given_up.set()
            self._crew.dismiss()

    def _carry_out(self, step: Step, release: Callable[[], None]) -> None:
        name, part = step
        undoing = self._plan.undoings[name]
        bench = self._bench
        began = bench.run.clock.boot()
        trace = Trace()
        about: dict[str, Any] = {"type": undoing.type, "operation": undoing.way.value}
        if undoing.physical_id:
            about["physicalId"] = undoing.physical_id
        if not undoing.is_instant:
            bench.tell(EventKind.OPERATION_STARTED, name, **about)
        try:
            note = self._way_back.make(undoing, trace) if part is Part.MAKE else self._way_back.back(undoing, trace)
        except Exception as error:
            is_unclear = isinstance(error, OutcomeUnknown) or trace.is_unclear
            bench.mark(name, IntentState.UNKNOWN if is_unclear else IntentState.DONE)
            self._told[name] = {**about, "outcome": "left", "error": str(error)}
            kind = EventKind.OPERATION_SKIPPED if undoing.way is Way.LEAVE else EventKind.OPERATION_FAILED
            bench.tell(kind, name, str(error), durationMs=bench.run.clock.boot() - began, **about)
            raise
        took = self._told.get(name, {}).get("durationMs", 0) + bench.run.clock.boot() - began
        notes = [text for text in (self._told.get(name, {}).get("note", ""), note) if text]
        self._told[name] = {
            **about,
            "outcome": "done",
            "durationMs": took,
            **({"note": "; ".join(notes)} if notes else {}),
        }
        is_last = part is Part.BACK or (name, Part.BACK) not in self._order
        if is_last:
            self._tell_done(undoing, about, self._told[name])

    def _tell_done(self, undoing: Undoing, about: Mapping[str, Any], told: Mapping[str, Any]) -> None:
        bench = self._bench
        bench.mark(undoing.logical_id, IntentState.DONE)
        if undoing.way is Way.FORGET:
            return
        kind = EventKind.OPERATION_SKIPPED if undoing.is_instant else EventKind.OPERATION_DONE
        note = str(told.get("note", ""))
        bench.tell(kind, undoing.logical_id, note, durationMs=told["durationMs"], **about)

    def _ended(self, walked: Walked[Step]) -> WorkResult:
        undoings = self._plan.undoings
        open_names = {name for name, _ in (*walked.failed, *walked.not_started, *walked.in_flight)}
        done = undoings.keys() - open_names
        self._tell_left(walked)
        left = what_is_left(self._plan.segments, done, moved=self._way_back.moved)
        is_full = not left
        if is_full:
            self._restore_stack()
        record = self._plan.record
        after = apply_changes(record, self._way_back.saved()) if record is not None else None
        is_gone = is_full and (after is None or not (after.resources or after.pending_deletes))
        return WorkResult(
            outcome=Outcome.SUCCEEDED if is_full else Outcome.FAILED,
            exit_code=ExitCode.DONE if is_full else ExitCode.PARTLY,
            settled=is_full,
            journal=left if done or is_full else None,
            record_gone=is_gone,
            exports={} if is_gone and record is not None and record.outputs else None,
            summary=summary_of({name: entry for name, entry in self._told.items() if self._is_told(name)}, None),
            error="" if is_full else self._first_error(walked),
        )

    def _tell_left(self, walked: Walked[Step]) -> None:
        """Say of what was not tried, or given up, why."""
        is_stopped = self._bench.run.stopping() is not None
        for step in walked.not_started:
            name = step[0]
            blockers = sorted({other for other, _ in self._order[step]} & {other for other, _ in walked.failed})
            self._bench.mark(name, IntentState.DONE)
            reason = f"waits for {', '.join(blockers)}" if blockers else "waits for what could not be undone"
            if is_stopped and not blockers:
                self._leave(name, "not tried", "the run was stopped")
            else:
                self._leave(name, "left", reason)
        for name, _ in walked.in_flight:
            self._bench.mark(name, IntentState.UNKNOWN)
            self._leave(name, "unknown", "given up in flight")

    def _leave(self, name: LogicalId, outcome: str, reason: str) -> None:
        undoing = self._plan.undoings[name]
        entry: dict[str, Any] = {"type": undoing.type, "operation": undoing.way.value, "outcome": outcome}
        if undoing.physical_id:
            entry["physicalId"] = undoing.physical_id
        self._told[name] = {**entry, ("error" if outcome == "left" else "reason"): reason}

    def _is_told(self, name: LogicalId) -> bool:
        undoing = self._plan.undoings[name]
        return undoing.way is not Way.FORGET or bool(undoing.removals) or self._told[name]["outcome"] != "done"

    def _first_error(self, walked: Walked[Step]) -> str:
        for (name, _), error in walked.failed.items():
            return f"{name}: {error}"
        return "not everything was undone"

    def _restore_stack(self) -> None:
        """Outputs, parameters and tags as they were before the oldest run that changed them."""
        former: dict[str, Any] = {}
        for segment in reversed(self._plan.segments):
            former.update(segment.extra)
        found = [former.get(name) for name in (PREVIOUS_OUTPUTS, PREVIOUS_PARAMETERS, PREVIOUS_TAGS)]
        outputs, parameters, tags = (each if isinstance(each, dict) else None for each in found)
        if any(each is not None for each in (outputs, parameters, tags)):
            self._way_back.save(SetStack(outputs=outputs, parameters=parameters, tags=tags))
