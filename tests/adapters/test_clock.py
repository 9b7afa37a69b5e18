"""The machine's clocks, as far as a test can see them move."""

from __future__ import annotations

from stackhold.adapters.clock import SystemClock


def test_the_boot_clock_moves_by_at_least_what_one_slept() -> None:
    clock = SystemClock()
    before = clock.boot()
    clock.sleep(5)
    assert clock.boot() - before >= 5


def test_a_sleep_of_nothing_or_less_returns_at_once() -> None:
    clock = SystemClock()
    before = clock.boot()
    clock.sleep(0)
    clock.sleep(-1000)
    assert clock.boot() - before < 500


def test_wall_time_is_unix_milliseconds() -> None:
    assert 1_700_000_000_000 < SystemClock().now() < 4_000_000_000_000


def test_a_boot_keeps_its_name() -> None:
    assert SystemClock().boot_id() == SystemClock().boot_id()


def test_nonces_are_32_hex_characters_and_differ() -> None:
    clock = SystemClock()
    nonces = {clock.nonce() for _ in range(100)}
    assert len(nonces) == 100
    assert all(len(nonce) == 32 and int(nonce, 16) >= 0 for nonce in nonces)
