"""Drift of a whole record: what differs, what is gone, what could not be compared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.engines.cloudformation.emulated import Emulated
from tests.engines.cloudformation.stage import Stage, ThingHandler

from stackhold.cli.render_drift import drift_document, drift_text
from stackhold.engines.cloudformation.drift import DriftStatus, drift_stack
from stackhold.errors import AwsError, CloudError, InputError
from stackhold.model.ids import LogicalId, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackhold.engines.cloudformation.drift import DriftReport
    from stackhold.engines.cloudformation.resources.handler import Context, Seen
    from stackhold.engines.cloudformation.values import Props
    from stackhold.model.ids import PhysicalId
    from stackhold.model.record import ResourceRecord
    from stackhold.testing.emulators import Emulator

QUEUE = """
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 30}
  Group:
    Type: AWS::Logs::LogGroup
    Properties: {RetentionInDays: 7}
"""


def drifted(stage: Stage) -> DriftReport:
    assert stage.record is not None
    return drift_stack(stage.record, stage.cloud, native=lambda name: stage.handler)


def statuses(report: DriftReport) -> dict[str, str]:
    return {str(one.logical_id): one.status.value for one in report.resources}


def test_a_stack_that_nobody_touched_is_in_sync_and_nothing_is_changed_by_looking() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1}, B={"Name": "b"})
    report = drifted(stage)
    assert not report.is_drifted
    assert report.count(DriftStatus.IN_SYNC) == 2
    assert not stage.cloud.changes()


def test_a_changed_property_is_shown_with_both_values() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1})
    stage.cloud.things["a"].properties["Value"] = 2
    report = drifted(stage)
    assert report.is_drifted
    (difference,) = report.resources[0].differences
    assert (difference.path, difference.recorded, difference.observed) == ("Value", 1, 2)


def test_a_deleted_resource_is_drift() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    del stage.cloud.things["a"]
    report = drifted(stage)
    assert report.is_drifted
    assert statuses(report) == {"A": "deleted", "B": "in sync"}


def test_a_resource_that_cannot_be_read_leaves_the_report_incomplete_and_stops_nothing_else() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.cloud.refuse("GetThing", "a", code="Denied", times=9)
    report = drifted(stage)
    assert not report.is_drifted
    assert not report.is_complete
    assert statuses(report) == {"A": "not read", "B": "in sync"}
    assert "Denied" in report.resources[0].reason
    assert "INCOMPLETE" in drift_text(report)
    assert drift_document(report)["isComplete"] is False


def test_a_type_that_aws_cannot_read_is_not_compared_and_the_report_complete() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.cloud.refuse("GetThing", "a", code="UnsupportedActionException", times=9)
    report = drifted(stage)
    assert report.is_complete
    assert statuses(report) == {"A": "not compared", "B": "in sync"}


@pytest.mark.parametrize("code", ["ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId"])
def test_credentials_that_are_no_good_are_an_error_and_no_report(code: str) -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.cloud.refuse("GetThing", "a", code=code, times=9)
    with pytest.raises(AwsError, match=code):
        drifted(stage)


class Unreachable(ThingHandler):
    """Reads of some things are not answered."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        if physical_id in self._names:
            raise CloudError("fake:GetThing could not be sent: nobody is there")
        return super().read(ctx, physical_id, properties)


def test_when_nothing_is_answered_there_is_no_report() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.handler = Unreachable("a", "b")
    with pytest.raises(CloudError, match="nobody is there"):
        drifted(stage)


def test_when_only_some_is_answered_the_report_is_incomplete() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.handler = Unreachable("b")
    assert statuses(drifted(stage)) == {"A": "in sync", "B": "not read"}


def test_what_hangs_on_a_resource_and_nothing_recorded_put_there_is_drift() -> None:
    class Watched(ThingHandler):
        def foreign(
            self, ctx: Context, physical_id: PhysicalId, properties: Props, *, stack: Sequence[ResourceRecord]
        ) -> dict[str, str]:
            return {"Policies.debug": "there"} if physical_id == "a" and len(stack) == 2 else {}

    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.handler = Watched()
    report = drifted(stage)
    assert statuses(report) == {"A": "drifted", "B": "in sync"}
    assert [each.path for each in report.resources[0].differences] == ["Policies.debug"]


