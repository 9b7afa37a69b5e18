from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.runs.lock_scene import LOCK_ID, RUN, LockScene

from stackhold.adapters.files import DirectoryStore
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LockId, RunId
from stackhold.model.run import Outcome
from stackhold.runs.follow import follow, live_run
from stackhold.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> LockScene:
    clock = FakeClock()
    return LockScene(store=DirectoryStore(tmp_path, clock=clock), clock=clock)


def test_a_run_is_followed_to_its_end_each_event_told_once(scene: LockScene) -> None:
    scene.lock()
    log = scene.log()
    told: list[Event] = []
    for steps, seen in enumerate(follow(scene.store, scene.clock, scene.keys, RUN), start=1):
        told += seen.news
        log = replace(log, events=(*log.events, Event(EventKind.WARNING, scene.clock.now(), message=f"{steps}")))
        if steps == 3:
            log = replace(log, ended_at=scene.clock.now(), outcome=Outcome.SUCCEEDED)
        if not seen.is_over:
            scene.write_log(log)
    assert [event.message for event in told] == ["1", "2", "3"]
    assert seen.is_over
    assert not seen.is_killed


def test_a_run_that_was_killed_is_over_when_its_lock_is_not_its_own_any_more(scene: LockScene) -> None:
    scene.lock()
    scene.log()
    looks = []
    for seen in follow(scene.store, scene.clock, scene.keys, RUN):
        looks.append(seen.is_killed)
        scene.lock(lock_id=LockId("f" * 32), serial=len(looks))
    assert looks == [False, False, True]


def test_a_run_without_a_log_has_nothing_to_follow(scene: LockScene) -> None:
    assert list(follow(scene.store, scene.clock, scene.keys, RUN)) == []


def test_the_live_run_is_the_one_that_holds_the_lock(scene: LockScene) -> None:
    assert live_run(scene.store, scene.clock, scene.keys) is None
    scene.log()
    scene.log(RunId("20250101T000000000Z-00000000"), lock_id=LockId("f" * 32))
    assert live_run(scene.store, scene.clock, scene.keys) is None
    scene.lock(lock_id=LOCK_ID)
    assert live_run(scene.store, scene.clock, scene.keys) == RUN


def test_the_live_run_is_found_behind_many_that_found_it_locked(scene: LockScene) -> None:
    scene.log()
    scene.lock(lock_id=LOCK_ID)
    for number in range(10):
        late = replace(scene.log(RunId(f"20990101T00000000{number}Z-00000000")), lock_id=None)
        scene.write_log(replace(late, ended_at=scene.clock.now(), outcome=Outcome.FAILED))
    assert live_run(scene.store, scene.clock, scene.keys) == RUN


def test_a_lock_of_another_tool_has_no_run_to_follow(scene: LockScene) -> None:
    scene.lock(lock_id=None)
    assert live_run(scene.store, scene.clock, scene.keys) is None
