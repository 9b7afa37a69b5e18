"""The clock that tests move."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stackhold.model.instant import Instant
from stackhold.testing.clock import BOOT_START, START, FakeClock


def test_neither_clock_starts_at_zero_and_both_stand_still() -> None:
    clock = FakeClock()
    assert (clock.now(), clock.boot()) == (START, BOOT_START)
    assert (clock.now(), clock.boot()) == (START, BOOT_START)


def test_a_lone_sleeper_jumps_to_its_wake_up() -> None:
    clock = FakeClock()
    clock.sleep(7_200_000)
    assert (clock.now() - START, clock.boot() - BOOT_START) == (7_200_000, 7_200_000)


def test_told_not_to_jump_a_sleeper_waits_for_the_test_to_advance() -> None:
    clock = FakeClock(jumps_when=0)
    woken: list[int] = []

    def doze() -> None:
        clock.sleep(1000)
        woken.append(clock.boot() - BOOT_START)

    sleeper = threading.Thread(target=doze)
    sleeper.start()
    clock.wait_sleepers(1)
    clock.advance(999)
    clock.wait_sleepers(1)
    assert woken == []
    clock.advance(1)
    sleeper.join(10)
    assert woken == [1000]


def test_with_two_threads_the_earliest_wake_up_comes_first_and_nobody_oversleeps() -> None:
    clock = FakeClock(jumps_when=2)
    order: list[tuple[str, int]] = []
    lock = threading.Lock()

    def tick(name: str, ms: int, times: int) -> None:
        for _ in range(times):
            clock.sleep(ms)
            with lock:
                order.append((name, clock.boot() - BOOT_START))

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(tick, "slow", 1000, 1)
        fast = pool.submit(tick, "fast", 300, 3)
        fast.result(10)
        clock.wait_sleepers(1)
        clock.advance(100)
        slow.result(10)
    assert order == [("fast", 300), ("fast", 600), ("fast", 900), ("slow", 1000)]


def test_the_wall_clock_can_be_set_alone() -> None:
    clock = FakeClock()
    clock.set_wall(Instant(START - 3_600_000))
    assert (clock.now() - START, clock.boot() - BOOT_START) == (-3_600_000, 0)


def test_a_reboot_changes_the_name_and_keeps_wall_time() -> None:
    clock = FakeClock()
    before = clock.boot_id()
    clock.reboot("another")
    assert clock.boot_id() != before
    assert clock.now() == START
    assert clock.boot() < BOOT_START


def test_time_cannot_be_advanced_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)


def test_nonces_differ_between_clocks_unless_they_share_a_seed() -> None:
    assert FakeClock().nonce() != FakeClock().nonce()
    assert FakeClock(seed="a").nonce() == FakeClock(seed="a").nonce()
    clock = FakeClock(seed="a")
    assert clock.nonce() != clock.nonce()
