"""A replaced resource that is still there comes back when the template asks for just that one."""

from __future__ import annotations

from typing import Any

from stackhold.decide.record import apply_changes
from stackhold.engines.cloudformation.plan import Action, Plan, ResourceChange, Route
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.taking_back import taken_back
from stackhold.model.ids import LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord

QUEUE = TypeName("AWS::SQS::Queue")
Q = LogicalId("Q")


def queue(name: str, **more: Any) -> ResourceRecord:
    return ResourceRecord(PhysicalId(name), QUEUE, {"QueueName": name, **more})


def record_with(*waiting: ResourceRecord, logical_id: LogicalId = Q) -> StateRecord:
    pending = tuple(PendingDelete(logical_id, one) for one in waiting)
    return StateRecord(StackName("s"), Region("eu-west-1"), {Q: queue("new")}, pending_deletes=pending)


def replacing(record: StateRecord, **properties: Any) -> Plan:
    change = ResourceChange(Q, QUEUE, Action.REPLACE, Route.NATIVE, recorded=record.resources[Q])
    return Plan(changes={Q: change}, needs={}, old_needs={}, resolved={Q: properties})


def after(record: StateRecord, **properties: Any) -> StateRecord:
    return apply_changes(record, taken_back(replacing(record, **properties), record, native=handler_for))


def test_the_old_one_and_the_new_one_change_places() -> None:
    found = after(record_with(queue("old")), QueueName="old", DelaySeconds=3)
    assert found.resources[Q].physical_id == "old"
    assert found.resources[Q].is_adopted
    assert [pending.resource.physical_id for pending in found.pending_deletes] == ["new"]


def test_one_that_would_have_to_be_replaced_too_stays_where_it_is() -> None:
    record = record_with(queue("old"))
    assert after(record, QueueName="third") == record


def test_what_waits_under_another_logical_id_or_type_is_none_of_it() -> None:
    record = record_with(queue("old"), logical_id=LogicalId("Other"))
    assert after(record, QueueName="old") == record
    topic = ResourceRecord(PhysicalId("old"), TypeName("AWS::SNS::Topic"), {"QueueName": "old"})
    record = record_with(topic)
    assert after(record, QueueName="old") == record


def test_the_latest_of_several_comes_back() -> None:
    found = after(record_with(queue("old", DelaySeconds=1), queue("old", DelaySeconds=2)), QueueName="old")
    assert found.resources[Q].properties["DelaySeconds"] == 2
