"""The stage of rollback tests: deploys that do not settle leave a journal, as a guarded run would write it."""

from __future__ import annotations

import dataclasses
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.stage import THING, Stage

from stackhold.decide.killed import segment_of_killed
from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.rollback import RollbackEngine, RollbackWork
from stackhold.model.codec import decode_journal, encode_journal
from stackhold.model.ids import LockId
from stackhold.model.instant import Instant
from stackhold.model.journal import Journal, JournalSegment
from stackhold.model.run import RunFile
from stackhold.ports.aws import Resend
from stackhold.testing.fake_cloud import FakeCloud, Gate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.resources.handler import Handler
    from stackhold.model.ids import LogicalId, TypeName
    from stackhold.ports.engine import WorkResult

LEFT_AS_IT_IS = DeployOptions(baseline=False, rollback=False)
"""Failures do not go back."""


class StoppingCloud(FakeCloud):
    """A cloud that stops whoever calls it when so many changes were carried out, or before a certain one."""

    def __init__(self) -> None:
        super().__init__()
        self.stop: Callable[[], object] = lambda: None
        self.die: Callable[[], object] = lambda: None
        self.changes_left: int | None = None
        self.dies_after: int | None = None
        """So many updates and deletes."""
        self.stops_before: tuple[str, str] | None = None

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        if (operation, params.get("Name")) == self.stops_before:
            self.stop()
        answer = super().call(service, operation, params, resend=resend)
        if operation != "GetThing" and self.changes_left is not None:
            self.changes_left -= 1
            if self.changes_left == 0:
                self.stop()
        if operation in {"UpdateThing", "DeleteThing"} and self.dies_after is not None:
            self.dies_after -= 1
            if self.dies_after == 0:
                self.die()
        return answer


@dataclass
class BackStage(Stage):
    """A stage on which the rollback journal is kept from run to run."""

    cloud: StoppingCloud = field(default_factory=StoppingCloud)
    journal: Journal | None = None
    options: DeployOptions = field(default_factory=lambda: LEFT_AS_IT_IS)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cloud.stop = lambda: self.run.stop()
        self.cloud.die = lambda: self.run.die()

    def deploy(self, *, outputs: Mapping[str, Any] | None = None, **resources: dict[str, Any]) -> WorkResult:
        """Deploy, and settle the journal."""
        self.begin()
        is_first = self.record is None or not self.record.resources
        result = super().deploy(outputs=outputs, **resources)
        self._settle(result, is_first=is_first)
        return result

    def killed_deploy(self, **resources: dict[str, Any]) -> None:
        """A deploy that is killed: it settles nothing, and whoever recovers it writes its segment of the journal."""
        self.begin()
        before = self.record
        names = {*resources, *(before.resources if before else ())}
        result = super().deploy(**resources)
        self.record = self.run.record
        who = self.run.identity
        left = RunFile(
            who.run_id,
            LockId("lock"),
            1,
            "deploy",
            who.owner,
            Instant(1),
            1,
            plan=tuple({"logicalId": name} for name in names),
        )
        segment = segment_of_killed(left, before, self.record, tool_version="0")
        if segment is not None:
            segments = self.journal.segments if self.journal else ()
            self._settle(dataclasses.replace(result, journal=(*segments, segment)), is_first=False)

    def destroy(self) -> WorkResult:
        """Destroy, and settle the journal."""
        self.begin()
        result = super().destroy()
        self._settle(result, is_first=False)
        return result

    def planned(self, *orphans: str, reverts_failed: bool = False) -> RollbackWork:
        """What a rollback would do now."""
        engine = RollbackEngine(
            aws=self.cloud,
            orphans=frozenset(orphans),  # type: ignore[arg-type]  # logical ids as text
            reverts_failed=reverts_failed,
            options=self.options,
            native=self._native,
        )
        self.begin()
        return engine.plan_back(self.record, self.journal, self.run.identity)

    def rollback(self, *orphans: str, reverts_failed: bool = False) -> WorkResult:
        """Roll back, and settle the journal."""
        result = self.planned(*orphans, reverts_failed=reverts_failed).perform(self.run)
        self.record = None if result.record_gone else self.run.record
        self._settle(result, is_first=False)
        return result

    def killed_rollback(self) -> WorkResult:
        """A rollback whose run dies before it settles: the record is as it was last saved, the journal untouched."""
        result = self.planned().perform(self.run)
        self.record = self.run.record
        return result

    def ways(self, *orphans: str, reverts_failed: bool = False) -> dict[str, str]:
        """How each resource would go back."""
        plan = self.planned(*orphans, reverts_failed=reverts_failed).plan
        return {str(name): undoing.way.value for name, undoing in plan.undoings.items()}

    def journalled(self) -> list[tuple[str, str]]:
        """Logical id and change type of every operation in the journal."""
        segments = self.journal.segments if self.journal else ()
        return [(str(one.logical_id), one.change_type) for segment in segments for one in segment.operations]

    def _settle(self, result: WorkResult, *, is_first: bool) -> None:
        """What a guarded run does with the journal; it goes through its JSON."""
        who = self.run.identity
        before = self.journal or Journal(who.stack, who.region)
        if result.journal is not None:
            segments = result.journal
        elif result.settled and result.keeps_journal:
            return
        elif result.settled:
            segments = ()
        elif result.done:
            made = JournalSegment(who.run_id, Instant(1), "failed", is_first, result.done, tool_version="0")
            segments = (*before.segments, made)
        else:
            return
        data = encode_journal(Journal(who.stack, who.region, segments))
        self.journal = decode_journal(data, key="journal") if segments else None

    def _native(self, type_name: TypeName) -> Handler | None:
        return self.handler if type_name == THING else None


def physical(stage: BackStage, name: LogicalId) -> str:
    """The recorded physical id."""
    assert stage.record is not None
    return stage.record.resources[name].physical_id


def stop_at(stage: BackStage, gate: Gate, run: Callable[[], WorkResult]) -> WorkResult:
    """Run something, and stop it while a call is held at a gate."""
    results: list[WorkResult] = []
    thread = threading.Thread(target=lambda: results.append(run()), daemon=True)
    thread.start()
    gate.wait_reached()
    stage.run.stop()
    gate.open()
    thread.join(20)
    return results[0]


def stop_in_clean_up(stage: BackStage, held: str, gone: str, **template: dict[str, Any]) -> None:
    """Deploy, and stop it when `held` is being deleted and `gone` has been."""
    gate = stage.cloud.hold("DeleteThing", held)
    results: list[WorkResult] = []
    thread = threading.Thread(target=lambda: results.append(stage.deploy(**template)), daemon=True)
    thread.start()
    gate.wait_reached()
    until = time.monotonic() + 20
    while gone in stage.cloud.things:
        assert time.monotonic() < until, f"{gone} does not go"
        time.sleep(0.001)
    stage.run.stop()
    gate.open()
    thread.join(20)
    assert not results[0].settled
