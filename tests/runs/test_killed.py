"""A run that was killed wrote no journal: the run that recovers it does, so that it can be rolled back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.model.ids import LogicalId
from stackhold.model.record import SetResource, SetStack
from stackhold.ports.engine import Recovery
from stackhold.testing.engine import DONE, ScriptedEngine, create, thing
from stackhold.testing.engine import RecoveringScript as Script
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from stackhold.ports.engine import Looking, Run, WorkResult
    from stackhold.testing.engine import Looked
    from stackhold.testing.run_scene import Actor

A, B, C = LogicalId("A"), LogicalId("B"), LogicalId("C")


class Killed(BaseException):
    """In place of a kill: nothing settles."""


def killed(scene: RunScene, operation: str = "deploy") -> Actor:
    """A run that changes one resource, makes another, and dies before a third of which no answer came."""

    def script(run: Run) -> WorkResult:
        run.save([SetResource(A, thing("a-1", Size=2)), SetStack(outputs={"Url": "two"})])
        create(run, "B", confirmed=True)
        raise Killed

    actor = scene.actor(operation=operation)
    with pytest.raises(Killed):
        actor.run.run(Script(script, ["A", "B", "C"]))
    assert scene.run_file is not None
    return actor


def settled(scene: RunScene) -> None:
    """A deploy before, all of it recorded."""

    def script(run: Run) -> WorkResult:
        run.save([SetResource(A, thing("a-1", Size=1)), SetStack(outputs={"Url": "one"})])
        return DONE

    scene.play(Script(script, ["A"]))


def finds_c(looked: Looked, _: Looking) -> Recovery:
    return Recovery(changes=(SetResource(C, thing("c-1")),), seen=looked.left)


def declined(scene: RunScene) -> None:
    """A run that recovers what was left and then changes nothing."""
    scene.play(Script(creates=["D"], on_look=finds_c), approve=lambda _: False)


def operations(scene: RunScene) -> list[tuple[str, str]]:
    segments = scene.journal.segments if scene.journal else ()
    return [(str(one.logical_id), one.change_type) for segment in segments for one in segment.operations]


def test_what_it_did_and_what_was_found_of_it_is_journalled_with_what_was_before() -> None:
    scene = RunScene()
    settled(scene)
    dead = killed(scene)
    declined(scene)
    assert operations(scene) == [("A", "UPDATE"), ("B", "CREATE"), ("C", "CREATE")]
    assert scene.journal is not None
    [segment] = scene.journal.segments
    assert (segment.run_id, segment.reason, segment.is_initial_deploy) == (
        dead.identity.run_id,
        "interrupted",
        False,
    )
    previous = segment.operations[0].previous
    assert previous is not None
    assert previous["properties"] == {"Size": 1}
    assert segment.extra["previousOutputs"] == {"Url": "one"}


def test_a_first_deploy_that_was_killed_has_only_made_things() -> None:
    scene = RunScene()
    killed(scene)
    declined(scene)
    assert operations(scene) == [("A", "CREATE"), ("B", "CREATE"), ("C", "CREATE")]
    assert scene.journal is not None
    assert scene.journal.segments[0].is_initial_deploy


def test_it_is_journalled_once_however_often_it_is_recovered() -> None:
    scene = RunScene()
    killed(scene)
    left = scene.data(KEYS.run_file)
    declined(scene)
    assert left is not None
    scene.store.put(KEYS.run_file, left)
    declined(scene)
    assert len(scene.journal.segments if scene.journal else ()) == 1


def test_a_deploy_that_settles_after_it_removes_what_was_journalled() -> None:
    scene = RunScene()
    killed(scene)

    def script(run: Run) -> WorkResult:
        create(run, "D")
        return DONE

    scene.play(Script(script, ["D"]))
    assert scene.journal is None


def test_a_killed_rollback_adds_nothing() -> None:
    scene = RunScene()
    settled(scene)
    killed(scene, operation="rollback")
    declined(scene)
    assert scene.journal is None


def test_a_run_that_had_settled_is_never_taken_for_killed() -> None:
    scene = RunScene()
    settled(scene)
    killed(scene)
    left = scene.run_file
    assert left is not None
    assert left.replaces is not None

    def script(run: Run) -> WorkResult:
        create(run, "D")
        return DONE

    def nothing(looked: Looked, _: Looking) -> Recovery:
        return Recovery(unknown=looked.left)

    scene.play(Script(script, ["D"], on_look=nothing))
    assert scene.journal is None
    kept = scene.run_file
    assert kept is not None
    assert kept.replaces is None
    declined(scene)
    assert scene.journal is None


def test_without_a_copy_of_the_record_before_it_that_is_said() -> None:
    scene = RunScene()
    settled(scene)
    killed(scene)
    for entry in scene.store.list(KEYS.backups):
        found = scene.store.read(entry.key)
        scene.store.delete(entry.key, expect=found.version)  # type: ignore[union-attr]  # it was just listed
    actor = scene.actor()
    report = actor.run.run(Script(creates=["D"], on_look=finds_c), approve=lambda _: False)
    assert scene.journal is None
    assert any("cannot be rolled back" in warning for warning in report.warnings)


def test_an_engine_that_cannot_look_leaves_it_to_the_next() -> None:
    scene = RunScene()
    killed(scene)
    scene.play(ScriptedEngine(creates=["D"]), approve=lambda _: False)
    assert scene.journal is None
    assert scene.run_file is not None
