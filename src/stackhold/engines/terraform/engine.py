"""The Terraform engine as a guarded run sees it: everything happens between stamp and settling.

A run writes down in `run.json` what it is about to do before every step that takes the state lock; the run that
comes after a killed one finds that, and the streams, and takes up what is left.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from stackhold.engines.terraform.company import marked_pid
from stackhold.engines.terraform.evidence import STREAMS, evidence_of
from stackhold.engines.terraform.leftovers import StepNote, beginning, note_from
from stackhold.engines.terraform.places import backend_digest
from stackhold.engines.terraform.process import kill_marked
from stackhold.engines.terraform.runner import Runner
from stackhold.engines.terraform.state_keeper import find_unrecorded
from stackhold.engines.terraform.steps import Operation
from stackhold.engines.terraform.taking import Workshop
from stackhold.errors import CloudError, InputError, StoodDown, StoreError
from stackhold.model.events import Event, EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, TypeName
from stackhold.model.instant import Instant
from stackhold.model.record import SetStack
from stackhold.model.run import Intent, IntentKind, IntentState, Outcome
from stackhold.ports.engine import Recovery, WorkResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from stackhold.engines.terraform.approval import Decision
    from stackhold.engines.terraform.leftovers import Evidence
    from stackhold.engines.terraform.planfile import PlanSummary
    from stackhold.engines.terraform.report import RunnerReport
    from stackhold.engines.terraform.steps import Script
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Looking, Run, Stop
    from stackhold.ports.state_versions import StateVersions

RUN: Final = LogicalId("run")
RUN_TYPE: Final = TypeName("Stackhold::Terraform::Run")
EMPTY_CONFIG: Final = "empty.tfrc"
"""A configuration of the runtime that says nothing, for one that names a file which is not there."""
_SKEW_MS: Final = 3_600_000
"""How far a host's clock may be from the store's when it is asked which versions came after a run's begin."""
_LOOK_MS: Final = 200
_TO_COME: Final = "what it left is taken up once the module is ready"
MODULE: Final = "module"
_BEFORE: Final = "before"
_NOTE: Final = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the runtime is to be started, and with which environment."""

    directory: Path
    env: Mapping[str, str]
    module: Path
    """The module itself, which is elsewhere when `directory` is an overlay of it."""
    forget_lock: Callable[[], None] = lambda: None
    """Frees the state lock of a runtime that has died, where that is ours to do."""
    refusals: Callable[[], Sequence[str]] = tuple
    """Why our own backend has refused what the runtime asked for: the runtime itself only says a number."""


class Prepare(Protocol):
    """Makes a module ready for one run, and takes that back when the run is over."""

    def __call__(self, run: Run, record: StateRecord | None) -> AbstractContextManager[Place]:
        """For a module that declares no backend: with the store as its backend."""
        ...


@dataclass(slots=True)
class TerraformEngine:
    """One operation on one module. Use once."""

    script: Script
    command: tuple[str, ...]
    workdir: Path
    """A folder of this run's own; streams, plan file. Kept when the run is killed, removed when all is settled."""
    holder: str
    """`user@hostname`, as the runtime names the holder of a lock."""
    prepare: Prepare
    approve: Callable[[PlanSummary, Workshop, Script], Decision]
    module: str = ""
    """Which module this is, whatever machine it lies on; written into the record."""
    is_named: bool = False
    """Whether the stack was named, and does not have its name from the module's folder."""
    versions: StateVersions | None = None
    """Where the state's versions are, for a module that declares no backend."""
    left: tuple[StepNote, ...] = ()
    report: RunnerReport | None = None
    """How it went, once it has."""

    def abandon(self) -> None:
        """Kill the runtime, since this process ends at once and its lock must not be free before. From any thread."""
        kill_marked(self.workdir / STREAMS)

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> TerraformWork:
        """Everything is decided by the runtime, under the lock.

        Raises `InputError` when the record is of another module whose folder has the same name.
        """
        known = known_module(record)
        if known and known != self.module and not self.is_named:
            raise InputError(
                f"the stack {identity.stack} ({identity.region}) is of the module {known}, and this is {self.module}: "
                "their folders have one name",
                hint="Nothing was changed. Give this one a name of its own with --stack NAME; if the module has only "
                f"moved, say so with --stack {identity.stack}.",
            )
        return TerraformWork(self, record, identity)

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """Remember what runs before had noted; it is taken up once the module is ready."""
        self.left = tuple(_notes(left))
        change = None
        writers = [note.started_at for note in self.left if not note.is_beginning]
        if self.versions is not None and writers:
            since = Instant(min(writers) - _SKEW_MS)
            change = find_unrecorded(self.versions, record, since=since)
        taken_on = (f"version {change.resource.physical_id} of the state",) if change is not None else ()
        return Recovery(
            changes=() if change is None else (change,), seen=tuple(left), taken_on=taken_on, summary=_TO_COME
        )