def test_the_report_keeps_the_records_order() -> None:
    stage = Stage().has(**{f"R{number}": {} for number in range(20)})
    assert stage.record is not None
    assert [one.logical_id for one in drifted(stage).resources] == list(stage.record.resources)


def test_calls_never_go_to_another_region_than_the_stacks() -> None:
    stage = Stage().has(A={})
    assert stage.record is not None
    stage.record = dataclasses.replace(stage.record, region=Region("us-east-1"))
    with pytest.raises(InputError, match="us-east-1"):
        drifted(stage)


@pytest.mark.emulator
def test_a_change_behind_our_back_is_found_declared_or_not(
    ministack: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    stack = Emulated(ministack)
    stack.must_deploy(QUEUE)
    assert not stack.drift().is_drifted
    attributes = {"VisibilityTimeout": "99", "DelaySeconds": "5"}
    stack.client("sqs").set_queue_attributes(QueueUrl=stack.physical("Queue"), Attributes=attributes)
    stack.client("logs").delete_log_group(logGroupName=stack.physical("Group"))
    found = {one.logical_id: one for one in stack.drift().resources}
    assert found[LogicalId("Group")].status is DriftStatus.DELETED
    assert {item.path for item in found[LogicalId("Queue")].differences} == {"VisibilityTimeout", "DelaySeconds"}


@pytest.mark.emulator
def test_a_change_by_hand_survives_a_deploy_that_updates_another_property(
    ministack: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    stack = Emulated(ministack)
    stack.must_deploy(QUEUE)
    stack.client("sqs").set_queue_attributes(QueueUrl=stack.physical("Queue"), Attributes={"DelaySeconds": "5"})
    stack.must_deploy(QUEUE.replace("VisibilityTimeout: 30", "VisibilityTimeout: 31"))
    (queue,) = (one for one in stack.drift().resources if one.logical_id == "Queue")
    assert [each.path for each in queue.differences] == ["DelaySeconds"]
    stack.must_deploy(QUEUE.replace("VisibilityTimeout: 30", "VisibilityTimeout: 31, DelaySeconds: 5"))
    assert not stack.drift().is_drifted


ROLE = """
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Statement: [{Effect: Allow, Action: "sts:AssumeRole", Principal: {Service: lambda.amazonaws.com}}]
      Policies: [{PolicyName: own, PolicyDocument: {Statement: [{Effect: Allow, Action: "sqs:*", Resource: "*"}]}}]
"""
POLICY = """
  Policy:
    Type: AWS::IAM::Policy
    Properties:
      PolicyName: beside
      Roles: [!Ref Role]
      PolicyDocument: {Statement: [{Effect: Allow, Action: "sns:*", Resource: "*"}]}
"""


@pytest.mark.emulator
def test_an_inline_policy_put_on_a_role_by_hand_is_drift_and_those_of_the_stack_are_not(
    ministack: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    stack = Emulated(ministack)
    stack.must_deploy(ROLE)
    assert not stack.drift().is_drifted
    stack.must_deploy(ROLE + POLICY)
    assert not stack.drift().is_drifted
    document = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
    role = stack.physical("Role")
    stack.client("iam").put_role_policy(RoleName=role, PolicyName="debug", PolicyDocument=document)
    found = {one.logical_id: one for one in stack.drift().resources}
    assert [each.path for each in found[LogicalId("Role")].differences] == ["Policies.debug"]
    stack.client("iam").delete_role_policy(RoleName=role, PolicyName="debug")
    stack.must_deploy(ROLE)
    assert not stack.drift().is_drifted


@pytest.mark.emulator
def test_what_is_gone_is_made_anew_on_request(ministack: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in ministack.environment().items():
        monkeypatch.setenv(key, value)
    named = QUEUE.replace("{RetentionInDays: 7}", "{RetentionInDays: 7, LogGroupName: /shop/named}")
    stack = Emulated(ministack)
    stack.must_deploy(named)
    stack.client("logs").delete_log_group(logGroupName="/shop/named")
    updated = stack.deploy(named.replace("RetentionInDays: 7", "RetentionInDays: 30"))
    assert "gone from the cloud" in updated.error
    assert "--replace Group" in updated.error
    stack.replace = frozenset({LogicalId("Group")})
    stack.must_deploy(named)
    assert not stack.drift().is_drifted
    with pytest.raises(InputError, match="--replace Group: no change of the template replaces it"):
        stack.plan(named)
