"""Concurrency that learns from throttling."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from stackhold.adapters.aws_gate import Gate
from stackhold.errors import StoodDown
from stackhold.model.instant import BootInstant


def free() -> None:
    return None


def test_throttling_halves_the_limit_once_per_burst() -> None:
    gate = Gate(32)
    gate.throttled(BootInstant(1000))
    gate.throttled(BootInstant(1400))
    assert gate.limit == 16
    gate.throttled(BootInstant(1500))
    assert gate.limit == 8


def test_the_limit_never_falls_below_one_and_grows_back_to_its_most() -> None:
    gate = Gate(4)
    for turn in range(10):
        gate.throttled(BootInstant(turn * 10_000))
    assert gate.limit == 1
    for _ in range(100):
        gate.answered()
    assert gate.limit == 4


def test_no_more_are_inside_than_the_limit() -> None:
    gate = Gate(3)
    inside, most, lock = 0, 0, threading.Lock()

    def visit(_: int) -> None:
        nonlocal inside, most
        with gate.place(free):
            with lock:
                inside += 1
                most = max(most, inside)
            with lock:
                inside -= 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(visit, range(300)))
    assert most <= 3


def test_who_waits_for_a_place_still_hears_that_the_run_stops() -> None:
    gate = Gate(1)

    def stop() -> None:
        raise StoodDown("over")

    with gate.place(free), pytest.raises(StoodDown), gate.place(stop):
        pass
    with gate.place(free):
        pass
