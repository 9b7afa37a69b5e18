"""The engine end to end on emulators: deploy, a second plan that is empty, changes, failures, destroy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engines.cloudformation.emulated import Emulated

from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.plan import Action
from stackhold.errors import InputError, TemplateError
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId
from stackhold.model.run import IntentKind, Outcome
from stackhold.testing.scripted_run import identity

if TYPE_CHECKING:
    from stackhold.testing.emulators import Emulator

CASES = os.environ.get("STACKHOLD_CASES")
EXAMPLES = Path(__file__).parents[3] / "examples"

SMALL = """
Parameters:
  Days: {Type: Number, Default: 7}
Resources:
  Topic: {Type: "AWS::SNS::Topic"}
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 30}
  Group:
    Type: AWS::Logs::LogGroup
    Properties: {RetentionInDays: !Ref Days}
  Name:
    Type: AWS::SSM::Parameter
    Properties: {Type: String, Value: !GetAtt Queue.Arn}
Outputs:
  TopicArn: {Value: !Ref Topic, Export: {Name: shop-topic}}
  QueueUrl: {Value: !Ref Queue}
"""


@pytest.fixture
def stack(ministack: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulated:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    return Emulated(ministack)


@pytest.fixture
def on_moto(moto: Emulator, monkeypatch: pytest.MonkeyPatch) -> Emulated:
    for key, value in moto.environment().items():
        monkeypatch.setenv(key, value)
    return Emulated(moto)


def lives_through(stack: Emulated, template: str | Path) -> None:
    """Deploy, plan nothing, drift nothing, destroy, leave nothing."""
    before = stack.inventory()
    stack.must_deploy(template)
    assert stack.inventory() != before
    again = stack.plan(template)
    assert again.is_empty, [change for change in again.plan.changes.values() if change.action is not Action.KEEP]
    report = stack.drift()
    assert not report.is_drifted, [one for one in report.resources if one.differences]
    assert not [one for one in report.resources if one.reason]
    result = stack.destroy()
    assert result.record_gone, result.error
    assert stack.inventory() == before


@pytest.mark.emulator
@pytest.mark.skipif(not CASES, reason="STACKHOLD_CASES names no folder of cases")
@pytest.mark.parametrize("case", ["wide", "serverless", "webapp"])
def test_a_case_lives_and_leaves_nothing(stack: Emulated, case: str) -> None:
    lives_through(stack, Path(CASES or "") / f"{case}.template.json")


@pytest.mark.emulator
@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_an_example_lives_and_leaves_nothing(stack: Emulated, example: str) -> None:
    lives_through(stack, EXAMPLES / example)


@pytest.mark.emulator
def test_the_wide_example_lives_on_moto_too(on_moto: Emulated) -> None:
    wide = EXAMPLES / "wide.yaml"
    before = on_moto.inventory()
    on_moto.must_deploy(wide)
    assert on_moto.plan(wide).is_empty
    assert on_moto.destroy().record_gone
    assert on_moto.inventory() == before


@pytest.mark.emulator
def test_the_record_holds_what_a_later_run_needs(stack: Emulated) -> None:
    stack.must_deploy(SMALL)
    record = stack.record
    assert record is not None
    assert record.lineage
    assert record.stack_id
    assert record.stack_id.startswith("arn:aws:cloudformation:us-east-1:000000000000:stack/shop/")
    assert record.parameters == {"Days": "7"}
    assert record.outputs == {"TopicArn": stack.physical("Topic"), "QueueUrl": stack.physical("Queue")}
    assert record.resources[LogicalId("Name")].dependencies == (LogicalId("Queue"),)
    assert record.resources[LogicalId("Queue")].provisioned_by == "sdk"


@pytest.mark.emulator
def test_exports_are_given_to_the_run(stack: Emulated) -> None:
    result = stack.deploy(SMALL)
    assert result.exports == {"shop-topic": stack.physical("Topic")}
    assert stack.destroy().exports == {}


@pytest.mark.emulator
def test_an_in_place_change_updates_one_resource(stack: Emulated) -> None:
    stack.must_deploy(SMALL)
    work = stack.plan(SMALL.replace("VisibilityTimeout: 30", "VisibilityTimeout: 45"))
    assert [name for name, change in work.plan.changes.items() if change.action is Action.UPDATE] == ["Queue"]
    assert work.perform(stack.run).exit_code is ExitCode.DONE
    queue = stack.client("sqs").get_queue_attributes(QueueUrl=stack.physical("Queue"), AttributeNames=["All"])
    assert queue["Attributes"]["VisibilityTimeout"] == "45"


@pytest.mark.emulator
def test_tags_are_kept_until_others_are_given(stack: Emulated) -> None:
    template = "Resources:\n  Queue: {Type: AWS::SQS::Queue}\n"

    def tags() -> dict[str, str]:
        found = stack.client("sqs").list_queue_tags(QueueUrl=stack.physical("Queue")).get("Tags", {})
        return {key: value for key, value in found.items() if not key.startswith("stackhold:")}

    stack.tags = {"team": "pay", "cost": "7"}
    stack.must_deploy(template)
    assert stack.record is not None
    assert stack.record.tags == tags() == {"team": "pay", "cost": "7"}
    stack.tags = None
    kept = stack.plan(template)
    assert (kept.is_empty, kept.plan.keeps_tags) == (True, True)
    stack.must_deploy(template.replace("Queue}", "Queue, Properties: {DelaySeconds: 1}}"))
    assert stack.record.tags == tags() == {"team": "pay", "cost": "7"}
    stack.tags = {"team": "core"}
    stack.must_deploy(template)
    assert stack.record.tags == tags() == {"team": "core"}
    stack.tags = {}
    stack.must_deploy(template)
    assert not stack.record.tags
    assert not tags()


@pytest.mark.emulator
def test_a_generated_name_that_the_template_comes_to_name_is_recorded_once(stack: Emulated) -> None:
    stack.must_deploy(SMALL)
    name = stack.physical("Queue").rpartition("/")[2]
    named = SMALL.replace("{VisibilityTimeout: 30}", f"{{VisibilityTimeout: 30, QueueName: {name}}}")
    work = stack.plan(named)
    assert work.plan.changes[LogicalId("Queue")].action is Action.RECORD
    stack.must_deploy(named)
    assert stack.plan(named).is_empty


@pytest.mark.emulator
def test_a_create_only_change_replaces_new_before_old_and_references_follow(stack: Emulated) -> None:
    named = SMALL.replace("{VisibilityTimeout: 30}", "{VisibilityTimeout: 30, QueueName: first}")
    stack.must_deploy(named)
    old = stack.physical("Queue")
    stack.must_deploy(named.replace("QueueName: first", "QueueName: second"))
    assert stack.physical("Queue").endswith("/second")
    assert old != stack.physical("Queue")
    assert stack.inventory()["queues"] == [stack.physical("Queue")]
    value = stack.client("ssm").get_parameter(Name=stack.physical("Name"))["Parameter"]["Value"]
    assert value.endswith(":second")
    assert stack.record is not None
    assert not stack.record.pending_deletes
    order = [
        (str(event.logical_id), event.data["operation"])
        for event in stack.run.events
        if event.kind.value == "operation-done"
    ]
    assert order == [("Queue", "replace"), ("Name", "update"), ("Queue", "delete")]


@pytest.mark.emulator
def test_a_removed_resource_goes_and_a_retained_one_stays(stack: Emulated) -> None:
    stack.must_deploy(SMALL.replace("Group:", "Group:\n    DeletionPolicy: Retain"))
    group = stack.physical("Group")
    without = SMALL[: SMALL.index("  Group:")] + SMALL[SMALL.index("Outputs:") :]
    stack.must_deploy(without)
    found = stack.inventory()
    assert found["log groups"] == [group]
    assert found["parameters"] == []
    assert stack.record is not None
    assert set(stack.record.resources) == {"Topic", "Queue"}


@pytest.mark.emulator
def test_a_failed_first_deploy_leaves_nothing(stack: Emulated) -> None:
    before = stack.inventory()
    stack.client("ssm").put_parameter(Name="taken", Value="x", Type="String")
    broken = SMALL.replace("{Type: String, Value: !GetAtt Queue.Arn}", "{Name: taken, Type: String, Value: !Ref Queue}")
    result = stack.deploy(broken)
    assert result.exit_code is ExitCode.FAILED
    assert result.record_gone
    assert result.error.startswith("Name: ")
    stack.client("ssm").delete_parameter(Name="taken")
    assert stack.inventory() == before


@pytest.mark.emulator
def test_a_failed_update_restores_what_it_changed(stack: Emulated) -> None:
    stack.must_deploy(SMALL)
    stack.client("ssm").put_parameter(Name="taken", Value="x", Type="String")
    more = """
  Taken:
    Type: AWS::SSM::Parameter
    DependsOn: Queue
    Properties: {Name: taken, Type: String, Value: y}