@dataclass(frozen=True, slots=True)
class TerraformWork:
    """The work of one run."""

    engine: TerraformEngine
    record: StateRecord | None
    identity: RunIdentity

    @property
    def is_empty(self) -> bool:
        """Only the runtime can tell, under the lock."""
        return False

    @property
    def intents(self) -> Sequence[Intent]:
        """One for the whole run; it carries on what earlier runs had noted until that is taken up."""
        return (
            Intent(
                RUN,
                RUN_TYPE,
                IntentKind.UPDATE,
                self.identity.run_id,
                extra=_extra(self._beginning, self.engine.left),
            ),
        )

    @property
    def _beginning(self) -> StepNote:
        """Before any step that takes the lock: where the run's folder is, and what of it may be at work."""
        engine = self.engine
        return beginning(self.identity.run_id, holder=engine.holder, workdir=str(engine.workdir))

    @property
    def steps(self) -> Sequence[JsonMap]:
        """The operation in short."""
        return ({"operation": self.engine.script.operation.value},)

    def perform(self, run: Run) -> WorkResult:
        """Do it."""
        engine = self.engine
        evidence = tuple(self._evidence(note, run) for note in engine.left)
        streams = engine.workdir / STREAMS
        streams.mkdir(mode=0o700, parents=True, exist_ok=True)
        (engine.workdir / EMPTY_CONFIG).touch(mode=0o600)
        with engine.prepare(run, self.record) as place:
            host = _Host(run, engine, place)
            workshop = Workshop(
                engine.command, place.directory, place.env, streams, host, module=place.module, died=place.forget_lock
            )
            host.workshop = workshop
            runner = Runner(workshop, engine.script, self._plan_key(run), left=evidence)
            report = replace(runner.run(), keeps_state=engine.versions is not None)
            for refusal in dict.fromkeys(place.refusals()):
                report = report.with_note(f"the store's backend refused: {refusal}")
        for note in report.notes:
            run.tell(Event(EventKind.WARNING, run.clock.now(), None, note))
        engine.report = report
        is_left_open = bool(evidence and not runner.has_cleared_up)
        self._settle(run, is_own_open=report.was_killed or runner.must_keep_streams, is_left_open=is_left_open)
        return _result(engine.script.operation, report)

    def _settle(self, run: Run, *, is_own_open: bool, is_left_open: bool) -> None:
        """Keep the notes and streams of what is open yet, be it this run's own or what earlier ones left; no others."""
        engine = self.engine
        run.mark(RUN, IntentState.UNKNOWN if is_own_open or is_left_open else IntentState.DONE)
        if is_own_open:
            return
        if is_left_open:
            with suppress(StoodDown, StoreError):
                run.note(RUN, _extra(None, engine.left))
        else:
            for note in engine.left:
                _remove(Path(note.workdir), beside=engine.workdir)
        _remove(engine.workdir, beside=engine.workdir)

    def _evidence(self, note: StepNote, run: Run) -> Evidence:
        """What a dead run left, once everything that it had started here has ended: until then it may still write.

        Raises `CloudError` when that does not end in the time that a step may wait for a lock.
        """
        evidence = evidence_of(note)
        if evidence.is_running:
            message = f"the runtime that the run {note.run_id} had started is still at work here; waiting for its end"
            run.tell(Event(EventKind.WARNING, run.clock.now(), None, message))
        until = run.clock.boot() + self.engine.script.lock_timeout_s * 1000
        while evidence.is_running:
            if run.clock.boot() >= until:
                raise _still_running(note)
            run.wait(_LOOK_MS)
            evidence = evidence_of(note)
        return evidence

    def _plan_key(self, run: Run) -> bytes:
        """What keys the hashes of plans: the record's lineage, which only those who may read the record know.

        Beside it the record says which module it is of.
        """
        module = self.engine.module
        parameters = {MODULE: module} if module and module != known_module(self.record) else None
        if self.record is not None and self.record.lineage:
            if parameters is not None:
                run.save([SetStack(parameters=parameters)])
            return self.record.lineage.encode()
        lineage = run.clock.nonce()
        run.save([SetStack(lineage=lineage, parameters=parameters)])
        return lineage.encode()


