"""How a run ends: its report, its log, and the release of its lock.

Every way out comes through here, so that outcome, exit code and message always agree. What stopped a run is put over
what its work says of itself; the loss of the lock is put over everything.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.decide.stopping import end_of
from stackhold.errors import StoreError
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import words
from stackhold.model.run import Outcome, StopCause
from stackhold.model.user_info import without_user_info
from stackhold.runs import exports
from stackhold.runs.lock import Renewed
from stackhold.runs.report import RunReport
from stackhold.runs.successor import successor_of

if TYPE_CHECKING:
    from stackhold.errors import LockHeld
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import WorkResult
    from stackhold.runs.parts import RunParts
    from stackhold.runs.settle import Settling
    from stackhold.runs.watch import Watch

_LATE = (StopCause.FOREIGN_WRITE, StopCause.LOCK_LOST, StopCause.STOOD_DOWN)
_STOPS = (StopCause.SIGINT, StopCause.SIGTERM, StopCause.CANCEL, StopCause.DEADLINE)
_NOTHING_DONE = "the run ended before it changed anything"
_UNCHANGED = {
    Outcome.BLOCKED: "the plan was not approved; nothing was changed",
    Outcome.PLAN_CHANGED: "the stack kept changing while it was planned; nothing was changed",
}


class Closing:
    """The ends of one run."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._is_told = False
        self._came_after: str | None = None
        self.waited_ms = 0
        """How long the run waited for its lock."""

    def stopped_waiting(self, cause: StopCause) -> RunReport:
        """Stopped while it waited for the lock: nothing is held, nothing was changed."""
        self._note_wait()
        outcome, exit_code = end_of(cause, outcome=Outcome.FAILED, exit_code=ExitCode.FAILED)
        return self._close(
            RunReport(
                self._parts.identity,
                outcome,
                exit_code,
                cause=cause,
                error=f"{self._why(cause)} while the run waited for the lock; nothing was changed",
            )
        )

    def shut_out(self, error: LockHeld) -> None:
        """Another run kept the lock: the log says so; whoever called gets the error itself."""
        self._note_wait()
        self.broken(error)

    def nothing_to_do(self, record: StateRecord | None, *, listed: exports.Listed | None = None) -> RunReport:
        """Record and cloud agree with what was asked; so what an earlier deploy left half done is done by now.

        That the index lists the stack's exports, as it was read for the plan, is part of it.
        """
        self.undo_run_file()
        if self._parts.identity.operation == "deploy":
            self._clear_journal()
        if listed is not None:
            self._repair_index(record, listed)
        report = RunReport(self._parts.identity, Outcome.SUCCEEDED, ExitCode.DONE, record=record, is_empty=True)
        return self._close(report)

    def unchanged(self, outcome: Outcome, record: StateRecord | None) -> RunReport:
        """The run ends before it did anything: declined, stopped, or the stack kept changing."""
        self.undo_run_file()
        cause = self._parts.control.cause
        ended, exit_code = end_of(cause, outcome=outcome, exit_code=ExitCode.FAILED)
        error = _UNCHANGED.get(ended, _NOTHING_DONE) if cause is None else f"{self._why(cause)}; nothing was changed"
        return self._close(
            RunReport(
                self._parts.identity,
                ended,
                exit_code,
                cause=cause,
                error=error,
                holder=self._holder,
                record=record,
            )
        )

    def broken(self, error: BaseException) -> None:
        """The engine raised: the log says so; whoever called gets the error itself."""
        said = without_user_info(f"{type(error).__name__}: {error}")
        self._close(RunReport(self._parts.identity, Outcome.FAILED, ExitCode.FAILED, error=said))

    def settled(self, settling: Settling, result: WorkResult, *, watch: Watch) -> RunReport:
        """Settle and release, in the promised order."""
        control = self._parts.control
        cause = control.cause
        if cause is StopCause.STOOD_DOWN:
            self._ask_once_more()
        is_saved = settling.save(result, cause=cause)
        watch.announce()
        if cause is None or self._is_lost:
            cause = control.cause if control.cause in _LATE else None
        report = self._judge(settling, result, cause, is_saved=is_saved)
        report = self._close(report)
        settling.resolve_intents(result)
        settling.clear_request(watch)
        was_lost = self._is_lost
        self.release()
        if self._is_lost and not was_lost:
            report = self._close(self._judge(settling, result, StopCause.LOCK_LOST, is_saved=is_saved))
        return replace(report, warnings=self._parts.log.warnings)

    def release(self) -> None:
        """Give the lock back; a failure is a warning, for the lock then expires by itself.

        A lock of which nobody could say in time that it is ours is not ours to give back: what was in flight may
        still land, and the next run should not meet that before the lock has expired.
        """
        parts = self._parts
        fence = parts.control.fence
        if fence is not None and not fence.is_ours:
            if not fence.is_lost:
                self._tell_left("it was not confirmed in time")
            return
        try:
            hold = parts.outage.sat_out(parts.lock.release)
        except StoreError as error:
            self._tell_left(error.message)
            return
        if not hold.is_ours and fence is not None:
            fence.lose(hold.holder)

    def _tell_left(self, why: str) -> None:
        warning = (
            f"the lock was not released: {why}; it expires by itself, or clear it with: "
            f"{self._parts.settings.unlock_command}"
        )
        if warning not in self._parts.log.warnings:
            self._parts.log.warn(warning)

    def _judge(self, settling: Settling, result: WorkResult, cause: StopCause | None, *, is_saved: bool) -> RunReport:
        outcome, exit_code = end_of(cause, outcome=result.outcome, exit_code=result.exit_code)
        is_complete = is_saved and not settling.saver.unsaved and result.outcome is Outcome.SUCCEEDED
        after = "everything had been done" if is_complete and cause in _STOPS else ""
        error = "; ".join(each for each in (self._why(cause), result.error or after) if each)
        saver = settling.saver
        if not is_saved and cause is None:
            is_kept = bool(result.done or saver.unsaved or result.record_gone)
            outcome, exit_code = Outcome.FAILED, ExitCode.PARTLY if is_kept else ExitCode.FAILED
        if not is_saved:
            error = error or f"the run could not settle: {saver.failure or 'see the warnings'}"
        if saver.unsaved:
            because = f", because the last save was refused ({saver.failure})" if saver.failure else ""
            self._parts.log.warn(f"in no record{because}: {', '.join(saver.unsaved)}")
        return RunReport(
            self._parts.identity,
            outcome,
            exit_code,
            cause=cause,
            summary=result.summary,
            error=error,
            record=saver.confirmed.record,
            changed=True,
            is_complete=is_complete,
            is_journalled=is_saved and self._is_journalled(result),
            generation=self._parts.lock.generation,
            holder=self._holder or self._came_after or "",
            unsaved=saver.unsaved,
            is_recorded=not saver.failure,
        )

    def _is_journalled(self, result: WorkResult) -> bool:
        """Whether `rollback` has something to undo: of this run, or of those before it."""
        if result.settled:
            return result.keeps_journal and self._parts.journal.journal is not None
        return bool(result.done) or self._parts.journal.journal is not None

    def _close(self, report: RunReport) -> RunReport:
        """Tell the end, write the log, and complete the report."""
        log = self._parts.log
        cause = report.cause.value if report.cause is not None else None
        if not self._is_told:
            self._is_told = True
            data: dict[str, object] = {"outcome": report.outcome.value, "exitCode": int(report.exit_code)}
            log.say(EventKind.RUN_FINISHED, report.error, data if cause is None else {**data, "cause": cause})
        ended_at = self._parts.clock.now()
        log.update(
            lambda before: replace(
                before,
                ended_at=ended_at,
                outcome=report.outcome,
                exit_code=int(report.exit_code),
                cause=cause,
                error=report.error,
                summary=report.summary,
            )
        )
        if warning := log.write():
            log.warn(warning)
        return replace(report, waited_ms=self.waited_ms, warnings=log.warnings)

    def _why(self, cause: StopCause | None) -> str:
        """What stopped the run; empty when nothing did."""
        match cause:
            case None:
                return ""
            case StopCause.SIGINT | StopCause.SIGTERM:
                return f"stopped by {cause.value}"
            case StopCause.CANCEL:
                return "stopped because stackhold cancel asked for it"
            case StopCause.DEADLINE:
                deadline = self._parts.settings.deadline
                source = f", from {deadline.source}" if deadline.source else ""
                return f"the deadline ({words(deadline.ms)}{source}) passed"
            case StopCause.LOCK_LOST if self._holder:
                return f"the lock was lost; {self._holder} holds it now"
            case StopCause.LOCK_LOST if self._is_given_up:
                return "left at once"
            case StopCause.LOCK_LOST:
                successor = self._successor()
                return "the lock was lost; nobody holds it now" + (f"; {successor} ran since" if successor else "")
            case StopCause.STOOD_DOWN:
                return "the lock was not confirmed in time, so the run stood down"
            case StopCause.FOREIGN_WRITE:
                return f"{self._parts.keys.record} was changed by someone else while this run held the lock"

    def _ask_once_more(self) -> None:
        """The run stood down: is the lock still ours? Only then more than the last save may be written."""
        fence = self._parts.control.fence
        assert fence is not None
        renewed, sent_at, holder = self._parts.lock.renew()
        match renewed:
            case Renewed.CONFIRMED:
                fence.confirm(sent_at)
            case Renewed.LOST:
                fence.lose(holder)
            case Renewed.UNCLEAR:
                fence.doubt()

    def _note_wait(self) -> None:
        """All that the run did was to wait for its lock."""
        self.waited_ms = self._parts.clock.boot() - self._parts.control.started_at
        self._parts.log.update(lambda log: replace(log, waited_ms=self.waited_ms))

    def _repair_index(self, record: StateRecord | None, listed: exports.Listed) -> None:
        if self._is_lost:
            return
        parts = self._parts
        outputs = record.outputs if record is not None else {}
        said = exports.repair(
            parts.store, parts.keys, parts.clock, listed, outputs=outputs, now=parts.lock.corrected_now()
        )
        if said:
            parts.log.warn(said)

    def _clear_journal(self) -> None:
        if self._is_lost:
            return
        try:
            self._parts.journal.clear()
        except StoreError as error:
            self._parts.log.warn(f"an older rollback journal was not removed: {error.message}")

    def undo_run_file(self) -> None:
        """An earlier try to begin may have written it."""
        if self._is_lost:
            return
        try:
            self._parts.run_file.undo()
        except StoreError as error:
            self._parts.log.warn(f"the run file was not removed: {error.message}")

    def _successor(self) -> str:
        """Who ran after us and is done already; empty when nobody did, or nobody can tell."""
        parts = self._parts
        if self._came_after is None:
            self._came_after = successor_of(
                parts.store, parts.keys, run_id=parts.identity.run_id, generation=parts.lock.generation
            )
        return self._came_after

    @property
    def _is_given_up(self) -> bool:
        fence = self._parts.control.fence
        return fence is not None and fence.is_given_up

    @property
    def _is_lost(self) -> bool:
        fence = self._parts.control.fence
        return fence is not None and fence.is_lost

    @property
    def _holder(self) -> str:
        fence = self._parts.control.fence
        return fence.holder if fence is not None else ""
