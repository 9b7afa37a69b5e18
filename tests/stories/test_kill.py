"""kill -9 leaves nothing behind: the next run finds what was in flight, and goes on from there.

Chosen requests of a deploy, of an update that replaces and of a destroy; before AWS has the request, behind its
answer, and landing only when its sender is dead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories.killed import STACK, Killing, Point, killing_in
from tests.stories.scene import EXAMPLES, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SERVERLESS = EXAMPLES / "serverless.yaml"
DEPLOY = ("deploy", str(SERVERLESS), "--stack-name", STACK)
DESTROY = ("destroy", STACK, "--yes")

MADE = {
    "tables": 1,
    "queues": 2,
    "topics": 1,
    "subscriptions": 1,
    "roles": 1,
    "role policies": 1,
    "functions": 3,
    "mappings": 1,
    "log groups": 2,
    "rules": 1,
    "targets": 1,
    "apis": 1,
    "stages": 1,
    "routes": 2,
    "integrations": 1,
}
"""What the serverless example makes; permissions and the queue's policy hang on these."""
CREATES = [
    Point("dynamodb", "CreateTable", "after"),
    Point("iam", "AttachRolePolicy", "before"),
    Point("sns", "Subscribe", "after"),
    Point("lambda", "CreateFunction", "after", skip=2),
    Point("lambda", "CreateEventSourceMapping", "after"),
    Point("events", "PutTargets", "before"),
    Point("apigateway", "CreateApi", "after"),
    Point("apigateway", "CreateIntegration", "after"),
]
CHANGED = """
Parameters: {Size: {Type: Number, Default: 1}}
Resources:
  Queue: {Type: "AWS::SQS::Queue", Properties: {QueueName: !Sub "queue-${Size}", DelaySeconds: !Ref Size}}
  Group: {Type: "AWS::Logs::LogGroup", Properties: {LogGroupName: !Sub "/shop/${Size}"}}
  Note: {Type: "AWS::SSM::Parameter", Properties: {Type: String, Value: !Ref Queue}}
  Kept: {Type: "AWS::SNS::Topic", Properties: {DisplayName: !Sub "size ${Size}"}}
"""
CHANGES = [
    Point("sqs", "CreateQueue", "after"),
    Point("sns", "SetTopicAttributes", "before"),
    Point("logs", "DeleteLogGroup", "after"),
]
DELETES = [Point("lambda", "DeleteFunction", "after", skip=1), Point("iam", "DeleteRole", "before")]


@pytest.fixture
def killing(scene: Scene) -> Iterator[Killing]:
    with killing_in(scene) as made:
        yield made


def settles(killing: Killing, template: Path, *flags: str, want: dict[str, int]) -> None:
    """Exactly the template's resources exist, all are recorded, and there is nothing left to do."""
    assert killing.held() == want
    killing.assert_recorded()
    assert killing.deploy(template, *flags)["isEmpty"] is True
    assert killing.scene.lock(STACK) is None


@pytest.fixture
def want(killing: Killing) -> dict[str, int]:
    """What exists once the serverless example is deployed."""
    return {kind: count + MADE.get(kind, 0) for kind, count in killing.held().items()}


@pytest.mark.parametrize("point", CREATES, ids=str)
def test_a_deploy_that_was_killed_is_gone_on_with(killing: Killing, want: dict[str, int], point: Point) -> None:
    nothing = killing.held()
    killing.kill(*DEPLOY, at=point)
    killing.unlock()
    report = killing.deploy(SERVERLESS)
    assert any("an earlier run did not settle" in warning for warning in report["warnings"])
    settles(killing, SERVERLESS, want=want)
    killing.destroy()
    assert killing.held() == nothing


