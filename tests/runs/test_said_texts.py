"""No credentials of a URL reach what a run tells or keeps, whoever made the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.model.events import Event, EventKind
from stackhold.model.instant import Instant
from stackhold.testing.engine import DONE, ScriptedEngine
from stackhold.testing.run_scene import KEYS, RunScene

if TYPE_CHECKING:
    from stackhold.ports.engine import Run, WorkResult

SECRET = "s3cr3tpw"
URL = f"http://user:{SECRET}@127.0.0.1:1"


def kept(scene: RunScene) -> str:
    """All that is stored of the stack, as text."""
    found = [scene.data(entry.key) for entry in scene.store.list(KEYS.root)]
    return "\n".join(data.decode() for data in found if data is not None)


def test_an_event_is_told_and_kept_without_the_credentials_of_a_url() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        run.tell(Event(EventKind.WARNING, Instant(1), None, f"nothing answers at {URL}"))
        return DONE

    actor = scene.actor()
    actor.run.run(ScriptedEngine(script, ("A",)))
    assert "nothing answers at http://***@127.0.0.1:1" in [event.message for event in actor.reporter.events]
    assert SECRET not in kept(scene)


def test_a_run_that_breaks_keeps_its_reason_without_the_credentials_of_a_url() -> None:
    scene = RunScene()

    def script(run: Run) -> WorkResult:
        raise ValueError(f"no use of {URL}")

    actor = scene.actor()
    with pytest.raises(ValueError, match="no use"):
        actor.run.run(ScriptedEngine(script, ("A",)))
    assert "http://***@127.0.0.1:1" in kept(scene)
    assert SECRET not in kept(scene)
