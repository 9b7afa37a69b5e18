"""The guarded run: one operation on one stack, under one lock and two clocks.

Takes the lock beside its reads, lets the engine look for what an earlier run left and plan, stamps the record beside
`run.json`, lets the engine act, and settles. What goes wrong before the stamp is raised and nothing was changed; after
it, everything becomes a report.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackhold.decide.clocks import check_clocks
from stackhold.errors import LockHeld, StackholdError, StoodDown, StoreError
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.run import Outcome, StopCause
from stackhold.ports.engine import JournalEngine, RecoveringEngine, WorkResult
from stackhold.ports.store import Stored
from stackhold.runs import backups, exports
from stackhold.runs.active import ActiveRun
from stackhold.runs.begin import Base, Beginning, Reads, Refused, Stamped
from stackhold.runs.closing import Closing
from stackhold.runs.fence import LockFence
from stackhold.runs.heartbeat import Heartbeat
from stackhold.runs.importers import refuse_in_use
from stackhold.runs.lock import Acquired, Renewed
from stackhold.runs.parts import RunParts
from stackhold.runs.recovery import Recovering
from stackhold.runs.report import RunReport
from stackhold.runs.saver import Saver
from stackhold.runs.settings import FixedWait, LockWait, RetryWait, RunSettings
from stackhold.runs.settle import Settling
from stackhold.runs.stops import Stops
from stackhold.runs.threads import SystemThreads
from stackhold.runs.together import Beside
from stackhold.runs.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.model.instant import BootInstant
    from stackhold.model.run import RunIdentity
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Engine, Work
    from stackhold.ports.reporter import Reporter
    from stackhold.ports.store import Absent, Store, Version
    from stackhold.ports.threads import Threads

__all__ = ["FixedWait", "GuardedRun", "LockWait", "RetryWait", "RunReport", "RunSettings", "Stops"]

_PLANS = 3


def _anything(_: Work) -> bool:
    return True


_DESTROY = "destroy"
_UNCHECKED = frozenset({_DESTROY, "tf destroy", "tf restore"})


@dataclass(frozen=True, slots=True)
class _Held:
    """What a run has while it holds its lock."""

    acquired: Acquired
    fence: LockFence
    heartbeat: Heartbeat
    watch: Watch


class GuardedRun:
    """One attempt to change a stack. Use once."""

    def __init__(
        self,
        *,
        store: Store,
        prefix: str,
        clock: Clock,
        reporter: Reporter,
        settings: RunSettings,
        identity: RunIdentity,
        stops: Stops,
        threads: Threads | None = None,
        started_at: BootInstant | None = None,
    ) -> None:
        """The deadline counts from `started_at` on the boot clock, by default from here.

        `threads` are the process's own unless others are given.
        """
        self._stops = stops
        self._parts = RunParts.of(
            store=store,
            prefix=prefix,
            clock=clock,
            threads=threads or SystemThreads(),
            reporter=reporter,
            settings=settings,
            identity=identity,
            stops=stops,
            started_at=started_at,
        )
        self._closing = Closing(self._parts)
        self._listed: exports.Listed | None = None

    def run(self, engine: Engine | JournalEngine, *, approve: Callable[[Work], bool] = _anything) -> RunReport:
        """Do it all. Raises `LockHeld`, `InputError` and `CloudError` when nothing was changed.

        `approve` sees the plan before anything is changed; when it says no, the run ends as blocked.
        """
        parts = self._parts
        self._check()
        self._stops.listen()
        parts.log.say(EventKind.RUN_STARTED, data={"operation": parts.identity.operation})
        reads = self._open_store()
        acquired = self._acquire() if isinstance(reads, Reads) else reads
        if isinstance(reads, StopCause) or isinstance(acquired, StopCause):
            return self._closing.stopped_waiting(self._cause())
        held = self._hold(acquired)
        try:
            prepared = self._prepare(engine, approve, held, reads)
            return prepared if isinstance(prepared, RunReport) else self._act(*prepared, held)
        except StackholdError as error:
            self._closing.broken(error)
            raise
        finally:
            held.watch.stop()
            held.heartbeat.stop()
            self._closing.release()

    def best_effort_release(self, timeout_ms: int) -> bool:
        """For a second signal: nothing more starts, and the lock is released if that is possible in time.

        True when it is released. To be called from another thread than the run's; the process should end after it.
        """
        fence = self._parts.control.fence
        if fence is not None:
            fence.give_up()

        def release() -> bool:
            with contextlib.suppress(StoreError):
                self._parts.lock.release(wait_s=timeout_ms / 1000)
                return True
            return False

        return Beside(self._parts.threads, release).result_within(timeout_ms / 1000) or False

    def _check(self) -> None:
        """A destroy never waits on this check, so that a teardown cannot be stuck on a setting; a restore neither."""
        settings = self._parts.settings
        if self._parts.identity.operation not in _UNCHECKED:
            check_clocks(deadline=settings.deadline, lock_wait=settings.lock_wait.span)

    def _open_store(self) -> Reads | StopCause:
        """Let the store get ready, then send the first reads; a stop gives it up even if it hangs."""
        parts = self._parts
        preparing = Beside(parts.threads, parts.store.prepare)
        if not preparing.ended(unless=self._is_stopped):
            return self._cause()
        preparing.result()
        return Reads.start(parts.store, parts.keys, parts.threads)

    def _acquire(self) -> Acquired | StopCause:
        """The lock. A stop ends the wait for it at once; a request that is on its way has the grace to end."""
        parts, control = self._parts, self._parts.control
        acquiring = Beside(
            parts.threads,
            lambda: parts.lock.acquire(
                deadline_at=control.deadline_at, stopping=lambda: control.cause, tell=parts.log.say
            ),
        )
        try:
            if acquiring.ended(unless=lambda: self._is_stopped() and control.is_over):
                acquired = acquiring.result()
                if isinstance(acquired, StopCause) and parts.lock.may_be_left:
                    parts.log.warn(f"the store did not say whether the lock is taken. {self._left_hint()}")
                return acquired
        except LockHeld as error:
            self._closing.shut_out(error)
            raise
        except StoreError as error:
            if parts.lock.may_be_left:
                error.hint = self._left_hint()
            raise
        parts.log.warn(f"the store did not answer the request for the lock. {self._left_hint()}")
        return self._cause()

    def _cause(self) -> StopCause:
        """Why the run is stopped, which it is."""
        cause = self._parts.control.cause
        assert cause is not None
        return cause

    def _is_stopped(self) -> bool:
        return self._parts.control.cause is not None

    def _left_hint(self) -> str:
        return (
            "The lock may be ours without our knowing. It expires by itself; to clear it at once:\n  "
            + self._parts.settings.unlock_command
        )

    def _hold(self, acquired: Acquired) -> _Held:
        """Keep the lock alive from the first moment."""
        parts = self._parts
        settings = parts.settings
        confirmed_at, holder = acquired.confirmed_at, None
        if parts.clock.boot() - confirmed_at >= settings.renew_every_ms:
            renewed, sent_at, holder_now = parts.lock.renew()
            confirmed_at = sent_at if renewed is Renewed.CONFIRMED else confirmed_at
            holder = holder_now if renewed is Renewed.LOST else None
        fence = LockFence(ttl_ms=settings.ttl_ms, confirmed_at=confirmed_at)
        if holder is not None:
            fence.lose(holder)
        parts.control.fence = fence
        heartbeat = Heartbeat(
            lock=parts.lock,
            fence=fence,
            clock=parts.clock,
            threads=parts.threads,
            every_ms=settings.renew_every_ms,
            starts_at=confirmed_at,
        )
        self._closing.waited_ms = acquired.waited_ms
        parts.log.update(lambda log: replace(log, waited_ms=acquired.waited_ms, lock_id=parts.lock.id))
        watch = Watch(parts)
        heartbeat.start()
        watch.start()
        self._tell_acquired(acquired)
        return _Held(acquired, fence, heartbeat, watch)

    def _tell_acquired(self, acquired: Acquired) -> None:
        log = self._parts.log
        before = acquired.replaced
        if before is not None:
            message = f"took over the lock of {before.owner} ({before.operation}), which had expired"
            data: dict[str, object] = {"owner": before.owner, "operation": before.operation}
            log.warn(message, by=EventKind.LOCK_TAKEN_OVER, data=data)
        log.say(EventKind.LOCK_ACQUIRED, data={"waitedMs": acquired.waited_ms, "lockId": self._parts.lock.id})

    def _prepare(
        self, engine: Engine | JournalEngine, approve: Callable[[Work], bool], held: _Held, reads: Reads
    ) -> RunReport | tuple[Work, Base, Stamped]:
        """Read, recover, plan, ask, stamp. A run that changes nothing leaves nothing, also when it breaks off."""
        recovers = isinstance(engine, RecoveringEngine)
        beginning = Beginning(self._parts, held.acquired, recovers=recovers)
        recovering = Recovering(self._parts, beginning)
        prepared: RunReport | tuple[Work, Base, Stamped] | None = None
        try:
            prepared = self._begin(engine, approve, held, reads, recovering)
            return prepared
        finally:
            if prepared is None:
                self._closing.undo_run_file()
            if not isinstance(prepared, tuple):
                recovering.take_back()

    def _begin(
        self,
        engine: Engine | JournalEngine,
        approve: Callable[[Work], bool],
        held: _Held,
        reads: Reads,
        recovering: Recovering,
    ) -> RunReport | tuple[Work, Base, Stamped]:
        """Read, recover, plan, ask, stamp; again when somebody changed what was read, a few times."""
        parts = self._parts
        beginning = recovering.beginning
        is_fresh = not held.acquired.at_once or isinstance(engine, JournalEngine)
        first = Reads.start(parts.store, parts.keys, parts.threads) if is_fresh else reads
        reading = Beside(parts.threads, lambda: beginning.read(first))
        if not reading.ended(unless=self._is_stopped):
            return self._closing.unchanged(Outcome.FAILED, None)
        base = reading.result()
        for _ in range(_PLANS):
            recovered = self._recover(engine, recovering, base, held)
            if isinstance(recovered, Outcome):
                return self._closing.unchanged(recovered, base.record)
            base, is_fresh = recovered, is_fresh or recovered is not base
            work = self._plan(engine, base)
            if work is None:
                return self._closing.unchanged(Outcome.FAILED, base.record)
            if work.is_empty:
                found = base.found if is_fresh else parts.store.read(parts.keys.record)
                if _version(found) == _version(base.found):
                    beginning.warn_of_leftovers()
                    return self._closing.nothing_to_do(base.record, listed=self._listed)
                base, is_fresh = beginning.base(found), True
                continue
            stamped = self._stamp(work, base, approve, held, beginning)
            if stamped is not None:
                return stamped if isinstance(stamped, RunReport) else (work, base, stamped)
            base, is_fresh = beginning.read(Reads.start(parts.store, parts.keys, parts.threads)), True
        return self._closing.unchanged(Outcome.PLAN_CHANGED, base.record)

    def _stamp(
        self, work: Work, base: Base, approve: Callable[[Work], bool], held: _Held, beginning: Beginning
    ) -> Stamped | RunReport | None:
        """Ask and stamp; or how the run ends instead. None when what was read has changed."""
        self._parts.log.say(EventKind.PLANNED, data={"steps": list(work.steps)})
        if not approve(work):
            return self._closing.unchanged(Outcome.BLOCKED, base.record)
        if self._parts.control.stopping() is not None:
            return self._closing.unchanged(Outcome.FAILED, base.record)
        stamped = beginning.stamp(base, work)
        if stamped is Refused.LOST:
            held.fence.lose(self._parts.lock.look().holder)
            return self._closing.unchanged(Outcome.FAILED, base.record)
        return stamped if isinstance(stamped, Stamped) else None

    def _recover(
        self, engine: Engine | JournalEngine, recovering: Recovering, base: Base, held: _Held
    ) -> Base | Outcome:
        """Look for what an earlier run had in flight, and read all anew; or how the run ends instead.

        When what was read has changed meanwhile, it is looked for again, a few times.
        """
        parts = self._parts
        if not isinstance(engine, RecoveringEngine):
            return base
        for _ in range(_PLANS):
            if not parts.run_file.must_look:
                return base
            if self._is_stopped():
                return Outcome.FAILED
            try:
                refused = recovering.recover(engine, base)
            except StoodDown:
                return Outcome.FAILED
            if refused is Refused.LOST:
                held.fence.lose(parts.lock.look().holder)
                return Outcome.FAILED
            base = recovering.beginning.read(Reads.start(parts.store, parts.keys, parts.threads))
        if not parts.run_file.must_look:
            return base
        return Outcome.FAILED if self._is_stopped() else Outcome.PLAN_CHANGED

    def _plan(self, engine: Engine | JournalEngine, base: Base) -> Work | None:
        """The engine's plan; None when the run is stopped, even if what the engine reads for it hangs."""
        if self._is_stopped():
            return None
        parts = self._parts

        def plan() -> Work:
            if isinstance(engine, JournalEngine):
                return engine.plan_back(base.record, parts.journal.journal, parts.identity)
            if parts.identity.operation == _DESTROY and (said := refuse_in_use(parts.store, parts.keys, base.record)):
                parts.log.warn(said)
            work = engine.plan(base.record, parts.identity)
            self._listed = exports.look(parts.store, parts.keys, work)
            return work

        planning = Beside(parts.threads, plan)
        return planning.result() if planning.ended(unless=self._is_stopped) else None

    def _act(self, work: Work, base: Base, stamped: Stamped, held: _Held) -> RunReport:
        """Let the engine work, then settle, whatever happens."""
        parts = self._parts
        parts.log.update(lambda log: replace(log, generation=parts.lock.generation))
        saver = Saver(parts, base=stamped.record, version=stamped.written.version)
        is_first = base.record is None or not base.record.resources
        settling = Settling(parts, saver, is_first_deploy=is_first, before=base.record)
        pruning = (
            Beside(parts.threads, lambda: backups.prune(parts.store, parts.keys, parts.clock))
            if base.record is not None
            else None
        )
        try:
            result = self._perform(work, saver)
        except BaseException as error:
            settling.save(None)
            if not isinstance(error, StackholdError):
                self._closing.broken(error)
            raise
        if pruning is not None and (warning := pruning.result()):
            parts.log.warn(warning)
        return self._closing.settled(settling, result, watch=held.watch)

    def _perform(self, work: Work, saver: Saver) -> WorkResult:
        parts = self._parts
        run = ActiveRun(parts.identity, parts.clock, parts.control, saver, parts.run_file, parts.log)
        try:
            return work.perform(run)
        except StoodDown as error:
            return WorkResult(Outcome.FAILED, ExitCode.FAILED, settled=False, error=error.message)


def _version(found: Stored | Absent) -> Version | None:
    return found.version if isinstance(found, Stored) else None