@dataclass(slots=True)
class _Host:
    """A guarded run as the runner's host."""

    run: Run
    engine: TerraformEngine
    place: Place
    workshop: Workshop | None = field(default=None)

    @property
    def clock(self) -> Clock:
        return self.run.clock

    def stopping(self) -> Stop | None:
        return self.run.stopping()

    def tell(self, event: Event) -> None:
        self.run.tell(event)

    def note(self, step: str) -> None:
        self.run.check_call()
        note = StepNote(
            run_id=self.run.identity.run_id,
            step=step,
            started_at=self.clock.now(),
            holder=self.engine.holder,
            backend=backend_digest(self.place.directory, self.place.env),
            directory=str(self.place.directory),
            workdir=str(self.engine.workdir),
        )
        self.run.note(RUN, _extra(note, self.engine.left))

    def approve(self, plan: PlanSummary) -> Decision:
        assert self.workshop is not None
        return self.engine.approve(plan, self.workshop, self.engine.script)


def known_module(record: StateRecord | None) -> str:
    """Which module a record is of; empty when it does not say."""
    parameters = record.parameters if record is not None else None
    module = (parameters or {}).get(MODULE)
    return module if isinstance(module, str) else ""


def _extra(note: StepNote | None, before: Sequence[StepNote]) -> JsonMap:
    extra: dict[str, object] = {} if note is None else {_NOTE: note.document()}
    if before:
        extra[_BEFORE] = [each.document() for each in before]
    return extra


def _still_running(note: StepNote) -> CloudError:
    pids = [pid for file in (Path(note.workdir) / STREAMS).glob("*.pid") if (pid := marked_pid(file)) is not None]
    named = f" (process {', '.join(map(str, pids))})" if pids else ""
    end = f", or end it with: kill -9 {' '.join(f'-{pid}' for pid in pids)}" if pids else ""
    return CloudError(
        f"the run {note.run_id} died, and the runtime that it had started is still at work on this host{named}",
        hint=f"Nothing was changed. Wait for it{end}",
    )


def _notes(left: Sequence[Intent]) -> Iterator[StepNote]:
    """What an entry notes of its own run comes last: it is the latest."""
    for intent in left:
        before = intent.extra.get(_BEFORE)
        documents = [*(before if isinstance(before, list | tuple) else ()), intent.extra.get(_NOTE)]
        for document in documents:
            note = note_from(document) if isinstance(document, dict) else None
            if note is not None:
                yield note


def _remove(folder: Path, *, beside: Path) -> None:
    """Remove a run's folder, if it is where ours are."""
    if folder.parent == beside.parent:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.parent.rmdir()  # unless it holds another run's, or a state that nobody could write


def _result(operation: Operation, report: RunnerReport) -> WorkResult:
    failure = report.failure
    exit_code = ExitCode.DONE
    if failure is not None:
        is_partly = report.outcome is Outcome.FAILED and report.touched > 0
        exit_code = ExitCode.PARTLY if is_partly else ExitCode.FAILED
    elif operation is Operation.DRIFT and report.drifted:
        exit_code = ExitCode.FAILED
    return WorkResult(
        outcome=report.outcome,
        exit_code=exit_code,
        settled=True,
        error=failure.message if failure is not None else "",
        summary=_summary(report),
    )


def _summary(report: RunnerReport) -> JsonMap:
    changes = report.changes
    counts = {}
    if changes is not None:
        counts = {
            "imported": changes.import_,
            "added": changes.add,
            "changed": changes.change,
            "destroyed": changes.destroy,
        }
    return {
        "runtime": {"product": report.product, "version": report.version},
        "steps": [{"name": step.name, "exit": step.exit, "ms": step.ms} for step in report.steps],
        "counts": {word: number for word, number in counts.items() if number},
        **({} if report.plan is None else {"planHash": report.plan.hash}),
        "unrecorded": [{"address": each.address, "id": each.identity} for each in report.unrecorded],
    }
