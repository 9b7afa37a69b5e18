from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.runs.lock_scene import OWNER, TTL, LockScene

from stackhold.adapters.files import DirectoryStore
from stackhold.model.ids import LockId
from stackhold.ports.store import Absent
from stackhold.runs.holder_process import pid_gone, pid_here
from stackhold.runs.unlock import Danger, Unlocked, force_unlock
from stackhold.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from stackhold.runs.inspect import LockView

HERE = socket.gethostname()


@pytest.fixture
def scene(tmp_path: Path) -> LockScene:
    clock = FakeClock(jumps_when=0)
    return LockScene(store=DirectoryStore(tmp_path, clock=clock), clock=clock)


class Person:
    """Says yes or no, and remembers what was shown."""

    def __init__(self, *, says: bool = True) -> None:
        self.says = says
        self.shown: list[tuple[LockView, Danger, bool]] = []

    def __call__(self, view: LockView, danger: Danger, has_changed: bool) -> bool:
        self.shown.append((view, danger, has_changed))
        return self.says


def test_the_lock_that_was_shown_is_deleted(scene: LockScene) -> None:
    scene.lock()
    person = Person()
    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=person) is Unlocked.DELETED
    assert isinstance(scene.store.read(scene.keys.lock), Absent)
    [(view, danger, has_changed)] = person.shown
    assert view.lock is not None
    assert view.lock.owner == OWNER
    assert danger == Danger(is_live=True, pid_here=None)
    assert not has_changed


def test_a_no_leaves_the_lock(scene: LockScene) -> None:
    scene.lock()
    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=Person(says=False)) is Unlocked.DECLINED
    assert not isinstance(scene.store.read(scene.keys.lock), Absent)


def test_without_a_lock_nobody_is_asked(scene: LockScene) -> None:
    person = Person()
    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=person) is Unlocked.ABSENT
    assert person.shown == []


def test_a_lock_that_changed_meanwhile_is_shown_and_asked_about_again(scene: LockScene) -> None:
    scene.lock()

    class Slow(Person):
        def __call__(self, view: LockView, danger: Danger, has_changed: bool) -> bool:
            if not self.shown:
                scene.lock(owner="joe@ci-8:1", lock_id=LockId("f" * 32))
            return super().__call__(view, danger, has_changed)

    person = Slow()
    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=person) is Unlocked.DELETED
    assert [(view.lock.owner if view.lock else "", changed) for view, _, changed in person.shown] == [
        (OWNER, False),
        ("joe@ci-8:1", True),
    ]


def test_a_lock_released_while_asking_counts_as_deleted(scene: LockScene) -> None:
    scene.lock()

    def confirm(view: LockView, danger: Danger, has_changed: bool) -> bool:
        scene.store.delete(scene.keys.lock, expect=view.version)
        return True

    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=confirm) is Unlocked.DELETED


def test_a_lock_that_is_no_json_can_be_cleared(scene: LockScene) -> None:
    scene.put(scene.keys.lock, b'{"owner": "mar')
    person = Person()
    assert force_unlock(scene.store, scene.clock, scene.keys, confirm=person) is Unlocked.DELETED
    [(view, danger, _)] = person.shown
    assert "it ends in the middle" in view.unreadable
    assert danger.is_live


def test_a_stale_lock_is_not_called_live(scene: LockScene) -> None:
    scene.lock()
    assert isinstance(scene.clock, FakeClock)
    scene.clock.advance(TTL + 5_000)
    person = Person()
    force_unlock(scene.store, scene.clock, scene.keys, confirm=person)
    assert not person.shown[0][1].is_live


def test_a_holder_whose_process_runs_on_this_host_is_found(scene: LockScene) -> None:
    scene.lock(owner=f"maria@{HERE}:{os.getpid()}")
    person = Person()
    force_unlock(scene.store, scene.clock, scene.keys, confirm=person)
    assert person.shown[0][1].pid_here == os.getpid()


def test_a_process_that_ended_or_runs_elsewhere_is_not_here() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert pid_here(f"maria@{HERE}:{ended.pid}", hostname=HERE) is None
    assert pid_gone(f"maria@{HERE}:{ended.pid}", hostname=HERE) == ended.pid
    elsewhere = f"maria@elsewhere:{os.getpid()}"
    assert (pid_here(elsewhere, hostname=HERE), pid_gone(elsewhere, hostname=HERE)) == (None, None)
    assert pid_gone(f"maria@{HERE}:{os.getpid()}", hostname=HERE) is None


@pytest.mark.parametrize("owner", ["", "maria", f"maria@{HERE}", f"maria@{HERE}:0", f"maria@{HERE}:-1", "@:9999999999"])
def test_an_owner_of_another_shape_is_nowhere(owner: str) -> None:
    assert pid_here(owner, hostname=HERE) is None
