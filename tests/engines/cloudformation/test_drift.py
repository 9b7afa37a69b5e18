"""Drift of a whole record: what differs, what is gone, what could not be compared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.engines.cloudformation.emulated import Emulated
from tests.engines.cloudformation.stage import Stage

from stackhold.engines.cloudformation.drift import DriftStatus, drift_stack
from stackhold.errors import InputError
from stackhold.model.ids import LogicalId, Region

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.drift import DriftReport
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


def test_a_resource_that_cannot_be_read_is_not_compared_and_stops_nothing_else() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b"})
    stage.cloud.refuse("GetThing", "a", code="Denied", times=9)
    report = drifted(stage)
    assert not report.is_drifted
    assert statuses(report) == {"A": "not compared", "B": "in sync"}
    assert "Denied" in report.resources[0].reason


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
