"""Players take turns: one at a time, in the order that is chosen, until they wait or are ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stackhold.testing.turns import Carriers, Ended, Player, Stage, TurnClock, TurnThreads

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stage() -> Iterator[Stage]:
    carriers = Carriers()
    stage = Stage(carriers)
    yield stage
    stage.close()
    carriers.close()


def play_all(stage: Stage) -> None:
    """Give turns in order until nobody can go on."""
    while ready := [player for player in stage.players if player.is_ready(stage.now)]:
        for player in ready:
            if player in stage.players:
                stage.turn(player)


def test_a_player_goes_on_only_when_it_is_told_to(stage: Stage) -> None:
    done: list[str] = []

    def player(name: str) -> Player:
        def play() -> None:
            done.append(f"{name}1")
            stage.wait()
            done.append(f"{name}2")

        return stage.enter(play, owner=name, name=name)

    first, second = player("a"), player("b")
    stage.turn(second)
    stage.turn(first)
    stage.turn(second)
    assert done == ["b1", "a1", "b2"]
    assert (first.is_done, second.is_done) == (False, True)


def test_sleepers_wake_when_the_stage_moves_time(stage: Stage) -> None:
    clock = TurnClock(stage, name="host", wall_offset=3_600_000)
    woke: list[int] = []

    def sleep() -> None:
        clock.sleep(1_500)
        woke.append(clock.now())

    player = stage.enter(sleep, owner="a", name="sleeper")
    stage.turn(player)
    assert not player.is_ready(stage.now)
    assert player.wakes_at == stage.now + 1_500
    stage.now += 1_500
    stage.turn(player)
    assert woke == [stage.now + 3_600_000]


def test_flags_locks_conditions_and_joins_work_as_among_threads(stage: Stage) -> None:
    threads = TurnThreads(stage, "a")
    lock, flag, condition = threads.lock(), threads.event(), threads.condition()
    done: list[str] = []

    def holder() -> None:
        with lock:
            flag.wait()
            done.append("holder")
        with condition:
            condition.wait_for(lambda: len(done) == 2)
        done.append("holder again")

    def other() -> None:
        flag.set()
        with lock:
            done.append("other")
        with condition:
            condition.notify_all()
        assert lock.acquire(timeout=0)
        assert not lock.acquire(timeout=0)
        lock.release()

    def all_of_it() -> None:
        players = [threads.start(holder, name="holder"), threads.start(other, name="other")]
        for player in players:
            player.join()
        done.append("joined")

    stage.enter(all_of_it, owner="a", name="main")
    play_all(stage)
    assert done == ["holder", "other", "holder again", "joined"]
    assert not stage.players


def test_a_wait_ends_at_its_time_at_the_latest(stage: Stage) -> None:
    threads = TurnThreads(stage, "a")
    answers: list[bool] = []
    player = stage.enter(lambda: answers.append(threads.event().wait(0.05)), owner="a", name="waiter")
    stage.turn(player)
    stage.now += 50
    stage.turn(player)
    assert answers == [False]


def test_a_crash_ends_every_player_of_an_owner_wherever_it_stands(stage: Stage) -> None:
    threads = TurnThreads(stage, "a")
    seen: list[str] = []

    def hold_on() -> None:
        try:
            stage.wait(lambda: False)
        except Ended:
            seen.append("ended")
            raise
        finally:
            seen.append("cleaned up")

    threads.start(hold_on, name="one")
    threads.start(hold_on, name="two")
    survivor = stage.enter(lambda: stage.wait(lambda: False), owner="b", name="survivor")
    for player in list(stage.players):
        stage.turn(player)
    stage.end("a")
    assert seen == ["ended", "cleaned up"] * 2
    assert stage.players == [survivor]


def test_what_a_player_raises_is_kept_for_whoever_holds_the_stage(stage: Stage) -> None:
    def fail() -> None:
        raise ValueError("broken")

    player: Player = stage.enter(fail, owner="a", name="failing")
    stage.turn(player)
    assert [str(fallen.error) for fallen in stage.fallen] == ["broken"]


def test_a_machine_that_slept_counts_it_on_the_boot_clock_alone(stage: Stage) -> None:
    clock = TurnClock(stage, name="host")
    boot, awake = clock.boot(), clock.awake()
    stage.now += 60_000
    clock.slept_ms += 50_000
    assert (clock.boot() - boot, clock.awake() - awake) == (60_000, 10_000)
    name = clock.boot_id()
    clock.reboot()
    assert clock.boot_id() != name
    assert clock.nonce() != clock.nonce()
