"""A wall clock that somebody sets while a run works: nothing that is decided hangs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.errors import LockHeld
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import HOUR, MINUTE, Instant, Millis, Span
from stackhold.model.run import Outcome
from stackhold.runs.guard import FixedWait, RunSettings
from stackhold.testing.clock import FakeClock
from stackhold.testing.engine import DONE, ScriptedEngine, create
from stackhold.testing.run_scene import RunScene

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult

SETTINGS = RunSettings(deadline=Span(Millis(10 * MINUTE)), lock_wait=FixedWait(0))


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_an_hour_either_way_stops_no_run_and_frees_no_lock_of_a_living_one(*, is_local: bool, jump: int) -> None:
    """A folder's times are the host's own; a bucket has a clock of its own."""
    scene = RunScene(is_local=is_local, settings=SETTINGS)
    host = scene.clock if is_local else FakeClock()

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        host.set_wall(Instant(host.now() + jump))
        with pytest.raises(LockHeld):
            scene.actor(owner="other@h:2", clock=host).run.run(ScriptedEngine(creates=["B"]))
        create(run, "B", confirmed=True)
        assert run.stopping() is None
        run.check_call()
        return DONE

    report = scene.actor(clock=host).run.run(ScriptedEngine(script, ["A", "B"]))
    assert (report.outcome, report.exit_code) == (Outcome.SUCCEEDED, ExitCode.DONE)
    assert scene.record is not None
    assert set(scene.record.resources) == {"A", "B"}
    assert (scene.lock, scene.run_file) == (None, None)
    assert scene.play(ScriptedEngine(creates=["C"])).exit_code is ExitCode.DONE


def test_an_hour_back_does_not_put_the_deadline_off() -> None:
    scene = RunScene(settings=SETTINGS)

    def script(run: Run) -> WorkResult:
        create(run, "A", confirmed=True)
        scene.clock.advance(6 * MINUTE)
        scene.clock.set_wall(Instant(scene.clock.now() - HOUR))
        assert run.stopping() is None
        scene.clock.advance(4 * MINUTE)
        stop = run.stopping()
        assert stop is not None
        assert stop.cause == "deadline"
        return DONE

    scene.play(ScriptedEngine(script, ["A"]))
    assert scene.lock is None
