"""A destroy that was stopped on the way goes on where it was: what is gone is not deleted twice."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.inventory import inventory
from tests.stories.scene import EXAMPLES

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

CHAIN = """
Resources:
  Name: {Type: "AWS::SSM::Parameter", Properties: {Type: String, Value: x}}
  Queue: {Type: "AWS::SQS::Queue", DependsOn: Name}
  Topic: {Type: "AWS::SNS::Topic", DependsOn: Queue}
  Group: {Type: "AWS::Logs::LogGroup", DependsOn: Topic}
"""
"""Deleted from the group to the parameter."""
DELETES = {
    "logs:DeleteLogGroup": 1,
    "sns:DeleteTopic": 1,
    "sqs:DeleteQueue": 1,
    "ssm:DeleteParameter": 1,
}


def deletes(proxy: SlowProxy) -> dict[str, int]:
    """The delete calls that reached the emulator, by name."""
    found: dict[str, int] = {}
    for call in proxy.calls:
        if call.named.operation.startswith("Delete") and call.forwarded:
            found[call.name] = found.get(call.name, 0) + 1
    return found


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_destroy_goes_on_and_repeats_no_delete(scene: Scene, signum: signal.Signals, code: int) -> None:
    before = inventory(scene.client)
    scene.write("chain.yaml", CHAIN)
    scene.run("deploy", "chain.yaml")
    with SlowProxy(scene.emulator.url) as proxy:
        through = {"AWS_ENDPOINT_URL": proxy.url}
        held = proxy.add(Rule(service="sns", operation="DeleteTopic", hold=threading.Event()))
        destroying = scene.start("destroy", "chain", "--yes", env=through)
        held.wait_reached()
        destroying.signal(signum)
        scene.wait_told("chain", "stopping")
        held.release()
        stopped = destroying.finish()

        assert stopped.code == code
        assert "destroy again" in stopped.err
        assert scene.lock("chain") is None
        assert set(scene.record("chain")["resources"]) == {"Name", "Queue"}
        assert deletes(proxy) == {"logs:DeleteLogGroup": 1, "sns:DeleteTopic": 1}

        gone = scene.run("destroy", "chain", "--yes", "--json", env=through).json()
        assert gone["counts"] == {"delete": 2}
        assert deletes(proxy) == DELETES
    assert inventory(scene.client) == before
    assert not [name for name in scene.file("chain").parent.iterdir() if name.suffix == ".json"]


def test_a_wide_destroy_stopped_with_calls_in_flight_deletes_each_resource_once(scene: Scene) -> None:
    before = inventory(scene.client)
    scene.run("deploy", str(EXAMPLES / "wide.yaml"), "--no-baseline")
    with SlowProxy(scene.emulator.url) as proxy:
        through = {"AWS_ENDPOINT_URL": proxy.url}
        held = proxy.add(Rule(operation="Delete*", hold=threading.Event()))
        destroying = scene.start("destroy", "wide", "--yes", "--json", env=through)
        held.wait_reached()
        destroying.signal(signal.SIGTERM)
        scene.wait_told("wide", "stopping")
        held.release()
        stopped = destroying.finish()
        assert stopped.code == 143
        first = stopped.json()["counts"]
        assert first["delete"] + first["not tried"] == 48
        assert first["not tried"] > 0
        assert len(scene.record("wide")["resources"]) == first["not tried"]

        second = scene.run("destroy", "wide", "--yes", "--json", env=through).json()
        assert second["counts"] == {"delete": first["not tried"]}
        assert sum(deletes(proxy).values()) == 48
    assert inventory(scene.client) == before


def test_a_delete_that_failed_is_the_only_one_tried_again(scene: Scene) -> None:
    before = inventory(scene.client)
    scene.write("chain.yaml", CHAIN)
    scene.run("deploy", "chain.yaml")
    with SlowProxy(scene.emulator.url) as proxy:
        through = {"AWS_ENDPOINT_URL": proxy.url}
        refusal = proxy.add(
            Rule(service="sqs", operation="DeleteQueue", answer=Answer(403, "AccessDenied", "not you")),
        )
        partly = scene.run("destroy", "chain", "--yes", expect=2, env=through)
        assert "Queue" in partly.err
        assert "not you" in partly.err
        assert scene.lock("chain") is None
        assert set(scene.record("chain")["resources"]) == {"Name", "Queue"}
        proxy.remove(refusal)
        scene.run("destroy", "chain", "--yes", env=through)
        assert deletes(proxy) == DELETES
    assert inventory(scene.client) == before
