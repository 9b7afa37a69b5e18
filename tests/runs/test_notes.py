"""What a run notes beside its intents is in the run file before it goes on, and reaches who comes after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.errors import Bug, StoodDown, StoreError, StoreUnreachable
from stackhold.model.ids import LogicalId
from stackhold.model.run import Intent, IntentKind, IntentState, Outcome, RunFile
from stackhold.ports.engine import Recovery, WorkResult
from stackhold.testing.engine import DONE, TYPE, Looked, RecoveringScript, ScriptedEngine, create
from stackhold.testing.memory_store import Fault, StoreCall
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackhold.ports.engine import Looking, Run

A, B = LogicalId("A"), LogicalId("B")


def noting(*notes: dict[str, object]) -> Callable[[Run], WorkResult]:
    def script(run: Run) -> WorkResult:
        for note in notes:
            run.note(A, note)
        create(run, "A", "B")
        return DONE

    return script


def extras(file: RunFile | None) -> dict[str, object]:
    assert file is not None
    return {str(intent.logical_id): dict(intent.extra) for intent in file.intents}


def test_a_note_is_stored_when_the_call_returns_and_the_newest_stands() -> None:
    scene = RunScene()
    seen: list[dict[str, object]] = []

    def script(run: Run) -> WorkResult:
        for step in ("plan", "apply"):
            run.note(A, {"note": {"step": step}})
            seen.append(extras(scene.run_file))
        create(run, "A", "B")
        return DONE

    report = scene.play(ScriptedEngine(script, ("A", "B")))
    assert report.outcome is Outcome.SUCCEEDED
    assert seen == [{"A": {"note": {"step": "plan"}}, "B": {}}, {"A": {"note": {"step": "apply"}}, "B": {}}]
    assert scene.run_file is None


def test_what_stays_unresolved_keeps_the_newest_note_and_the_next_run_is_given_it() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        run.note(A, {"note": 1})
        run.note(A, {"note": 2})
        run.mark(A, IntentState.UNKNOWN)
        run.mark(B, IntentState.DONE)
        return WorkResult(Outcome.FAILED, DONE.exit_code, settled=False)

    scene.play(ScriptedEngine(script, ("A", "B")))
    assert extras(scene.run_file) == {"A": {"note": 2}}
    given: list[Looked] = []

    def look(looked: Looked, _: Looking) -> Recovery:
        given.append(looked)
        return Recovery(seen=looked.left)

    scene.play(RecoveringScript(creates=("C",), on_look=look))
    assert [dict(intent.extra) for looked in given for intent in looked.left] == [{"note": 2}]


def test_a_note_whose_answer_is_lost_is_found_to_be_there() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        actor.store.plan([Fault.LOSE_ANSWER])
        run.note(A, {"note": 1})
        assert extras(scene.run_file)["A"] == {"note": 1}
        create(run, "A", "B")
        return DONE

    assert actor.run.run(ScriptedEngine(script, ("A", "B"))).outcome is Outcome.SUCCEEDED
    assert scene.run_file is None


def test_a_note_that_lands_after_it_was_given_up_is_ours_all_the_same() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        late = iter([Fault.LAND_LATE])
        actor.store.plan(lambda call: _one(late, call) if call.key == KEYS.run_file else Fault.NONE)
        with pytest.raises(StoreError):
            run.note(A, {"note": 1})
        actor.store.plan([])
        assert actor.store.land() == 1
        run.note(A, {"note": 2})
        assert extras(scene.run_file)["A"] == {"note": 2}
        create(run, "A", "B")
        return DONE

    assert actor.run.run(ScriptedEngine(script, ("A", "B"))).outcome is Outcome.SUCCEEDED
    assert scene.run_file is None


def _one(late: Iterator[Fault], call: StoreCall) -> Fault:
    """The first write lands late, and until then the store can be read no more."""
    return next(late, Fault.UNREACHABLE) if call.method == "write" else Fault.UNREACHABLE


def test_a_note_that_landed_late_does_not_keep_the_run_file() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        late = iter([Fault.LAND_LATE])
        actor.store.plan(lambda call: _one(late, call) if call.key == KEYS.run_file else Fault.NONE)
        with pytest.raises(StoreError):
            run.note(A, {"note": 1})
        actor.store.plan([])
        create(run, "A", "B")
        actor.store.land()
        return DONE

    report = actor.run.run(ScriptedEngine(script, ("A", "B")))
    assert (report.outcome, report.warnings) == (Outcome.SUCCEEDED, ())
    assert scene.run_file is None


def test_a_note_that_the_store_refuses_raises_and_is_in_what_is_left() -> None:
    scene = RunScene()
    actor = scene.actor()

    def script(run: Run) -> WorkResult:
        actor.store.plan(lambda call: Fault.UNREACHABLE if call.key == KEYS.run_file else Fault.NONE)
        with pytest.raises(StoreUnreachable):
            run.note(A, {"note": 1})
        actor.store.plan([])
        run.mark(B, IntentState.DONE)
        return WorkResult(Outcome.FAILED, DONE.exit_code, settled=False)

    actor.run.run(ScriptedEngine(script, ("A", "B")))
    assert extras(scene.run_file) == {"A": {"note": 1}}


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_run_file_that_is_another_s_takes_no_note(is_gone: bool) -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        if is_gone:
            scene.store.remove(KEYS.run_file)
        else:
            scene.store.put(KEYS.run_file, b'{"runVersion": 1}')
        with pytest.raises(StoodDown):
            run.note(A, {"note": 1})
        create(run, "A", "B")
        return DONE

    scene.play(ScriptedEngine(script, ("A", "B")))
    assert scene.data(KEYS.run_file) == (None if is_gone else b'{"runVersion": 1}')


def test_all_intents_of_a_logical_id_carry_the_note() -> None:
    scene = RunScene()
    seen: list[RunFile | None] = []

    def script(run: Run) -> WorkResult:
        run.note(A, {"note": 1})
        seen.append(scene.run_file)
        run.mark(A, IntentState.DONE)
        return DONE

    identity = scene.actor().identity
    intents = [Intent(A, TYPE, kind, identity.run_id) for kind in (IntentKind.CREATE, IntentKind.DELETE)]
    scene.play(ScriptedEngine(script, ("A",), intents_instead=intents))
    assert seen[0] is not None
    assert [intent.extra for intent in seen[0].intents] == [{"note": 1}, {"note": 1}]


@pytest.mark.parametrize(("name", "extra"), [("Unknown", {"note": 1}), ("A", {"runId": "another"})])
def test_a_note_for_nothing_or_in_place_of_a_field_is_a_mistake(name: str, extra: dict[str, object]) -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        with pytest.raises(Bug):
            run.note(LogicalId(name), extra)
        create(run, "A")
        return DONE

    assert scene.play(ScriptedEngine(script, ("A",))).outcome is Outcome.SUCCEEDED
