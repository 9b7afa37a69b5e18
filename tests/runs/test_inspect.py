from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runs.lock_scene import OWNER, RUN, TTL, LockScene, keys

from stackhold.adapters.files import DirectoryStore
from stackhold.errors import InputError, RecordTooNew, RecordUnreadable
from stackhold.model.ids import RunId, StackName
from stackhold.ports.store import Stored
from stackhold.runs.inspect import find_region, is_known, list_stacks, read_run, read_stack, run_ids
from stackhold.testing.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> LockScene:
    clock = FakeClock(jumps_when=0)
    return LockScene(store=DirectoryStore(tmp_path, clock=clock), clock=clock)


def test_stacks_are_listed_by_name_and_region_with_what_they_have(scene: LockScene) -> None:
    scene.record(keys("orders", "us-east-1"), resources=1)
    scene.record(keys("orders", "eu-west-1"), resources=3)
    scene.lock()
    views = list_stacks(scene.store, scene.clock, prefix="stackhold")
    assert [(view.keys.stack, view.keys.region) for view in views] == [
        ("orders", "eu-west-1"),
        ("orders", "us-east-1"),
        ("payments", "eu-west-1"),
    ]
    assert [len(view.record.required().resources) if view.record else None for view in views] == [3, 1, None]
    assert [view.is_locked for view in views] == [False, False, True]


def test_only_the_stacks_of_the_prefix_are_listed(scene: LockScene) -> None:
    scene.record(keys("orders", prefix="cdkd"))
    assert list_stacks(scene.store, scene.clock, prefix="stackhold") == ()
    assert len(list_stacks(scene.store, scene.clock, prefix="cdkd")) == 1


def test_a_stack_with_only_old_events_is_not_listed(scene: LockScene) -> None:
    scene.log()
    assert list_stacks(scene.store, scene.clock, prefix="stackhold") == ()


def test_an_unreadable_object_is_shown_beside_the_rest(scene: LockScene) -> None:
    scene.record(keys("orders"))
    scene.put(scene.keys.record, b'{"version": 8, "resou')
    scene.put(scene.keys.lock, b"not json")
    orders, payments = list_stacks(scene.store, scene.clock, prefix="stackhold")
    assert orders.record is not None
    assert orders.record.record is not None
    assert payments.record is not None
    assert "it ends in the middle" in payments.record.unreadable
    with pytest.raises(RecordUnreadable):
        payments.record.required()
    assert payments.lock is not None
    assert payments.lock.lock is None
    assert "it is no JSON" in payments.lock.unreadable
    assert not payments.lock.is_stale


def test_a_record_of_a_newer_version_is_named_as_such(scene: LockScene) -> None:
    scene.put(scene.keys.record, b'{"version": 9}')
    record = read_stack(scene.store, scene.clock, scene.keys).record
    assert record is not None
    with pytest.raises(RecordTooNew):
        record.required()


def test_a_record_of_another_stack_in_this_ones_place_is_not_taken_for_its_own(scene: LockScene) -> None:
    scene.record(keys("orders"))
    found = scene.store.read(keys("orders").record)
    assert isinstance(found, Stored)
    scene.put(scene.keys.record, found.data)
    record = read_stack(scene.store, scene.clock, scene.keys).record
    assert record is not None
    with pytest.raises(RecordUnreadable, match="is the record of orders in eu-west-1, not of this stack"):
        record.required()


def test_a_stack_that_is_nowhere_is_an_error_that_names_the_store(scene: LockScene) -> None:
    with pytest.raises(InputError, match=r"no stack payments in eu-west-1 in file:"):
        read_stack(scene.store, scene.clock, scene.keys)


def test_a_lock_is_as_old_as_its_silence_and_stale_after_its_ttl_and_the_slack(scene: LockScene) -> None:
    scene.lock()
    clock = scene.clock
    assert isinstance(clock, FakeClock)
    clock.advance(TTL + 4_999)
    lock = read_stack(scene.store, clock, scene.keys).lock
    assert lock is not None
    assert (lock.silent_ms, lock.is_stale, lock.expires_in_ms) == (TTL + 4_999, False, -4_999)
    clock.advance(1)
    lock = read_stack(scene.store, clock, scene.keys).lock
    assert lock is not None
    assert lock.is_stale


def test_the_region_is_found_when_only_one_has_the_stack(scene: LockScene) -> None:
    stack = StackName("orders")
    assert find_region(scene.store, prefix="stackhold", stack=stack) is None
    scene.record(keys("orders", "eu-west-1"))
    scene.record(keys("orders-two", "us-east-1"))
    assert find_region(scene.store, prefix="stackhold", stack=stack) == "eu-west-1"
    scene.record(keys("orders", "us-east-1"))
    with pytest.raises(InputError, match="orders is recorded in eu-west-1, us-east-1"):
        find_region(scene.store, prefix="stackhold", stack=stack)


def test_a_stack_of_which_only_a_run_file_is_left_is_known(scene: LockScene) -> None:
    assert not is_known(scene.store, scene.keys)
    scene.put(scene.keys.run_file, b"{}")
    assert is_known(scene.store, scene.keys)
    assert find_region(scene.store, prefix="stackhold", stack=scene.keys.stack) == scene.keys.region


def test_runs_are_read_back_oldest_first(scene: LockScene) -> None:
    later = RunId("20250101T000000000Z-00000000")
    scene.log(later)
    scene.log()
    assert list(run_ids(scene.store, scene.keys)) == [RUN, later]
    log = read_run(scene.store, scene.keys, RUN)
    assert log is not None
    assert log.identity.owner == OWNER
    assert read_run(scene.store, scene.keys, RunId("none")) is None
