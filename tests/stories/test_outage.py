"""The endpoint starts anew under a deploy: a few seconds in which nobody listens cost time, and nothing else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import in_bucket
from tests.stories.relay import Relay

from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from tests.stories.scene import Scene

    from stackhold.testing.proxy import Call

pytestmark = [pytest.mark.emulator, pytest.mark.story]

AWAY_SECONDS = 5.0
COUNT = 5
TEMPLATE = "Resources:\n" + "".join(
    f"  P{index}: {{Type: 'AWS::SSM::Parameter', Properties: {{Type: String, Value: x}}"
    + (f", DependsOn: P{index - 1}" if index else "")
    + "}\n"
    for index in range(COUNT)
)


@pytest.mark.parametrize("store", ["directory", "bucket"])
def test_a_service_that_nobody_can_reach_for_a_few_seconds_does_not_fail_a_deploy(scene: Scene, store: str) -> None:
    scene = scene if store == "directory" else in_bucket(scene)
    scene.write("t.yaml", TEMPLATE)
    with SlowProxy(scene.emulator.url) as proxy, Relay(proxy.url) as relay:
        back = threading.Timer(AWAY_SECONDS, relay.begin)

        def restart(_: Call) -> None:
            relay.go_away()
            back.start()

        proxy.add(Rule(operation="PutParameter", skip=1, times=1, after=restart))
        result = scene.run("deploy", "t.yaml", env={"AWS_ENDPOINT_URL": relay.url})
        back.join()
    assert "undone" not in result.err
    assert sorted(scene.record("t")["resources"]) == [f"P{index}" for index in range(COUNT)]
    assert len(scene.client("ssm").describe_parameters()["Parameters"]) == COUNT
