"""What the pieces of one guarded run share: made once, at the run's first moment, and handed to each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.runs.control import Control
from stackhold.runs.events import RunLogKeeper
from stackhold.runs.journal import JournalKeeper
from stackhold.runs.layout import Keys
from stackhold.runs.lock import RunLock
from stackhold.runs.outage import Outage
from stackhold.runs.run_file import RunFileKeeper

if TYPE_CHECKING:
    from stackhold.model.instant import BootInstant
    from stackhold.model.run import RunIdentity
    from stackhold.ports.clock import Clock
    from stackhold.ports.reporter import Reporter
    from stackhold.ports.store import Store
    from stackhold.ports.threads import Threads
    from stackhold.runs.settings import RunSettings
    from stackhold.runs.stops import Stops


@dataclass(frozen=True, slots=True)
class RunParts:
    """One run's store, names, clocks and keepers."""

    store: Store
    keys: Keys
    clock: Clock
    threads: Threads
    settings: RunSettings
    identity: RunIdentity
    control: Control
    lock: RunLock
    run_file: RunFileKeeper
    journal: JournalKeeper
    log: RunLogKeeper
    outage: Outage

    @classmethod
    def of(
        cls,
        *,
        store: Store,
        prefix: str,
        clock: Clock,
        threads: Threads,
        reporter: Reporter,
        settings: RunSettings,
        identity: RunIdentity,
        stops: Stops,
        started_at: BootInstant | None = None,
    ) -> RunParts:
        """The parts of a new run; its deadline counts from `started_at`, by default from here."""
        keys = Keys(prefix, identity.stack, identity.region)
        lock = RunLock(store=store, keys=keys, clock=clock, threads=threads, settings=settings, identity=identity)
        control = Control(clock=clock, settings=settings, stops=stops, started_at=started_at)
        return cls(
            store=store,
            keys=keys,
            clock=clock,
            threads=threads,
            settings=settings,
            identity=identity,
            control=control,
            lock=lock,
            run_file=RunFileKeeper(
                store=store,
                keys=keys,
                clock=clock,
                threads=threads,
                identity=identity,
                lock_id=lock.id,
                may_send=lambda: not control.is_lock_lost,
            ),
            journal=JournalKeeper(store=store, keys=keys, clock=clock),
            log=RunLogKeeper(
                store=store,
                keys=keys,
                clock=clock,
                threads=threads,
                reporter=reporter,
                identity=identity,
                settings=settings,
            ),
            outage=Outage(clock, control),
        )
