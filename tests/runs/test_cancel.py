from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runs.lock_scene import LOCK_ID, TTL, LockScene

from stackhold.adapters.files import DirectoryStore
from stackhold.errors import CloudError, InputError
from stackhold.model.codec import decode_stop_request
from stackhold.model.ids import LockId
from stackhold.ports.store import Absent, Stored
from stackhold.runs.cancel import request_stop, wait_released
from stackhold.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


UNLOCK = "stackhold force-unlock wide --region us-east-1"


@pytest.fixture
def scene(tmp_path: Path) -> LockScene:
    clock = FakeClock(jumps_when=0)
    return LockScene(store=DirectoryStore(tmp_path, clock=clock), clock=clock)


def asked(scene: LockScene) -> LockId | None:
    found = scene.store.read(scene.keys.stop_request)
    return decode_stop_request(found.data, key="x").lock_id if isinstance(found, Stored) else None


def test_the_request_names_the_lock_that_is_held(scene: LockScene) -> None:
    lock = scene.lock()
    assert request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK) == lock
    assert asked(scene) == LOCK_ID


def test_a_request_left_by_an_earlier_run_is_replaced(scene: LockScene) -> None:
    scene.lock(lock_id=LockId("f" * 32))
    request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)
    scene.lock()
    request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)
    assert asked(scene) == LOCK_ID


def test_asking_twice_writes_once(scene: LockScene) -> None:
    scene.lock()
    request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)
    before = scene.store.read(scene.keys.stop_request)
    request_stop(scene.store, scene.clock, scene.keys, requested_by="sue@b:1", unlock_command=UNLOCK)
    after = scene.store.read(scene.keys.stop_request)
    assert isinstance(before, Stored)
    assert isinstance(after, Stored)
    assert before.version == after.version


def test_without_a_holder_nothing_is_written(scene: LockScene) -> None:
    assert request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK) is None
    assert asked(scene) is None


def test_a_holder_that_cannot_be_asked_is_an_error_that_says_why(scene: LockScene) -> None:
    scene.lock(lock_id=None)
    with pytest.raises(InputError, match="has no id: another tool's run cannot be asked"):
        request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)
    scene.put(scene.keys.lock, b"{")
    with pytest.raises(InputError, match="cannot be read, so its holder cannot be asked") as refused:
        request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)
    assert UNLOCK in refused.value.hint
    assert asked(scene) is None


def test_a_stale_holder_is_not_asked(scene: LockScene) -> None:
    scene.lock()
    assert isinstance(scene.clock, FakeClock)
    scene.clock.advance(TTL + 5_000)
    with pytest.raises(InputError, match="will not look at a request"):
        request_stop(scene.store, scene.clock, scene.keys, requested_by="joe@b:1", unlock_command=UNLOCK)


def test_waiting_ends_when_the_lock_is_gone_or_another_holds_it(tmp_path: Path) -> None:
    scene = LockScene(store=DirectoryStore(tmp_path, clock=FakeClock()), clock=FakeClock())
    wait_released(scene.store, scene.clock, scene.keys, LOCK_ID)
    scene.lock(lock_id=LockId("f" * 32))
    wait_released(scene.store, scene.clock, scene.keys, LOCK_ID)
    assert not isinstance(scene.store.read(scene.keys.lock), Absent)


def test_waiting_for_a_holder_that_falls_silent_says_so(tmp_path: Path) -> None:
    clock = FakeClock()
    scene = LockScene(store=DirectoryStore(tmp_path, clock=clock), clock=clock)
    scene.lock()
    with pytest.raises(CloudError, match="stopped renewing its lock"):
        wait_released(scene.store, clock, scene.keys, LOCK_ID)
