"""How a destroy stops: as a deploy does, and what is left can be destroyed by the next one."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import wait_until
from tests.stories.slow_chain import NAMES, STACK, Chain, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        made.deployed()
        yield made


def gone(chain: Chain) -> bool:
    """Whether cloud and store hold nothing of the stack."""
    names = ("state.json", "lock.json", "run.json", "rollback-journal.json")
    return not chain.in_cloud() and not any(chain.has(name) for name in names)


@pytest.mark.parametrize(
    ("flags", "signum", "code", "outcome", "reason"),
    [
        pytest.param([], signal.SIGTERM, 143, "interrupted", "interrupted", id="SIGTERM"),
        pytest.param(["--deadline", "3"], None, 124, "deadline-exceeded", "deadline", id="deadline"),
    ],
)
def test_a_stopped_destroy_finishes_what_is_in_flight_and_the_next_one_does_the_rest(
    chain: Chain, flags: list[str], signum: signal.Signals | None, code: int, outcome: str, reason: str
) -> None:
    held = chain.hold("DeleteParameter")
    running = chain.destroy(*flags, "--json")
    held.wait_reached()
    if signum is not None:
        running.signal(signum)
    chain.wait_told("stopping")
    held.release()
    result = running.finish()

    assert result.code == code
    assert result.json()["outcome"] == chain.last_run()["outcome"] == outcome
    assert chain.in_cloud() == chain.recorded() == {"First"}
    assert chain.proxy.count(service="ssm", operation="DeleteParameter") == 2
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    segment = chain.stored("rollback-journal.json")["segments"][-1]
    assert segment["reason"] == reason
    assert {each["logicalId"] for each in segment["operations"]} == {"Second", "Third"}

    assert chain.destroy().finish().code == 0
    assert chain.proxy.count(service="ssm", operation="DeleteParameter") == 3
    assert gone(chain)


def test_when_the_grace_of_a_destroy_runs_out_the_delete_in_flight_becomes_an_intent(chain: Chain) -> None:
    held = chain.hold("DeleteParameter")
    running = chain.destroy("--grace", "4")
    held.wait_reached()
    running.signal(signal.SIGINT)
    result = running.finish(timeout=6)

    assert result.code == 130
    assert chain.recorded() == {"First", "Second"}
    assert chain.scene.lock(STACK) is None
    left = chain.stored("run.json")["intents"]
    assert [(each["logicalId"], each["kind"], each["physicalId"]) for each in left] == [
        ("Second", "delete", "chain-second")
    ]

    held.release()
    wait_until(lambda: chain.in_cloud() == {"First"}, "the late delete")
    again = chain.destroy().finish()
    assert again.code == 0
    assert "recorded and gone: Second (AWS::SSM::Parameter)" in again.out
    assert not chain.in_cloud()
    assert not chain.has("state.json")
    assert chain.scene.lock(STACK) is None


def test_a_killed_destroy_leaves_its_lock_and_the_next_one_after_force_unlock_does_the_rest(chain: Chain) -> None:
    held = chain.hold("DeleteParameter", drop="before")
    running = chain.destroy()
    held.wait_reached()
    wait_until(lambda: chain.recorded() == {"First", "Second"}, "the save of the first delete")
    running.signal(signal.SIGKILL)
    running.finish()
    held.release()

    lock = chain.scene.lock(STACK)
    assert lock is not None
    assert lock["operation"] == "destroy"
    assert {each["logicalId"] for each in chain.stored("run.json")["intents"]} == set(NAMES)
    refused = chain.scene.run("destroy", STACK, "--yes", expect=1)
    assert lock["owner"] in refused.err
    chain.scene.run("force-unlock", STACK, "--yes")
    chain.scene.run("destroy", STACK, "--yes")
    assert not chain.in_cloud()
    assert not chain.has("state.json")
    assert chain.scene.lock(STACK) is None


def test_a_second_signal_ends_a_destroy_at_once(chain: Chain) -> None:
    held = chain.hold("DeleteParameter")
    running = chain.destroy()
    held.wait_reached()
    running.signal(signal.SIGTERM)
    chain.wait_told("stopping")
    running.signal(signal.SIGTERM)
    result = running.finish(timeout=5)
    assert result.code == 130
    assert "stackhold force-unlock" in result.err
    assert chain.recorded() >= {"First", "Second"}
