"""The loop: one operation on one root module, step by step, with what must happen between the steps.

Right after `init` it takes up what earlier runs left: a state that could not be written, resources that no state
knows, a lock that is provably one of theirs. A plan that held an error is never applied; a step is good only by its
exit code and its diagnostics together.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackhold.engines.terraform import planfile
from stackhold.engines.terraform.diagnostics import Verdict, error_summary, read_validation, redacted
from stackhold.engines.terraform.environment import secret_values
from stackhold.engines.terraform.inheritance import Inheritance
from stackhold.engines.terraform.lock_words import held_by
from stackhold.engines.terraform.report import Failure, RunnerReport, StepRecord
from stackhold.engines.terraform.runtime import identify
from stackhold.engines.terraform.steps import Operation, When, steps, version_step
from stackhold.errors import StackholdError
from stackhold.model.events import Event, EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.engines.terraform.diagnostics import Diagnostic
    from stackhold.engines.terraform.leftovers import Evidence
    from stackhold.engines.terraform.steps import Script, Step
    from stackhold.engines.terraform.taking import StepEnd, Workshop


class Ended(Exception):
    """The operation ends here."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(slots=True)
class Runner:
    """One operation on one module. Use once."""

    workshop: Workshop
    script: Script
    plan_key: bytes
    left: Sequence[Evidence] = ()
    """What earlier runs that died had in flight."""
    report: RunnerReport = field(default_factory=RunnerReport)
    _found_changes: bool = False
    _is_approved: bool = False
    _refreshed: StepEnd | None = None
    _inheritance: Inheritance = field(init=False)

    def __post_init__(self) -> None:
        self._inheritance = Inheritance(self.workshop, self.script, self.left, self._take)

    def run(self) -> RunnerReport:
        """Do it; how it went. Raises what went wrong before the first step had ended: nothing was changed then."""
        try:
            self._identify()
            for step in steps(self.script):
                if self._is_due(step):
                    self._check_stop(step)
                    self._do(step)
        except Ended as ended:
            self.report = replace(self.report, failure=ended.failure)
        except StackholdError as error:
            if not self.report.steps:
                raise
            self.report = replace(self.report, failure=Failure("step", "", error.message, hint=error.hint))
        inherited = self._inheritance
        return replace(
            self.report,
            notes=(*self.report.notes, *inherited.notes),
            unrecorded=(*self.report.unrecorded, *inherited.unrecorded),
        )

    @property
    def must_keep_streams(self) -> bool:
        """Whether a stream holds what is nowhere else."""
        return self._inheritance.must_keep_streams

    @property
    def has_cleared_up(self) -> bool:
        """Whether nothing of what earlier runs left is open any more."""
        return self._inheritance.is_settled

    def _identify(self) -> None:
        end = self._take(version_step())
        if not end.is_good:
            raise self._ended(end)
        identity = identify("", end.output.decode(errors="replace"))
        self.report = replace(self.report, product=identity.product, version=identity.version)

    def _is_due(self, step: Step) -> bool:
        match step.when:
            case When.ALWAYS:
                return True
            case When.CHANGES:
                return self._found_changes
            case When.APPROVED:
                return self._found_changes and self._is_approved

    def _check_stop(self, step: Step) -> None:
        if self.workshop.host.stopping() is not None:
            raise Ended(Failure("interrupted", step.name, f"stopped before {step.name}"))

    def _do(self, step: Step) -> None:
        if step.name == "state push" and self.script.is_renumbered:
            step = self._inheritance.renumbered_push(step)
        if step.takes_lock and step.name != "init":
            self.workshop.host.note(step.name)
            end = self._inheritance.take_first_locked(step)
        else:
            end = self._take(step)
        self._learn(step, end)
        if step.changes:
            self._salvage(end)
        if not end.is_good:
            raise self._ended(end)
        self._after(step, end)

    def _take(self, step: Step) -> StepEnd:
        end = self.workshop.take(step)
        self.report = self.report.with_step(StepRecord(step.name, end.child.exit_code, end.child.ms))
        if end.child.was_killed:
            self.report = replace(self.report, was_killed=True)
            if step.changes:
                self.report = self.report.with_note(f"{step.name} was killed; the next run names what it may have left")
        if end.child.swept:
            self.report = self.report.with_note(_swept(end.child.swept, step.name))
        return end

    def _learn(self, step: Step, end: StepEnd) -> None:
        """Keep what the stream says, whatever the step came to."""
        summary = end.summary
        if summary is None:
            if step.name == "validate":
                self._keep(diagnostics=read_validation(end.output.decode(errors="replace")))
            return
        self._keep(diagnostics=summary.diagnostics)
        done = sum(1 for each in summary.touched if each.touch.value == "done")
        self.report = replace(
            self.report,
            product=summary.product or self.report.product,
            changes=summary.changes if step.changes and step.name != "refresh" else self.report.changes,
            outputs=summary.outputs if step.changes else self.report.outputs,
            touched=self.report.touched + (done if step.changes else 0),
        )

    def _keep(self, *, diagnostics: Sequence[Diagnostic]) -> None:
        self.report = replace(self.report, diagnostics=(*self.report.diagnostics, *diagnostics))

    def _after(self, step: Step, end: StepEnd) -> None:
        match step.name:
            case "init":
                self._inheritance.take_up_state()
            case "plan":
                self._found_changes = end.verdict is Verdict.CHANGES
                if not self._found_changes:
                    self._check_expected()
                    self._conclude_drift(None)
            case "show":
                self._judge_plan(end)
            case "refresh":
                self._refreshed = end
            case "state list":
                self._check_restored(end)
            case _:
                pass

    def _judge_plan(self, end: StepEnd) -> None:
        plan = planfile.summarize(end.output, key=self.plan_key)
        self.report = replace(self.report, plan=plan)
        self._conclude_drift(plan)
        self._announce(plan)
        decision = self.workshop.host.approve(plan)
        if self.script.operation not in (Operation.APPLY, Operation.DESTROY):
            return
        if not decision.is_yes:
            raise Ended(Failure(decision.kind, "apply", f"{decision.reason}; nothing was changed", hint=decision.hint))
        self._is_approved = True

    def _check_expected(self) -> None:
        """Nothing to do is not the plan that was approved."""
        if self.script.expects_plan:
            message = "there is nothing to do, and that is not the plan that was approved; nothing was changed"
            raise Ended(Failure("plan-changed", "apply", message))

    def _announce(self, plan: planfile.PlanSummary) -> None:
        """How many operations an apply of this plan will tell of: a replacement is two."""
        host = self.workshop.host
        total = plan.create + plan.update + plan.delete + 2 * plan.replace + plan.import_
        host.tell(Event(EventKind.PLANNED, host.clock.now(), None, data={"total": total}))

    def _check_restored(self, end: StepEnd) -> None:
        """A state that was pushed must show what the backup had."""
        if self.script.recorded and not end.output.strip():
            raise Ended(
                Failure(
                    "step",
                    "state list",
                    f"the backup records {self.script.recorded} resources, and the state shows none after the restore",
                )
            )

    def _conclude_drift(self, plan: planfile.PlanSummary | None) -> None:
        if self.script.operation is Operation.DRIFT and self._refreshed is not None and self._refreshed.summary:
            found = self._refreshed.summary
            self.report = replace(
                self.report,
                drift=planfile.drift_summary(found, plan),
                drifted=tuple(planfile.PlannedChange(address, action) for address, action in found.drifted),
            )

    def _salvage(self, end: StepEnd) -> None:
        """A state that could not be written is taken up at once where that is possible, else by the next run."""
        if end.summary is not None and end.summary.emergency_state is not None:
            self._inheritance.keep_emergency(end.summary.emergency_state)
        if end.is_good:
            return
        try:
            if self.workshop.host.stopping() is None:
                self._inheritance.take_up_state(is_again=True)
        except StackholdError as error:
            self.report = self.report.with_note(error.message)
        with suppress(StackholdError):  # what cannot be read stays where it is, and stops the next run
            self._inheritance.rescue()

    def _ended(self, end: StepEnd) -> Ended:
        step, child = end.step.name, end.child
        diagnostics = end.summary.diagnostics if end.summary is not None else self.report.diagnostics
        tail = error_summary(diagnostics, lock=end.lock, stderr=child.stderr)
        if end.summary is None and step != "validate":
            stderr = redacted(child.stderr, secret_values(self.workshop.env))
            self.report = replace(self.report, stderr=stderr)
        match end.verdict:
            case Verdict.LOCKED if end.lock is not None:
                message = f"{step}: {held_by(end.lock)}"
                return Ended(Failure("step", step, message, tail=tail, lock=end.lock))
            case Verdict.INTERRUPTED:
                how = "had to be killed" if child.was_killed else "was interrupted"
                return Ended(Failure("interrupted", step, f"{step} {how}", tail=tail))
            case _:
                return Ended(Failure("step", step, f"{step} failed: {tail or f'exit {child.exit_code}'}", tail=tail))


def _swept(number: int, step: str) -> str:
    what = "1 process" if number == 1 else f"{number} processes"
    return f"{what} that {step} had started and left behind {'was' if number == 1 else 'were'} killed"
