"""The exports of a region: whose a name is, and how the index is kept right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stackhold.errors import InputError
from stackhold.model import codec
from stackhold.model.exit_codes import ExitCode
from stackhold.model.exports import Export, ExportsIndex
from stackhold.model.ids import StackName
from stackhold.model.record import SetStack
from stackhold.ports.engine import PlannedExports
from stackhold.runs.layout import Keys, exports_key
from stackhold.testing.engine import DONE, ScriptedEngine, create
from stackhold.testing.memory_store import Fault
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult

INDEX = exports_key(KEYS.prefix, KEYS.region)
OTHER = StackName("Other")
OTHERS_RECORD = Keys(KEYS.prefix, OTHER, KEYS.region).record
THEIRS = Export("x", OTHER, KEYS.region)
OURS = Export("u", KEYS.stack, KEYS.region)


def lists(scene: RunScene, **entries: Export) -> None:
    scene.store.put(INDEX, codec.encode_exports(ExportsIndex(KEYS.region, entries)))


def listed(scene: RunScene) -> dict[str, Export]:
    return dict(codec.decode_exports(scene.data(INDEX) or b"", key=INDEX).exports)


def script(run: Run) -> WorkResult:
    create(run, "A")
    run.save([SetStack(outputs={"Out": "u"})])
    return replace(DONE, exports={"Url": "u"})


def exporting(*creates: str, is_complete: bool = True, **values: str) -> ScriptedEngine:
    return ScriptedEngine(script, creates, exports=PlannedExports(values, is_complete))


def test_a_name_of_another_stack_is_refused_before_anything_is_changed() -> None:
    scene = RunScene()
    lists(scene, Url=THEIRS)
    scene.store.put(OTHERS_RECORD, b"{}")
    with pytest.raises(InputError, match="Url is exported by Other") as caught:
        scene.play(exporting("A", Url="u"))
    assert "take Url out of Other first" in caught.value.hint
    assert (scene.record, scene.lock, scene.run_file) == (None, None, None)


def test_a_name_whose_stack_has_no_record_any_more_is_free() -> None:
    scene = RunScene()
    lists(scene, Url=THEIRS)
    report = scene.play(exporting("A", Url="u"))
    assert (report.exit_code, report.warnings) == (ExitCode.DONE, ())
    assert listed(scene) == {"Url": OURS}


def test_a_name_that_another_stack_took_meanwhile_is_a_warning_and_stays_theirs() -> None:
    scene = RunScene()

    def late(run: Run) -> WorkResult:
        lists(scene, Url=THEIRS)
        scene.store.put(OTHERS_RECORD, b"{}")
        return script(run)

    report = scene.play(ScriptedEngine(late, ["A"], exports=PlannedExports({"Url": "u"}, is_complete=True)))
    assert report.exit_code is ExitCode.DONE
    assert "not for this one: Url is exported by Other" in report.warnings[0]
    assert listed(scene) == {"Url": THEIRS}


def test_a_run_with_nothing_to_change_puts_its_own_lost_entries_back() -> None:
    scene = RunScene()
    scene.play(exporting("A", Url="u"))
    lists(scene, Else=THEIRS, Gone=OURS)
    report = scene.play(exporting(Url="u"))
    assert report.is_empty
    assert "that was put right" in report.warnings[0]
    assert listed(scene) == {"Else": THEIRS, "Url": OURS}


def test_a_run_with_nothing_to_change_reads_the_index_once_and_writes_nothing_when_it_is_right() -> None:
    scene = RunScene()
    scene.play(exporting("A", Url="u"))
    actor, calls = scene.actor(), list[str]()

    def watch(method: str, key: str) -> Fault:
        if key == INDEX:
            calls.append(method)
        return Fault.NONE

    actor.store.plan(lambda call: watch(call.method, call.key))
    assert actor.run.run(exporting(Url="u")).warnings == ()
    assert calls == ["read"]


def test_nothing_is_put_right_by_a_plan_that_does_not_know_all_values() -> None:
    scene = RunScene()
    scene.play(exporting("A", Url="u"))
    scene.play(exporting(is_complete=False))
    assert listed(scene) == {"Url": OURS}


def test_a_stack_without_exports_never_reads_the_index() -> None:
    scene = RunScene()
    actor = scene.actor()
    actor.store.plan(lambda call: Fault.REFUSE if call.key == INDEX else Fault.NONE)
    assert actor.run.run(ScriptedEngine(lambda _: DONE, ["A"])).warnings == ()


def test_an_index_that_cannot_be_read_stops_no_run_and_is_told() -> None:
    scene = RunScene()
    scene.store.put(INDEX, b"no json")
    report = scene.play(exporting("A", Url="u"))
    assert report.exit_code is ExitCode.DONE
    assert "the exports index was not updated" in report.warnings[0]
    assert "the exports index was not updated" in scene.play(exporting(Url="u")).warnings[0]