Outputs:"""
    result = stack.deploy(SMALL.replace("VisibilityTimeout: 30", "VisibilityTimeout: 99").replace("\nOutputs:", more))
    assert result.exit_code is ExitCode.FAILED
    queue = stack.client("sqs").get_queue_attributes(QueueUrl=stack.physical("Queue"), AttributeNames=["All"])
    assert queue["Attributes"]["VisibilityTimeout"] == "30"
    assert stack.plan(SMALL).is_empty


@pytest.mark.emulator
def test_stack_tags_reach_resources_below_their_own_and_can_change(stack: Emulated) -> None:
    stack.tags = {"team": "one"}
    stack.must_deploy(SMALL)
    stack.tags = {"team": "two"}
    work = stack.plan(SMALL)
    assert {change.action for change in work.plan.changes.values()} <= {Action.UPDATE, Action.KEEP}
    assert work.perform(stack.run).outcome is Outcome.SUCCEEDED
    tags = stack.client("sqs").list_queue_tags(QueueUrl=stack.physical("Queue"))["Tags"]
    assert tags["team"] == "two"
    assert tags["stackhold:logical-id"] == "Queue"


@pytest.mark.emulator
def test_intents_carry_the_very_names_that_are_made(stack: Emulated) -> None:
    work = stack.plan(SMALL)
    names = {intent.logical_id: intent.name for intent in work.intents if intent.kind is IntentKind.CREATE}
    result = work.perform(stack.run)
    assert result.outcome is Outcome.SUCCEEDED
    made = {name: item.physical_id for name, item in stack.run.record.resources.items()}
    assert set(names) == set(made)
    assert all(made[name].endswith(str(names[name])) for name in names)


@pytest.mark.emulator
def test_a_deploy_without_baseline_has_none_to_read(stack: Emulated) -> None:
    stack.options = DeployOptions(baseline=False)
    stack.must_deploy(SMALL)
    assert stack.record is not None
    assert all(item.observed is None for item in stack.record.resources.values())
    assert not stack.drift().is_drifted


@pytest.mark.emulator
def test_a_stack_is_worked_on_in_its_own_region_only(stack: Emulated) -> None:
    stack.must_deploy(SMALL)
    from stackhold.engines.cloudformation.engine import DestroyEngine

    with pytest.raises(InputError, match="the stack is in eu-west-1"):
        DestroyEngine(aws=stack.session.aws()).plan(stack.record, identity(region="eu-west-1"))


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("template", "says"),
    [
        (SMALL.replace("!GetAtt Queue.Arn", "!GetAtt Queue.Nope"), "no attribute"),
        (SMALL.replace("!GetAtt Queue.Arn", "!Ref Nope"), "Nope"),
        (SMALL.replace("{VisibilityTimeout: 30}", "{VisibilityTimeout: !Ref Name}"), "circle"),
    ],
)
def test_a_wrong_template_is_refused_before_any_call(stack: Emulated, template: str, says: str) -> None:
    with pytest.raises(TemplateError, match=says):
        stack.plan(template)
    assert stack.inventory()["queues"] == []
