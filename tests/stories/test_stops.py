"""How a run stops: every row of the guarded run's table, with real processes and real signals."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from tests.stories.slow_chain import NAMES, STACK, Chain, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SIGNALS = [
    pytest.param(signal.SIGINT, 130, id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
]


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def test_a_run_that_finishes_exits_0_and_leaves_neither_lock_nor_journal(chain: Chain) -> None:
    result = chain.deploy("--json").finish()
    assert result.code == 0
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "succeeded"
    assert chain.in_cloud() == chain.recorded() == set(NAMES)
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    assert not chain.has("rollback-journal.json")


@pytest.mark.parametrize(("signum", "code"), SIGNALS)
def test_a_first_signal_lets_calls_in_flight_finish_and_starts_nothing_new(
    chain: Chain, signum: signal.Signals, code: int
) -> None:
    held = chain.hold()
    running = chain.deploy("--json")
    held.wait_reached()
    running.signal(signum)
    stopping = chain.wait_told("stopping")
    assert stopping["data"]["cause"] == signum.name
    assert chain.scene.lock(STACK) is not None
    held.release()
    result = running.finish()

    assert result.code == result.json()["exitCode"] == code
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "interrupted"
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 2
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    segment = chain.stored("rollback-journal.json")["segments"][-1]
    assert segment["reason"] == "interrupted"
    assert {each["logicalId"] for each in segment["operations"]} == {"First", "Second"}
    assert "deploy again" in result.err
    chain.converges()
    assert not chain.has("rollback-journal.json")
