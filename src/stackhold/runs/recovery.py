"""What a run does first when an earlier one left its run file: stamp, read it, look, save what was found.

The stamp comes before the read, so that the run that wrote the file can save nothing any more. What was found is in a
confirmed save before anything is planned; what is certain by then leaves the run file when our own is written.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stackhold.decide.intents import left_by
from stackhold.decide.record import apply_changes
from stackhold.errors import InputError, StoreError, StoreUnreachable
from stackhold.model.events import EventKind
from stackhold.model.instant import Millis
from stackhold.ports.store import Stored
from stackhold.runs import resolve
from stackhold.runs.active import LookingRun
from stackhold.runs.begin import Refused, Stamped
from stackhold.runs.killed import journal_killed
from stackhold.runs.saver import Saver
from stackhold.runs.together import Beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.model.run import RunFile
    from stackhold.ports.engine import RecoveringEngine, Recovery
    from stackhold.runs.begin import Base, Beginning
    from stackhold.runs.parts import RunParts

_MOST_NAMED: Final = 10


@dataclass(slots=True)
class Recovering:
    """The recovery of one run."""

    parts: RunParts
    beginning: Beginning

    def recover(self, engine: RecoveringEngine, base: Base) -> Refused | None:
        """Do it; afterwards everything must be read anew. Gives why it could not begin.

        When the run stops meanwhile, nothing was found. Raises `CloudError`.
        """
        parts = self.parts
        stamped = self.beginning.stamp_first(base)
        if not isinstance(stamped, Stamped):
            return stamped
        parts.run_file.found(parts.store.read(parts.keys.run_file))
        left = parts.run_file.left_over
        recovery = self._look(engine, left, stamped) if left is not None else None
        if left is None or recovery is None:
            return None
        if recovery.changes and not self._save(recovery, stamped):
            return Refused.LOST
        journal_killed(parts, left, apply_changes(stamped.record, recovery.changes))
        parts.run_file.looked(
            recovery, ttl=Millis(parts.settings.ttl_ms), is_after_expiry=self.beginning.acquired.replaced is not None
        )
        self._tell(left, recovery)
        return None

    def take_back(self) -> None:
        """The run changes nothing after all: a record that only its stamp has made goes again."""
        parts = self.parts
        if not self.beginning.may_have_made_record or parts.control.is_lock_lost:
            return
        with contextlib.suppress(StoreError, InputError):
            found = parts.store.read(parts.keys.record)
            record = self.beginning.base(found).record
            if not isinstance(found, Stored) or record is None or record.lock_id != parts.lock.id:
                return
            if not record.resources and not record.pending_deletes:
                resolve.delete(parts.store, parts.keys.record, expect=found.version, clock=parts.clock)

    def _look(self, engine: RecoveringEngine, left: RunFile, stamped: Stamped) -> Recovery | None:
        """What the engine finds; None when the run is stopped, even if what the engine reads for it hangs."""
        parts = self.parts
        run = LookingRun(parts.identity, parts.clock, parts.control)

        def look() -> Recovery:
            may_still_land = self.beginning.acquired.replaced is None
            return engine.recover(left_by(left), stamped.record, run, may_still_land=may_still_land)

        looking = Beside(parts.threads, look)
        if not looking.ended(unless=lambda: parts.control.cause is not None):
            return None
        return looking.result()

    def _save(self, recovery: Recovery, stamped: Stamped) -> bool:
        """Whether what was found is in a confirmed save; False when the lock is lost."""
        saver = Saver(self.parts, base=stamped.record, version=stamped.written.version)
        saver.save(recovery.changes)
        if saver.flush():
            return True
        if self.parts.control.is_lock_lost:
            return False
        raise StoreUnreachable(
            f"what an earlier run had in flight was found, and could not be saved: {saver.failure}",
            key=self.parts.keys.record,
            hint="Nothing was changed in the cloud. Run the same command again.",
        )

    def _tell(self, left: RunFile, recovery: Recovery) -> None:
        log = self.parts.log
        parts = [
            _listed("taken on", recovery.taken_on),
            _listed("recorded and gone", recovery.gone),
            _listed("not there", recovery.absent),
        ]
        found = "; ".join(part for part in parts if part) or recovery.summary or "all that it had in flight is recorded"
        message = f"an earlier run did not settle ({left.operation} of {left.owner}). {found}"
        is_news = any(intent.first_seen_at is None for intent in left_by(left))
        data: dict[str, object] = {
            "runId": left.run_id,
            "takenOn": len(recovery.taken_on),
            "gone": len(recovery.gone),
            "absent": len(recovery.absent),
            "unknown": len(recovery.unknown),
        }
        if is_news or recovery.taken_on or recovery.gone:
            log.warn(message, by=EventKind.RECOVERED, data=data)
        else:
            log.say(EventKind.RECOVERED, message, data)
        for advice in recovery.advice:
            log.warn(f"what an earlier run had in flight could not be looked at: {advice}")


def _listed(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = len(names) - _MOST_NAMED
    return f"{what}: {', '.join(names[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")
