"""How a run stops before its work, while it waits for the lock, reads or plans; and when its store hangs for good."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import BUCKET, Watched, in_bucket
from tests.stories.scene import wait_until
from tests.stories.slow_chain import NAMES, STACK, Chain, chain_in

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SIGINT = pytest.param(signal.SIGINT, 130, "interrupted", id="SIGINT")
SIGTERM = pytest.param(signal.SIGTERM, 143, "interrupted", id="SIGTERM")
DEADLINE = pytest.param(None, 124, "deadline-exceeded", id="deadline")


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


@pytest.mark.parametrize(
    ("operation", "flags", "signum", "code", "outcome"),
    [
        pytest.param("deploy", ["--lock-timeout", "60s"], *SIGINT.values, id="deploy-SIGINT"),
        pytest.param("destroy", ["--lock-timeout", "60s"], *SIGTERM.values, id="destroy-SIGTERM"),
        pytest.param("destroy", ["--lock-timeout", "60s", "--deadline", "2"], *DEADLINE.values, id="destroy-deadline"),
    ],
)
def test_a_stop_while_waiting_for_the_lock_changes_nothing_and_leaves_the_lock_of_the_other(
    chain: Chain, operation: str, flags: list[str], signum: signal.Signals | None, code: int, outcome: str
) -> None:
    held = chain.hold()
    holder = chain.deploy()
    held.wait_reached()
    wait_until(lambda: chain.recorded() == {"First"}, "the save of the first")
    before = {name: chain.stored(name) for name in ("lock.json", "state.json", "run.json")}

    waiting = Watched(getattr(chain, operation)(*flags))
    waiting.wait_said("waiting for the lock")
    if signum is not None:
        waiting.running.signal(signum)
    result = waiting.finish()
    assert result.code == code
    assert "nothing was changed" in result.err
    assert outcome in result.out
    assert {name: chain.stored(name) for name in before} == before
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 2

    held.release()
    assert holder.finish().code == 0
    assert chain.in_cloud() == chain.recorded() == set(NAMES)


@pytest.mark.parametrize(("signum", "code", "outcome"), [SIGTERM, DEADLINE])
def test_a_stop_while_planning_gives_up_a_read_that_hangs(
    chain: Chain, signum: signal.Signals | None, code: int, outcome: str
) -> None:
    held = chain.proxy.add(Rule(service="sts", hold=threading.Event()))
    flags = ["--deadline", "3", "--lock-timeout", "1"] if signum is None else []
    running = chain.deploy("--json", *flags)
    held.wait_reached()
    wait_until(lambda: chain.scene.lock(STACK) is not None, "the lock")
    if signum is not None:
        running.signal(signum)
    result = running.finish(timeout=20)

    assert result.code == code
    assert result.json()["outcome"] == chain.last_run()["outcome"] == outcome
    assert result.json()["changed"] is False
    assert "nothing was changed" in result.err
    assert chain.scene.lock(STACK) is None
    assert not chain.has("state.json")
    assert not chain.has("run.json")
    assert chain.proxy.count(service="ssm") == 0
    held.release()
    chain.converges()


@pytest.mark.parametrize(("signum", "code", "outcome"), [SIGTERM, DEADLINE])
@pytest.mark.parametrize("key", ["lock.json", "state.json"])
def test_a_stop_in_time_while_the_bucket_hangs_before_the_work(
    chain: Chain, key: str, signum: signal.Signals | None, code: int, outcome: str
) -> None:
    in_bucket(chain.scene)
    held = chain.proxy.add(Rule(service="s3", path=f"/{BUCKET}/*/{key}", hold=threading.Event(), drop="before"))
    flags = ["--deadline", "3", "--lock-timeout", "1"] if signum is None else []
    running = chain.deploy("--grace", "4", "--json", *flags)
    held.wait_reached()
    if signum is not None:
        running.signal(signum)
    result = running.finish(timeout=20)

    assert result.code == code
    assert not chain.in_cloud()
    assert ("stackhold force-unlock" in result.err) is (key == "lock.json")
    stored = {each["Key"].split("/")[-1] for each in objects(chain)}
    assert not {"lock.json", "state.json", "run.json"} & stored
    held.release()


def test_a_process_whose_store_hangs_for_good_leaves_before_its_grace_ends(chain: Chain) -> None:
    in_bucket(chain.scene)
    proxy = chain.proxy
    held = proxy.add(Rule(service="s3", when=lambda *_: proxy.count(service="ssm") > 0, hold=threading.Event()))
    running = chain.deploy("--grace", "4")
    held.wait_reached()
    running.signal(signal.SIGINT)
    result = running.finish(timeout=20)
    assert result.code == 130
    assert "the grace (4 s) is used up" in result.err
    assert f"stackhold force-unlock {STACK}" in result.err
    held.release()


def objects(chain: Chain) -> list[dict[str, str]]:
    """Everything in the state bucket, asked directly."""
    found: list[dict[str, str]] = chain.scene.client("s3").list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return found
