"""The rollback journal over several runs: who adds to it, who takes out of it, who removes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId, RunId
from stackhold.model.instant import Instant
from stackhold.model.journal import Journal, JournalOperation, JournalSegment
from stackhold.model.record import SetStack
from stackhold.model.run import Outcome
from stackhold.ports.engine import JournalEngine, WorkResult
from stackhold.ports.store import Stored
from stackhold.runs.journal import JournalKeeper
from stackhold.testing.engine import DONE, TYPE, ScriptedEngine, ScriptedWork, create
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from stackhold.model.record import StateRecord
    from stackhold.model.run import RunIdentity
    from stackhold.ports.engine import Run, Work


def operation(name: str) -> JournalOperation:
    return JournalOperation(LogicalId(name), "CREATE", TYPE, PhysicalId(f"{name.lower()}-1"), {})


def segment(run_id: str, *names: str) -> JournalSegment:
    return JournalSegment(
        RunId(run_id), Instant(1_710_000_000_000), "failed", True, tuple(operation(name) for name in names)
    )


def leaving(*names: str) -> ScriptedEngine:
    """A deploy that makes these and does not settle."""

    def script(run: Run) -> WorkResult:
        create(run, *names)
        done = tuple(operation(name) for name in names)
        return WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=done, settled=False, error="no")

    return ScriptedEngine(script, names)


@dataclass
class Undoing:
    """A rollback that leaves these segments."""

    left: tuple[JournalSegment, ...]
    seen: list[Journal | None] = field(default_factory=list)

    def plan_back(self, record: StateRecord | None, journal: Journal | None, identity: RunIdentity) -> Work:
        self.seen.append(journal)
        result = WorkResult(Outcome.SUCCEEDED, ExitCode.DONE, journal=self.left)
        return ScriptedWork(lambda _: result, (), (), is_empty=journal is None)


_: type[JournalEngine] = Undoing


def segments(scene: RunScene) -> list[str]:
    return [] if scene.journal is None else [str(each.run_id) for each in scene.journal.segments]


def test_each_run_that_does_not_settle_adds_a_segment_and_one_that_settles_removes_all() -> None:
    scene = RunScene()
    first, second = scene.play(leaving("A")), scene.play(leaving("B"))
    assert segments(scene) == [first.identity.run_id, second.identity.run_id]
    scene.play(ScriptedEngine(lambda _: DONE, ["A"]))
    assert scene.journal is None


def test_a_run_that_failed_before_it_did_anything_still_reports_the_journal_of_an_earlier_one() -> None:
    scene = RunScene()
    nothing_done = WorkResult(Outcome.FAILED, ExitCode.FAILED, settled=False, error="A: refused")
    assert not scene.play(ScriptedEngine(lambda _: nothing_done, ["A"])).is_journalled
    assert scene.play(leaving("A")).is_journalled
    assert scene.play(ScriptedEngine(lambda _: nothing_done, ["A"])).is_journalled


def test_a_run_that_went_back_to_where_an_earlier_one_had_left_off_keeps_the_journal_of_that_one() -> None:
    scene = RunScene()
    first = scene.play(leaving("A"))
    back = replace(DONE, keeps_journal=True)
    assert scene.play(ScriptedEngine(lambda _: back, ["B"])).is_journalled
    assert segments(scene) == [first.identity.run_id]


def test_a_deploy_that_finds_nothing_to_do_removes_what_an_earlier_one_left() -> None:
    scene = RunScene()
    scene.play(leaving("A"))
    assert scene.play(ScriptedEngine()).is_empty
    assert scene.journal is None


def test_another_command_that_finds_nothing_to_do_leaves_the_journal() -> None:
    scene = RunScene()
    first = scene.play(leaving("A"))
    scene.play(ScriptedEngine(), operation="import")
    assert segments(scene) == [first.identity.run_id]


def test_an_engine_that_undoes_sees_the_journal_and_says_what_is_left_of_it() -> None:
    scene = RunScene()
    first = scene.play(leaving("A", "B"))
    assert scene.journal is not None
    [whole] = scene.journal.segments
    partly = Undoing((replace(whole, operations=whole.operations[:1]),))
    scene.actor(operation="rollback").run.run(partly)
    assert [journal.segments for journal in partly.seen if journal] == [(whole,)]
    assert segments(scene) == [first.identity.run_id]
    assert [each.logical_id for each in scene.journal.segments[0].operations] == ["A"]
    scene.actor(operation="rollback").run.run(Undoing(()))
    assert segments(scene) == []
    assert scene.actor(operation="rollback").run.run(Undoing(())).is_empty


def test_a_segment_says_what_outputs_parameters_and_tags_were_before_a_run_that_changed_them() -> None:
    scene = RunScene()

    def first(run: Run) -> WorkResult:
        create(run, "A")
        run.save([SetStack(outputs={"Url": "one"}, parameters={"Stage": "dev"}, tags={"a": "b"})])
        return DONE

    def second(run: Run) -> WorkResult:
        run.save([SetStack(outputs={"Url": "two"}, parameters={"Stage": "prod"}, tags={"c": "d"})])
        return WorkResult(Outcome.FAILED, ExitCode.PARTLY, done=(operation("A"),), settled=False)

    scene.play(ScriptedEngine(first, ["A"]))
    scene.play(ScriptedEngine(second, ["A"]))
    assert scene.journal is not None
    assert scene.journal.segments[-1].extra == {
        "previousOutputs": {"Url": "one"},
        "previousParameters": {"Stage": "dev"},
        "previousTags": {"a": "b"},
    }


@pytest.mark.parametrize("left", [(), (segment("one", "A"),)])
def test_what_another_run_added_meanwhile_is_kept(left: tuple[JournalSegment, ...]) -> None:
    scene = RunScene()
    keeper = JournalKeeper(store=scene.store, keys=KEYS, clock=scene.clock)
    keeper.found(scene.store.read(KEYS.journal))
    keeper.append(segment("one", "A", "B"))
    keeper.found(scene.store.read(KEYS.journal))
    other = JournalKeeper(store=scene.store, keys=KEYS, clock=scene.clock)
    other.found(scene.store.read(KEYS.journal))
    other.append(segment("two", "C"))
    keeper.rewrite(left)
    assert segments(scene) == [*(each.run_id for each in left), "two"]


def test_a_journal_that_is_gone_already_is_not_written_again() -> None:
    scene = RunScene()
    keeper = JournalKeeper(store=scene.store, keys=KEYS, clock=scene.clock)
    keeper.found(scene.store.read(KEYS.journal))
    keeper.append(segment("one", "A"))
    keeper.found(scene.store.read(KEYS.journal))
    found = scene.store.read(KEYS.journal)
    assert isinstance(found, Stored)
    scene.store.delete(KEYS.journal, expect=found.version)
    keeper.rewrite((segment("one", "A"),))
    assert scene.journal is None
