"""A small engine over the model's cloud: creates, updates in place, replaces and deletes, several at once.

It plans from the record alone, names what it creates after the run, checks directly before each call, saves after
each resource, and looks for what an unanswered call has led to, as a real engine does.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model_protocol.cloud import Verb
from tests.model_protocol.recovery import Search
from tests.model_protocol.steps import TYPE, Action, Desired, Earlier, Step

from stackhold.errors import OutcomeUnknown, StoodDown
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.model.journal import JournalOperation
from stackhold.model.record import (
    AddPendingDelete,
    DropPendingDelete,
    DropResource,
    PendingDelete,
    ResourceRecord,
    SetResource,
)
from stackhold.model.run import Intent, IntentState, Outcome
from stackhold.ports.engine import WorkResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.model_protocol.client import CloudClient

    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Engine, Looking, RecoveringEngine, Recovery, Run, Work
    from stackhold.ports.threads import Threads

_LOOKS = 3
_FOLLOWING = 8
_WORKERS = 2


@dataclass(frozen=True, slots=True)
class ModelEngine:
    """Plans for one template."""

    desired: Desired
    client: CloudClient
    threads: Threads
    earlier: dict[LogicalId, Earlier] = field(default_factory=dict)
    """Creates that an earlier run may have sent, and of which nothing was found."""

    def plan(self, record: StateRecord | None, identity: RunIdentity) -> Work:
        """Decide from the record."""
        return ModelWork(self, self.desired.steps(record, identity.run_id, self.earlier), identity)

    def recover(
        self, left: Sequence[Intent], record: StateRecord | None, run: Looking, *, may_still_land: bool
    ) -> Recovery:
        """Look for what was left; everything lands in time, so nothing more is made of `may_still_land`."""
        search = Search(self.client, record, run)
        recovery = search.look_for(left)
        self.earlier.update(search.earlier)
        return recovery


@dataclass(slots=True)
class ModelWork:
    """One plan, and what became of it."""

    engine: ModelEngine
    planned: list[Step]
    identity: RunIdentity
    done: list[JournalOperation] = field(default_factory=list)
    unfinished: int = 0
    _queue: list[Step] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.planned

    @property
    def intents(self) -> Sequence[Intent]:
        """One per physical identity."""
        return [intent for step in self.planned for intent in step.intents(self.identity)]

    @property
    def steps(self) -> Sequence[JsonMap]:
        """The plan in short."""
        return [{"logicalId": step.logical_id, "type": TYPE, "operation": step.action.value} for step in self.planned]

    def perform(self, run: Run) -> WorkResult:
        """Creates and changes first, deletes behind them; two workers each."""
        removing = {Action.DELETE, Action.CLEAN_UP}
        for part in (
            [step for step in self.planned if step.action not in removing],
            [step for step in self.planned if step.action in removing],
        ):
            self._queue = part
            workers = [
                self.engine.threads.start(lambda: self._work(run), name="model-worker")
                for _ in range(min(_WORKERS, len(part)))
            ]
            for worker in workers:
                worker.join()
        if self.unfinished:
            return WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=tuple(self.done), settled=False)
        is_gone = not self.engine.desired.sizes
        return WorkResult(Outcome.SUCCEEDED, ExitCode.DONE, done=tuple(self.done), record_gone=is_gone)

    def _work(self, run: Run) -> None:
        while self._queue:
            step = self._queue.pop(0)
            if run.stopping() is not None:
                self.engine.client.writer.has_seen_stop = True
                self.unfinished += 1
                step.mark(run, IntentState.DONE)
            elif self._is_done(run, step):
                step.mark(run, IntentState.DONE)
                self.done.append(JournalOperation(step.logical_id, step.action.value, TYPE, PhysicalId(step.name)))
            else:
                self.unfinished += 1

    def _is_done(self, run: Run, step: Step) -> bool:
        self.engine.client.begin_operation()
        try:
            return _Attempt(self.engine, run, step).carry_out()
        except OutcomeUnknown:
            step.mark(run, IntentState.UNKNOWN)
        except StoodDown:
            pass
        return False


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One operation."""

    engine: ModelEngine
    run: Run
    step: Step

    def carry_out(self) -> bool:
        """Do it; False when it failed for good."""
        match self.step.action:
            case Action.CREATE:
                self._create()
                self.run.save([SetResource(self.step.logical_id, self._made)])
                self._settle()
                return True
            case Action.UPDATE:
                return self._update()
            case Action.REPLACE:
                return self._replace()
            case Action.DELETE | Action.CLEAN_UP:
                return self._delete()

    @property
    def _made(self) -> ResourceRecord:
        return ResourceRecord(PhysicalId(self.step.name), TYPE, {"size": self.step.size})

    def _create(self) -> None:
        try:
            self._call(Verb.CREATE, self.step.name)
        except OutcomeUnknown:
            for _ in range(_LOOKS):
                self.run.wait(1_000)
                if self._call(Verb.LOOK, self.step.name):
                    return
            raise

    def _settle(self) -> None:
        """A created thing takes a few more calls, with waits between them."""
        for _ in range(_FOLLOWING):
            self.run.wait(self.engine.desired.pace_ms // _FOLLOWING)
            with contextlib.suppress(OutcomeUnknown):
                self._call(Verb.UPDATE, self.step.name)

    def _update(self) -> bool:
        old = self.step.old
        assert old is not None
        if not self._call(Verb.UPDATE, old.physical_id):
            return False
        self.run.save(
            [SetResource(self.step.logical_id, ResourceRecord(old.physical_id, TYPE, {"size": self.step.size}))]
        )
        return True

    def _replace(self) -> bool:
        old, logical_id = self.step.old, self.step.logical_id
        assert old is not None
        self._create()
        left = PendingDelete(logical_id, old)
        self.run.save([SetResource(logical_id, self._made), AddPendingDelete(left)], confirmed=True)
        self._call(Verb.DELETE, old.physical_id)
        self.run.save([DropPendingDelete(logical_id, old.physical_id)])
        return True

    def _delete(self) -> bool:
        old, logical_id = self.step.old, self.step.logical_id
        assert old is not None
        self._call(Verb.DELETE, old.physical_id)
        if self.step.action is Action.CLEAN_UP:
            self.run.save([DropPendingDelete(logical_id, old.physical_id)])
        else:
            self.run.save([DropResource(logical_id)])
        return True

    def _call(self, verb: Verb, name: str) -> bool:
        return self.engine.client.call(verb, name, check=self.run.check_call)


if TYPE_CHECKING:
    _: type[Engine] = ModelEngine
    __: type[Work] = ModelWork
    ___: type[RecoveringEngine] = ModelEngine
