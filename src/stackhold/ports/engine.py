"""What the guarded run asks of an engine, and what it gives it.

The run owns lock, clocks, record and `run.json`; the engine knows what to change. An engine never touches the
store: it hands over changes and intents and is told whether it may start another call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.model.events import Event
    from stackhold.model.exit_codes import ExitCode
    from stackhold.model.ids import LogicalId, PhysicalId
    from stackhold.model.journal import Journal, JournalOperation, JournalSegment
    from stackhold.model.record import RecordChange, StateRecord
    from stackhold.model.run import Intent, IntentState, Outcome, RunIdentity, StopCause
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run starts nothing new any more, and whether even what is in flight is given up."""

    cause: StopCause
    is_over: bool = False
    """True past the grace less its margin, or past the lock's cut: return, leaving what is in flight UNKNOWN."""


class Looking(Protocol):
    """A run that looks before it has planned. All methods are thread-safe."""

    @property
    def identity(self) -> RunIdentity:
        """Who runs what."""
        ...

    @property
    def clock(self) -> Clock:
        """For waits between polls."""
        ...

    def stopping(self) -> Stop | None:
        """Why nothing new may start, or None. Once not None it stays so. Look before every new operation, and
        while waiting for operations in flight."""
        ...

    def check_call(self) -> None:
        """Directly before each call: raises `StoodDown` when even calls of an operation in flight must not start
        (past a margin, second half of the grace gone). A plain first signal does not raise: operations in
        flight finish."""
        ...

    def wait(self, ms: int) -> None:
        """Wait between polls; returns at once, raising `StoodDown`, when waits are given up."""
        ...


class Run(Looking, Protocol):
    """The guarded run as an engine sees it. All methods are thread-safe."""

    def save(self, changes: Sequence[RecordChange], *, confirmed: bool = False) -> None:
        """Put changes into the record. Returns at once; with `confirmed`, when they are in a confirmed save
        (a replacement's new id before the old resource goes)."""
        ...

    def mark(self, logical_id: LogicalId, state: IntentState, *, physical_id: PhysicalId | None = None) -> None:
        """How far this run's intents for a resource have come; those not DONE at the end stay in `run.json`. With
        `physical_id` only the one for that very resource: an old one beside the new, or one of several old ones."""
        ...

    def note(self, logical_id: LogicalId, extra: JsonMap) -> None:
        """Make this the `extra` of this run's own intents for that logical id, in the run file, before returning: who
        comes after a crash finds it in `Intent.extra`, and so it stays in what is left over. None of the names in it
        may be a field of an intent. Raises `StoodDown` when the run file is not ours any more, and `StoreError` when
        the store did not confirm it; a later note or the end of the run carries it then."""
        ...

    def tell(self, event: Event) -> None:
        """Show and keep an event."""
        ...


@dataclass(frozen=True, slots=True)
class WorkResult:
    """What an engine did.

    `exit_code` and `outcome` speak of the work alone: a stop by signal, deadline or lost lock is put over
    them by the run.
    """

    outcome: Outcome
    exit_code: ExitCode
    done: tuple[JournalOperation, ...] = ()
    """What changed and was not undone, in order: the journal's next segment if the run did not settle."""
    settled: bool = True
    """True when record and cloud agree with what was asked, or with what was before: no journal is needed, and
    an older one is obsolete."""
    keeps_journal: bool = False
    """Settled, but only back to where an earlier run had left off: what the journal says of that one stays true."""
    journal: tuple[JournalSegment, ...] | None = None
    """After a rollback: the segments that are left, none when all is undone. `None` leaves the journal to `done`."""
    record_gone: bool = False
    """True when nothing is left of the stack: the record is deleted (destroy; a first deploy fully undone)."""
    exports: Mapping[str, object] | None = None
    """Exports by name after the run; `None` when they did not change."""
    summary: JsonMap = field(default_factory=dict)
    """For the final event and `--json`: counts, per-resource outcomes, failures."""
    error: str = ""
    """One line: what failed first."""


class Work(Protocol):
    """What one run will do, decided from the record that the stamp will replace."""

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to do: no stamp, no `run.json`."""
        ...

    @property
    def intents(self) -> Sequence[Intent]:
        """One per physical identity that may come to be, change or go."""
        ...

    @property
    def steps(self) -> Sequence[JsonMap]:
        """The plan in short, for `run.json` and events."""
        ...

    def perform(self, run: Run) -> WorkResult:
        """Do it. Called once, after the stamp. Returns when nothing of it is in flight any more, or when the run
        gave up waiting (then what was in flight is marked UNKNOWN)."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedExports:
    """What a stack exports after a run, as far as its plan can tell."""

    by_name: Mapping[str, object]
    """The value of each export whose name is known; it may not be known itself."""
    is_complete: bool
    """Whether every name and every value is known."""


@runtime_checkable
class ExportingWork(Protocol):
    """Work that changes what a stack exports: its names are looked up in the region's index before anything else."""

    @property
    def exports(self) -> PlannedExports | None:
        """What the stack exports afterwards; None for one that has no outputs and had none."""
        ...


class Engine(Protocol):
    """One way to change the world, set up for one operation on one stack."""

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> Work:
        """Decide what to do from this record. Reads the cloud at most; changes nothing. May be called again when
        the record turned out to have changed. Raises `InputError` and `CloudError`."""
        ...


@runtime_checkable
class JournalEngine(Protocol):
    """One way to undo what earlier runs left half done. Its work says in `WorkResult.journal` what is left of it."""

    def plan_back(self, record: StateRecord | None, journal: Journal | None, identity: RunIdentity) -> Work:
        """Decide what to undo, from the record and what runs that did not settle had done (`None`: nothing).
        Otherwise as `Engine.plan`."""
        ...


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was found of what earlier runs left unresolved. Nothing was changed but the record is to be."""

    changes: tuple[RecordChange, ...] = ()
    """What the record must say now: found resources taken on, those that are gone dropped, twins to be deleted."""
    seen: tuple[Intent, ...] = ()
    """Whose effect is there, or certainly never was: their requests are done."""
    unknown: tuple[Intent, ...] = ()
    """Those that could not be looked for."""
    taken_on: tuple[str, ...] = ()
    """For people: `Orders (AWS::SQS::Queue) as https://…`."""
    gone: tuple[str, ...] = ()
    """For people: what was recorded and is not there any more."""
    absent: tuple[str, ...] = ()
    """For people: creates of which nothing is there."""
    summary: str = ""
    """For people: what is to be said where nothing of all this was found; by default that all of it is recorded."""
    advice: tuple[str, ...] = ()
    """For people: what could not be looked for, why, and the read-only command that does."""


@runtime_checkable
class RecoveringEngine(Protocol):
    """An engine that can look for what a run before it had in flight."""

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """Look for what these entries of a run file stand for; changes nothing in the cloud. Called before the plan,
        and remembered for it: what is created now and was not there is created under the same name and token.
        `may_still_land`: a request of that run may be carried out later yet. Raises `StoodDown` when the run stops."""
        ...
