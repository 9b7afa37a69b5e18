"""The end of a run: last save, journal, exports, the run's own log, `run.json`, and then the lock.

The order is a promise: what comes later may be missing after a crash, what comes earlier never is. A run that lost
its lock writes nothing but its last save, over its own version, and its log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.decide.killed import former_stack
from stackhold.decide.stopping import journal_reason
from stackhold.errors import StoreError
from stackhold.model.journal import JournalSegment
from stackhold.runs import exports

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.record import StateRecord
    from stackhold.model.run import StopCause
    from stackhold.ports.engine import WorkResult
    from stackhold.runs.parts import RunParts
    from stackhold.runs.saver import Saver
    from stackhold.runs.watch import Watch


@dataclass(frozen=True, slots=True)
class Settling:
    """What a run ends with."""

    parts: RunParts
    saver: Saver
    is_first_deploy: bool
    before: StateRecord | None = None
    """The record that the stamp replaced."""

    def save(self, result: WorkResult | None, *, cause: StopCause | None = None) -> bool:
        """Confirm the last save, then what depends on it. `result` is None when the engine broke off.

        False when something could not be written that must be: the run has failed then.
        """
        if not self.saver.flush():
            return False
        if not self._is_ours():
            return True
        if result is None:
            return True
        is_written = self._journal(result, cause)
        if result.record_gone and is_written:
            is_written = self._delete_record()
        if result.exports is not None:
            self._publish(result)
        return is_written

    def resolve_intents(self, result: WorkResult | None) -> None:
        """Take the run file away, or leave in it what is not resolved. Kept as it is when the engine broke off."""
        if result is not None and self._is_ours() and not self.saver.failure:
            self._try("the run file was not removed", self._settle_run_file)

    def clear_request(self, watch: Watch) -> None:
        """Remove a stop request that named our lock."""
        if self._is_ours():
            self._try("a stop request was not removed", watch.clear_request)

    def _settle_run_file(self) -> None:
        if not self.parts.run_file.settle(self.saver.confirmed.record, is_over=True):
            self.parts.log.warn(f"{self.parts.keys.run_file} is another run's now and was left alone")

    def _is_ours(self) -> bool:
        """Whether the lock is still ours as far as we know."""
        fence = self.parts.control.fence
        return fence is not None and fence.is_ours

    def _journal(self, result: WorkResult, cause: StopCause | None) -> bool:
        left = result.journal
        if left is not None:
            return self._try("the rollback journal was not rewritten", lambda: self.parts.journal.rewrite(left))
        if result.settled and result.keeps_journal:
            return True
        if result.settled:
            return self._try("an older rollback journal was not removed", self.parts.journal.clear)
        if not result.done:
            return True
        segment = JournalSegment(
            run_id=self.parts.identity.run_id,
            timestamp=self.parts.lock.corrected_now(),
            reason=journal_reason(cause, is_rollback=self.parts.identity.operation == "rollback"),
            is_initial_deploy=self.is_first_deploy,
            operations=result.done,
            tool_version=self.parts.identity.tool_version,
            extra=former_stack(self.before, self.saver.confirmed.record),
        )
        return self._try("the rollback journal was not written", lambda: self.parts.journal.append(segment))

    def _delete_record(self) -> bool:
        def delete() -> None:
            if not self.saver.delete():
                self.parts.log.warn(f"{self.parts.keys.record} was changed by someone else and was not deleted")

        return self._try("the record was not deleted", delete)

    def _publish(self, result: WorkResult) -> None:
        record = self.saver.confirmed.record
        warning = exports.publish(
            self.parts.store,
            self.parts.keys,
            self.parts.clock,
            exports=result.exports or {},
            outputs=record.outputs if record is not None else {},
            now=self.parts.lock.corrected_now(),
        )
        if warning:
            self.parts.log.warn(warning)

    def _try(self, what: str, write: Callable[[], None]) -> bool:
        try:
            self.parts.outage.sat_out(write)
        except StoreError as error:
            self.parts.log.warn(f"{what}: {error.message}")
            return False
        return True
