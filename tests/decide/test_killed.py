"""What a killed run had done: the differences between the record before it and now, in what it meant to touch."""

from __future__ import annotations

from stackhold.decide.killed import segment_of_killed
from stackhold.model.codec import resource_document
from stackhold.model.ids import LockId, LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.record import ResourceRecord, StateRecord
from stackhold.model.run import Intent, IntentKind, RunFile

TYPE = TypeName("Test::Thing")


def thing(physical_id: str, **properties: object) -> ResourceRecord:
    return ResourceRecord(PhysicalId(physical_id), TYPE, properties)


def record(**resources: ResourceRecord) -> StateRecord:
    return StateRecord(
        StackName("shop"), Region("eu-west-1"), {LogicalId(name): item for name, item in resources.items()}
    )


def run_file(*names: str) -> RunFile:
    intents = tuple(Intent(LogicalId(name), TYPE, IntentKind.UPDATE, RunId("killed")) for name in names)
    return RunFile(RunId("killed"), LockId("lock"), 1, "deploy", "ada@host:1", Instant(7), 1, intents)


def test_each_difference_is_an_operation_and_what_was_not_meant_to_be_touched_is_none() -> None:
    before = record(A=thing("a", V=1), B=thing("b"), C=thing("c"), D=thing("d"), E=thing("e", V=1))
    now = record(A=thing("a", V=2), B=thing("b-2"), C=thing("c"), E=thing("e", V=2), F=thing("f"))
    found = segment_of_killed(run_file("A", "B", "C", "D", "F"), before, now, tool_version="1")
    assert found is not None
    assert (found.run_id, found.timestamp, found.reason, found.tool_version) == ("killed", 7, "interrupted", "1")
    assert not found.is_initial_deploy
    assert [(one.logical_id, one.change_type, one.physical_id) for one in found.operations] == [
        ("D", "DELETE", "d"),
        ("A", "UPDATE", "a"),
        ("B", "REPLACE", "b-2"),
        ("F", "CREATE", "f"),
    ]
    by_name = {str(one.logical_id): one for one in found.operations}
    assert by_name["A"].previous == resource_document(thing("a", V=1))
    assert by_name["A"].properties == {"V": 2}
    assert by_name["F"].previous is None
    assert by_name["D"].properties is None


def test_steps_of_the_plan_count_as_meant_too() -> None:
    left = RunFile(RunId("killed"), LockId("lock"), 1, "deploy", "ada@host:1", Instant(7), 1, (), ({"logicalId": "A"},))
    found = segment_of_killed(left, None, record(A=thing("a")), tool_version="1")
    assert found is not None
    assert found.is_initial_deploy
    assert [one.change_type for one in found.operations] == ["CREATE"]


def test_a_run_that_had_done_nothing_leaves_no_segment() -> None:
    same = record(A=thing("a"))
    assert segment_of_killed(run_file("A"), same, same, tool_version="1") is None
    assert segment_of_killed(run_file("A"), None, None, tool_version="1") is None
