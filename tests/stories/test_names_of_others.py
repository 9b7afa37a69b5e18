"""Two stacks that give the same names: each keeps what it made, and neither deletes what is the other's."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import wait_until

from stackhold.testing.proxy import Answer, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

    from stackhold.testing.http_messages import Message
    from stackhold.testing.proxy import Call

pytestmark = [pytest.mark.emulator, pytest.mark.story]

BOTH = """
Resources:
  T: {Type: AWS::SNS::Topic, Properties: {TopicName: common-topic}}
  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: common-queue}}
"""
RULE = """
Resources:
  R: {Type: AWS::Events::Rule, Properties: {Name: common-rule, ScheduleExpression: rate(1 hour)}}
"""


@pytest.fixture
def proxy(scene: Scene) -> Iterator[SlowProxy]:
    """A proxy on the way of one of the two."""
    with SlowProxy(scene.emulator.url) as made:
        yield made


def owners(scene: Scene) -> dict[str, str | None]:
    """Whose stack's tags the topics and queues that exist carry, by name."""
    sns, sqs = scene.client("sns"), scene.client("sqs")
    found: dict[str, str | None] = {}
    for topic in sns.list_topics()["Topics"]:
        tags = sns.list_tags_for_resource(ResourceArn=topic["TopicArn"])["Tags"]
        name = topic["TopicArn"].rpartition(":")[2]
        found[name] = {tag["Key"]: tag["Value"] for tag in tags}.get("stackhold:stack")
    for url in sqs.list_queues().get("QueueUrls", []):
        tags = sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
        found[url.rpartition("/")[2]] = tags.get("stackhold:stack")
    return found


@pytest.mark.parametrize("flags", [(), ("--no-rollback",)], ids=["goes back", "stays"])
def test_of_two_stacks_that_saw_the_same_free_names_the_later_fails_and_touches_nothing_of_the_firsts(
    scene: Scene, proxy: SlowProxy, flags: tuple[str, ...]
) -> None:
    scene.write("both.yaml", BOTH)
    names = ("CreateTopic", "CreateQueue")
    held = [proxy.add(Rule(operation=name, hold=threading.Event())) for name in names]
    second = scene.start("deploy", "both.yaml", "--stack-name", "second", *flags, env={"AWS_ENDPOINT_URL": proxy.url})
    for rule in held:
        rule.wait_reached()
    scene.run("deploy", "both.yaml", "--stack-name", "first")
    for rule in held:
        rule.release()

    failed = second.finish()
    assert failed.code == 1 if not flags else failed.code != 0
    assert (
        "exists already and was not made by this run: the name is taken, it is stack first's (us-east-1)" in failed.err
    )
    assert owners(scene) == {"common-topic": "first", "common-queue": "first"}
    assert proxy.count(operation="Delete*") == 0
    scene.run("destroy", "second", "--yes", expect=None)
    assert owners(scene) == {"common-topic": "first", "common-queue": "first"}
    scene.run("destroy", "first", "--yes")
    assert owners(scene) == {}


def test_a_rule_that_another_stack_put_after_it_was_looked_for_stays_that_stacks(
    scene: Scene, proxy: SlowProxy
) -> None:
    """AWS ignores the tags of a PutRule on a rule that exists; the emulator takes them, so the proxy does as AWS."""
    events = scene.client("events")

    def keep_tags(call: Call, request: Message) -> Answer:
        untagged = {name: value for name, value in json.loads(request.body).items() if name != "Tags"}
        arn = events.put_rule(**untagged)["RuleArn"]
        headers = (("Content-Type", "application/x-amz-json-1.1"),)
        return Answer(200, body=json.dumps({"RuleArn": arn}).encode(), headers=headers)

    held = proxy.add(Rule(operation="PutRule", hold=threading.Event(), judge=keep_tags))
    scene.write("rule.yaml", RULE)
    second = scene.start("deploy", "rule.yaml", "--stack-name", "second", env={"AWS_ENDPOINT_URL": proxy.url})
    held.wait_reached()
    scene.run("deploy", "rule.yaml", "--stack-name", "first")
    held.release()

    failed = second.finish()
    assert failed.code == 1
    assert "rule common-rule exists already and was not made by this run: the name is taken, it is stack first's" in (
        failed.err
    )
    assert proxy.count(operation="Delete*") == 0
    assert events.describe_rule(Name="common-rule")["State"] == "ENABLED"
    assert scene.run("drift", "first", "--json").json()["isDrifted"] is False


def test_a_rule_that_is_made_by_hand_while_a_create_is_throttled_is_not_overwritten(
    scene: Scene, proxy: SlowProxy
) -> None:
    events = scene.client("events")
    by_hand = {"Name": "common-rule", "ScheduleExpression": "rate(9 hours)"}

    def make(call: Call) -> None:
        events.put_rule(**by_hand)

    proxy.add(Rule(operation="PutRule", before=make, times=1, answer=Answer(400, "ThrottlingException")))
    scene.write("rule.yaml", RULE)
    failed = scene.run("deploy", "rule.yaml", expect=1, env={"AWS_ENDPOINT_URL": proxy.url})
    assert "rule common-rule exists already and was not made by this run" in failed.err
    assert proxy.count(operation="PutRule") == 1
    assert events.describe_rule(Name="common-rule")["ScheduleExpression"] == "rate(9 hours)"


def test_a_destroy_lets_go_of_what_another_stacks_tags_are_on(scene: Scene) -> None:
    scene.write("both.yaml", BOTH)
    scene.run("deploy", "both.yaml", "--stack-name", "first")
    scene.write("other.yaml", BOTH.replace("common", "other"))
    scene.run("deploy", "other.yaml", "--stack-name", "second")
    path = scene.file("second")
    path.write_text(path.read_text().replace("other-topic", "common-topic"))
    assert json.loads(path.read_text())["resources"]["T"]["physicalId"].endswith(":common-topic")

    destroyed = scene.run("destroy", "second", "--yes")
    said = "common-topic is not deleted: by its tags it is stack first's (us-east-1), as its T"
    assert said in destroyed.out + destroyed.err
    assert owners(scene) == {"common-topic": "first", "common-queue": "first", "other-topic": "second"}
    wait_until(lambda: not scene.file("second").exists(), "the record to go")
