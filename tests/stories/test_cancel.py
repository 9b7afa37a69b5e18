"""`stackhold cancel`: asks the run that holds the lock, from another process, to stop as on a first signal."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.both_stores import Watched
from tests.stories.scene import wait_until
from tests.stories.slow_chain import STACK, Chain, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

QUICK = {"STACKHOLD_STOP_POLL": "500ms"}


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def test_cancel_stops_a_slow_deploy_as_a_first_signal_does(chain: Chain) -> None:
    held = chain.hold()
    running = chain.deploy("--json", env=QUICK)
    held.wait_reached()
    asked = chain.scene.run("cancel", STACK, "--json").json()
    lock = chain.scene.lock(STACK)
    assert lock is not None
    assert (asked["asked"], asked["operation"], asked["released"]) == (lock["owner"], "deploy", False)
    assert chain.stored("stop-request.json")["lockId"] == lock["id"]
    assert chain.wait_told("stopping")["data"]["cause"] == "cancel"
    held.release()
    result = running.finish()

    assert result.code == 143
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "interrupted"
    assert "stackhold cancel asked for it" in result.err
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 2
    assert chain.stored("rollback-journal.json")["segments"][-1]["reason"] == "interrupted"
    for name in ("lock.json", "run.json", "stop-request.json"):
        assert not chain.has(name)
    chain.converges()


def test_cancel_with_wait_follows_the_run_to_its_end(chain: Chain) -> None:
    chain.deployed()
    held = chain.hold("DeleteParameter")
    running = chain.destroy(env=QUICK)
    held.wait_reached()
    cancelling = Watched(chain.scene.start("cancel", STACK, "--wait"))
    cancelling.wait_said("waiting for its end")
    assert chain.wait_told("stopping")["data"]["cause"] == "cancel"
    assert cancelling.running.process.poll() is None
    held.release()
    assert running.finish().code == 143
    done = cancelling.finish()
    assert done.code == 0
    assert f"{STACK} (us-east-1) is free" in done.out
    assert chain.recorded() == {"First"}
    assert not chain.has("stop-request.json")


def test_a_request_names_one_lock_and_never_stops_a_later_run(chain: Chain) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy(env=QUICK)
    held.wait_reached()
    running.signal(signal.SIGSTOP)
    chain.scene.run("cancel", STACK)
    running.signal(signal.SIGKILL)
    running.finish()
    held.release()
    chain.scene.run("force-unlock", STACK, "--yes")

    assert chain.has("stop-request.json")
    later = chain.hold(skip=0, drop="before")
    again = chain.deploy(env=QUICK)
    later.wait_reached()
    chain.wait_told("operation-started")
    wait_until(lambda: looked_twice(chain), "the later run to have had time to look")
    assert not any(each["kind"] == "stopping" for each in chain.last_run()["events"])
    again.signal(signal.SIGTERM)
    later.release()
    assert again.finish().code == 143


def looked_twice(chain: Chain) -> bool:
    """Whether the run at work is older than two looks."""
    return bool(chain.last_run()) and time.time() * 1000 - chain.last_run()["startedAt"] > 1_200


def test_cancel_without_a_run_says_so(chain: Chain) -> None:
    chain.deployed()
    refused = chain.scene.run("cancel", STACK, expect=1)
    assert f"nobody holds the lock of {STACK} (us-east-1)" in refused.err
    assert not chain.has("stop-request.json")


def put_lock(chain: Chain, **fields: Any) -> None:
    """Write the stack's lock past the product."""
    chain.scene.file(STACK, "lock.json").write_text(json.dumps(fields))


def test_cancel_cannot_ask_the_run_of_another_tool(chain: Chain) -> None:
    chain.deployed()
    now = time.time_ns() // 1_000_000
    put_lock(chain, owner="goto@macbook:12345", timestamp=now, expiresAt=now + 1_800_000, operation="deploy")
    refused = chain.scene.run("cancel", STACK, expect=1)
    assert "held by goto@macbook:12345, whose lock has no id" in refused.err
    assert "Stop it where it runs" in refused.err
    assert not chain.has("stop-request.json")
    assert chain.has("lock.json")


def test_cancel_says_that_a_silent_holder_will_not_look(chain: Chain) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy()
    held.wait_reached()
    running.signal(signal.SIGKILL)
    running.finish()
    assert chain.scene.run("cancel", STACK).code == 0
    lock = chain.scene.lock(STACK)
    assert lock is not None
    an_hour = 3_600_000
    put_lock(chain, **{**lock, "bootMs": lock["bootMs"] - an_hour, "expiresAt": lock["expiresAt"] - an_hour})
    refused = chain.scene.run("cancel", STACK, expect=1)
    assert f"{lock['owner']} has been silent for longer than its lock's ttl" in refused.err
    assert "takes its lock over" in refused.err