def test_a_takeover_of_an_expired_lock_recovers_and_leaves_no_run_file(killing: Killing, want: dict[str, int]) -> None:
    point = Point("lambda", "CreateFunction", "after", skip=1)
    killing.kill(*DEPLOY, "--lock-ttl", "6s", "--lock-renew", "1s", at=point)
    report = killing.deploy(SERVERLESS, "--lock-timeout", "30s")
    assert any("took over the lock" in warning for warning in report["warnings"])
    assert any("an earlier run did not settle" in warning for warning in report["warnings"])
    assert not killing.scene.file(STACK, "run.json").exists()
    settles(killing, SERVERLESS, want=want)


@pytest.mark.parametrize(
    "point",
    [Point("apigateway", "CreateApi", "late"), Point("dynamodb", "CreateTable", "late")],
    ids=str,
)
def test_a_request_that_lands_after_the_next_run_has_settled_is_cleaned_up_by_the_run_after(
    killing: Killing, want: dict[str, int], point: Point
) -> None:
    late = killing.kill(*DEPLOY, at=point)
    killing.unlock()
    killing.deploy(SERVERLESS)
    assert killing.held() == want
    late.release()
    wait_until(lambda: killing.proxy.calls[-1].forwarded and killing.proxy.calls[-1].status, "the late request")
    killing.deploy(SERVERLESS)
    settles(killing, SERVERLESS, want=want)


@pytest.mark.parametrize("point", CHANGES, ids=str)
def test_an_update_that_was_killed_while_it_replaced_is_gone_on_with(killing: Killing, point: Point) -> None:
    template = killing.scene.write("change.yaml", CHANGED)
    killing.deploy(template)
    want = killing.held()
    change = ("--parameter", "Size=2", "--yes")
    killing.kill("deploy", str(template), "--stack-name", STACK, *change, at=point)
    killing.unlock()
    killing.deploy(template, *change)
    settles(killing, template, *change, want=want)
    assert {url.rpartition("/")[2] for url in killing.scene.client("sqs").list_queues()["QueueUrls"]} == {"queue-2"}
    topic = killing.scene.client("sns").list_topics()["Topics"][0]["TopicArn"]
    shown = killing.scene.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["DisplayName"]
    assert shown == "size 2"


def test_an_update_that_was_killed_can_be_taken_back(killing: Killing) -> None:
    template = killing.scene.write("change.yaml", CHANGED)
    killing.deploy(template)
    want = killing.held()
    point = Point("sqs", "CreateQueue", "after")
    killing.kill("deploy", str(template), "--stack-name", STACK, "--parameter", "Size=2", "--yes", at=point)
    killing.unlock()
    killing.deploy(template, "--parameter", "Size=1", "--yes")
    settles(killing, template, want=want)
    assert {url.rpartition("/")[2] for url in killing.scene.client("sqs").list_queues()["QueueUrls"]} == {"queue-1"}


@pytest.mark.parametrize("point", DELETES, ids=str)
def test_a_destroy_that_was_killed_is_gone_on_with(killing: Killing, point: Point) -> None:
    nothing = killing.held()
    killing.deploy(SERVERLESS)
    killing.kill(*DESTROY, at=point)
    killing.unlock()
    killing.destroy()
    assert killing.held() == nothing
    assert not killing.scene.file(STACK, "state.json").exists()
    assert not killing.scene.file(STACK, "run.json").exists()


def test_a_deploy_after_a_killed_destroy_makes_everything_anew(killing: Killing, want: dict[str, int]) -> None:
    killing.deploy(SERVERLESS)
    killing.kill(*DESTROY, at=Point("lambda", "DeleteFunction", "after"))
    killing.unlock()
    killing.deploy(SERVERLESS)
    settles(killing, SERVERLESS, want=want)


def test_a_destroy_after_a_killed_deploy_leaves_nothing(killing: Killing) -> None:
    nothing = killing.held()
    killing.kill(*DEPLOY, at=Point("apigateway", "CreateIntegration", "after"))
    killing.unlock()
    killing.destroy()
    assert killing.held() == nothing
