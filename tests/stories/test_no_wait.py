"""A deploy that does not wait for slow resources, and the next one, which does."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

FUNCTION = """
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: "2012-10-17"
        Statement:
          - {Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: sts:AssumeRole}
  Worker:
    Type: AWS::Lambda::Function
    Properties:
      FunctionName: worker
      Runtime: python3.12
      Handler: index.handler
      MemorySize: 128
      Role: !GetAtt Role.Arn
      Code: {ZipFile: "def handler(event, context): return 1"}
"""
PENDING = Answer(
    200,
    body=json.dumps({"FunctionName": "worker", "State": "Pending", "LastUpdateStatus": "InProgress"}).encode(),
    headers=(("Content-Type", "application/json"),),
)


def is_settling(scene: Scene) -> bool:
    """What the record says of the function."""
    return bool(scene.record("worker")["resources"]["Worker"].get("settling"))


@pytest.fixture
def left_settling(scene: Scene) -> Scene:
    """A scene whose first deploy has not waited."""
    scene.write("worker.yaml", FUNCTION)
    made = scene.run("deploy", "worker.yaml", "--no-wait", "--json").json()
    assert made["counts"] == {"create": 2}
    assert is_settling(scene)
    assert scene.lock("worker") is None
    return scene


def test_the_deploy_after_a_no_wait_one_waits_for_what_is_still_coming_up(left_settling: Scene) -> None:
    scene = left_settling
    with SlowProxy(scene.emulator.url) as proxy:
        pending = proxy.add(Rule(operation="GetFunctionConfiguration", times=2, answer=PENDING))
        held = proxy.add(Rule(operation="GetFunctionConfiguration", skip=2, hold=threading.Event()))
        waiting = scene.start("deploy", "worker.yaml", "--json", env={"AWS_ENDPOINT_URL": proxy.url})
        held.wait_reached()
        assert pending.caught == 2
        assert waiting.process.poll() is None
        assert is_settling(scene)
        assert scene.lock("worker") is not None
        held.release()
        done = waiting.finish()
        assert done.code == 0
        assert "settl" in done.err
        assert not proxy.count(service="lambda", operation="CreateFunction")
        assert not proxy.count(service="lambda", operation="Update*")
    assert not is_settling(scene)
    assert scene.client("lambda").get_function_configuration(FunctionName="worker")["State"] == "Active"
    assert scene.record("worker")["resources"]["Worker"]["observedProperties"]["MemorySize"] == 128
    assert scene.run("deploy", "worker.yaml", "--json").json()["isEmpty"] is True
    assert scene.run("drift", "worker", "--json").json()["isDrifted"] is False


def test_the_diff_after_a_no_wait_deploy_shows_what_is_waited_for(left_settling: Scene) -> None:
    shown = left_settling.run("diff", "worker.yaml", "--json").json()
    assert shown["counts"]["wait"] == 1
    assert is_settling(left_settling)


def test_another_no_wait_deploy_still_leaves_it_settling(left_settling: Scene) -> None:
    scene = left_settling
    with SlowProxy(scene.emulator.url) as proxy:
        proxy.add(Rule(service="lambda", operation="GetFunctionConfiguration", answer=PENDING))
        scene.run("deploy", "worker.yaml", "--no-wait", env={"AWS_ENDPOINT_URL": proxy.url})
    assert is_settling(scene)
    scene.run("deploy", "worker.yaml")
    assert not is_settling(scene)


def test_a_change_right_after_a_no_wait_deploy_waits_until_the_function_takes_it(left_settling: Scene) -> None:
    scene = left_settling
    scene.write("worker.yaml", FUNCTION.replace("MemorySize: 128", "MemorySize: 256"))
    busy = Answer(409, "ResourceConflictException", "The operation cannot be performed: the function is Pending")
    with SlowProxy(scene.emulator.url) as proxy:
        proxy.add(Rule(service="lambda", operation="UpdateFunctionConfiguration", times=1, answer=busy))
        proxy.add(Rule(service="lambda", operation="GetFunctionConfiguration", times=1, answer=PENDING))
        scene.run("deploy", "worker.yaml", env={"AWS_ENDPOINT_URL": proxy.url})
        assert proxy.count(service="lambda", operation="UpdateFunctionConfiguration") == 2
    assert scene.client("lambda").get_function_configuration(FunctionName="worker")["MemorySize"] == 256
    assert not is_settling(scene)


def test_a_destroy_right_after_a_no_wait_deploy_leaves_nothing(left_settling: Scene) -> None:
    left_settling.run("destroy", "worker", "--yes")
    assert left_settling.client("lambda").list_functions()["Functions"] == []
    assert not left_settling.file("worker").exists()
