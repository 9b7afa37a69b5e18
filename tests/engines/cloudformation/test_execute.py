"""Deploy and destroy over a fake cloud: order, replacement, stops, what is recorded, what is said."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.cloudformation.stage import THING, Stage, ThingHandler, pending

from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.values import AttrOf, RefTo
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId
from stackhold.model.record import AddPendingDelete, DropResource, PendingDelete, SetResource
from stackhold.model.run import IntentState, Outcome

A, B, C = LogicalId("A"), LogicalId("B"), LogicalId("C")


def ref(name: str) -> RefTo:
    return RefTo(LogicalId(name))


def att(name: str, attribute: str) -> AttrOf:
    return AttrOf(LogicalId(name), attribute)


def order(stage: Stage, operation: str) -> list[str]:
    return [name.split("-")[1] for verb, name in stage.cloud.log if verb == operation]


def test_a_resource_is_created_after_all_that_it_needs_and_gets_their_values() -> None:
    stage = Stage()
    result = stage.deploy(C={"Uses": ref("B")}, B={"Uses": att("A", "Arn")}, A={"Value": 1})
    assert result.outcome is Outcome.SUCCEEDED
    assert result.exit_code is ExitCode.DONE
    assert order(stage, "CreateThing") == ["A", "B", "C"]
    assert stage.run.record.resources[B].properties == {"Uses": f"arn:aws:fake:::thing/{stage.physical('A')}"}
    assert stage.run.record.resources[C].dependencies == (B,)


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    count = draw(st.integers(1, 12))
    names = [f"R{number}" for number in range(count)]
    return {
        name: {"after": draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []}
        for place, name in enumerate(names)
    }


@settings(deadline=None, max_examples=40)
@given(graphs())
def test_any_graph_is_created_along_its_edges_and_deleted_against_them(graph: dict[str, dict[str, Any]]) -> None:
    stage = Stage()
    assert stage.deploy(**graph).outcome is Outcome.SUCCEEDED
    made = order(stage, "CreateThing")
    assert sorted(made) == sorted(graph)
    assert all(made.index(need) < made.index(name) for name, body in graph.items() for need in body["after"])
    stage.begin()
    result = stage.destroy()
    gone = order(stage, "DeleteThing")
    assert result.record_gone
    assert not stage.cloud.things
    assert all(gone.index(need) > gone.index(name) for name, body in graph.items() for need in body["after"])


def test_independent_resources_run_at_once_up_to_the_concurrency() -> None:
    stage = Stage(options=DeployOptions(baseline=False, concurrency=3))
    running = stage.in_thread(**{f"R{number}": {"Name": f"r{number}"} for number in range(3)}, X={"Name": "x"})
    running.result()
    gates = [stage.cloud.hold("UpdateThing", f"r{number}") for number in range(3)]
    stage.begin()
    running = stage.in_thread(
        **{f"R{number}": {"Name": f"r{number}", "Value": 2} for number in range(3)}, X={"Name": "x", "Value": 2}
    )
    for gate in gates:
        gate.wait_reached()
    assert ("UpdateThing", "x") not in stage.cloud.log
    for gate in gates:
        gate.open()
    assert running.result().outcome is Outcome.SUCCEEDED
    assert stage.value("X") == 2


def test_a_resource_starts_while_others_of_an_earlier_level_still_run() -> None:
    stage = Stage()
    gate = stage.cloud.hold("CreateThing", "slow")
    last = stage.cloud.hold("CreateThing", "last")
    running = stage.in_thread(S={"Name": "slow"}, A={"Value": 1}, L={"Name": "last", "after": ["A"]})
    gate.wait_reached()
    last.wait_reached()
    gate.open()
    last.open()
    assert running.result().outcome is Outcome.SUCCEEDED


def test_an_unchanged_dependent_of_an_updated_resource_is_not_called() -> None:
    stage = Stage().has(A={"Value": 1}, B={"Uses": ref("A")})
    result = stage.deploy(A={"Value": 2}, B={"Uses": ref("A")})
    assert result.outcome is Outcome.SUCCEEDED
    assert [name for name, _ in stage.cloud.changes()] == ["UpdateThing"]
    assert [event.logical_id for event in stage.run.events if event.kind is EventKind.OPERATION_SKIPPED] == [B]


def test_a_replacement_is_made_before_the_old_one_goes_and_references_follow() -> None:
    stage = Stage().has(A={"Kind": "x"}, B={"Uses": ref("A")})
    old = stage.physical("A")
    result = stage.deploy(A={"Kind": "y"}, B={"Uses": ref("A")})
    new = stage.physical("A")
    assert result.outcome is Outcome.SUCCEEDED
    assert stage.cloud.changes() == [("CreateThing", new), ("UpdateThing", stage.physical("B")), ("DeleteThing", old)]
    assert stage.run.record.resources[B].properties == {"Uses": new}
    assert not stage.run.record.pending_deletes


def test_a_new_id_is_in_a_confirmed_save_before_the_old_resource_goes() -> None:
    stage = Stage().has(A={"Kind": "x"})
    stage.cloud.refuse("DeleteThing", stage.physical("A"))
    stage.deploy(A={"Kind": "y"})
    kinds = [({type(change) for change in changes}, confirmed) for changes, confirmed in stage.run.saves]
    made = next(place for place, (types, _) in enumerate(kinds) if types == {SetResource, AddPendingDelete})
    assert any(confirmed for _, confirmed in kinds[made + 1 : made + 2])


def test_an_old_resource_that_its_policy_keeps_stays() -> None:
    stage = Stage().has(A={"Kind": "x"})
    old = stage.physical("A")
    assert stage.deploy(A={"Kind": "y", "replace_policy": "Retain"}).exit_code is ExitCode.DONE
    assert set(stage.cloud.things) == {old, stage.physical("A")}
    assert not stage.run.record.pending_deletes


def test_a_type_that_cannot_exist_twice_is_deleted_first() -> None:
    stage = Stage().has(A={"Kind": "x"})
    stage.deploy(A={"Kind": "y", "old_first": True})
    assert [verb for verb, _ in stage.cloud.changes()] == ["DeleteThing", "CreateThing"]


def test_a_replacement_under_the_same_explicit_name_is_refused_before_any_call() -> None:
    stage = Stage().has(A={"Name": "mine", "Kind": "x"})
    result = stage.deploy(A={"Name": "mine", "Kind": "y"})
    assert result.exit_code is ExitCode.FAILED
    assert "explicit name" in result.error
    assert not stage.cloud.changes()


def test_removed_resources_go_dependents_first_and_retained_ones_stay() -> None:
    stage = Stage().has(A={}, B={"Uses": ref("A")}, C={"policy": "Retain"}, D={})
    result = stage.deploy(D={})
    assert result.outcome is Outcome.SUCCEEDED
    assert order(stage, "DeleteThing") == ["B", "A"]
    assert stage.names() == {"C", "D"}
    assert set(stage.run.record.resources) == {"D"}


def test_what_cannot_be_deleted_stays_pending_holds_back_what_it_needs_and_goes_next_time() -> None:
    stage = Stage().has(A={}, B={"Uses": ref("A")}, C={})
    stage.cloud.refuse("DeleteThing", stage.physical("B"), code="Denied")
    result = stage.deploy()
    assert result.exit_code is ExitCode.PARTLY
    assert result.settled
    assert stage.names() == {"A", "B"}
    reasons = {item.logical_id: item.reason for item in stage.run.record.pending_deletes}
    assert "Denied" in reasons[B]
    assert reasons[A] == "waits for B"
    stage.begin()
    assert stage.deploy().exit_code is ExitCode.DONE
    assert not stage.cloud.things
    assert not stage.run.record.pending_deletes


def test_a_change_of_policy_alone_calls_nothing_and_is_recorded() -> None:
    stage = Stage().has(A={"Value": 1})
    stage.deploy(A={"Value": 1, "policy": "Retain"})
    assert not stage.cloud.log
    assert stage.run.record.resources[A].deletion_policy == "Retain"


def test_an_attribute_that_no_answer_told_is_read_once() -> None:
    stage = Stage()
    stage.deploy(A={}, B={"Uses": att("A", "Late")}, C={"Uses": att("A", "Late")})
    assert stage.run.record.resources[B].properties["Uses"] == f"late-{stage.physical('A')}"
    assert stage.cloud.log.count(("GetThing", stage.physical("A"))) <= 2


def test_an_attribute_that_does_not_exist_is_a_failure_never_the_physical_id() -> None:
    stage = Stage()
    result = stage.deploy(A={}, B={"Uses": att("A", "Nonsense")})
    assert result.outcome is Outcome.FAILED
    assert "no attribute Nonsense" in result.error


def test_dependents_wait_for_a_slow_resource_to_settle() -> None:
    stage = Stage()
    stage.cloud.make_slow("A", polls=3)
    result = stage.deploy(A={}, B={"Uses": ref("A")})
    assert result.outcome is Outcome.SUCCEEDED
    assert [verb for verb, _ in stage.cloud.log] == ["CreateThing", "GetThing", "GetThing", "GetThing", "CreateThing"]
    assert not stage.run.record.resources[A].is_settling


def test_no_wait_leaves_a_slow_resource_settling_and_the_next_deploy_waits_for_it() -> None:
    stage = Stage(options=DeployOptions(baseline=False, wait=False))
    stage.cloud.make_slow("A", polls=3)
    assert stage.deploy(A={}).outcome is Outcome.SUCCEEDED
    assert stage.run.record.resources[A].is_settling
    stage.begin()
    stage.options = DeployOptions(baseline=False)
    assert stage.deploy(A={}).outcome is Outcome.SUCCEEDED
    assert not stage.run.record.resources[A].is_settling
    assert [verb for verb, _ in stage.cloud.log] == ["CreateThing", "GetThing", "GetThing", "GetThing"]


def test_no_wait_still_waits_where_dependents_need_it() -> None:
    stage = Stage(options=DeployOptions(baseline=False, wait=False))
    stage.cloud.make_slow("A", polls=2)
    stage.deploy(A={}, B={"Uses": ref("A")})
    assert not stage.run.record.resources[A].is_settling


def test_dependents_that_need_not_wait_start_while_a_resource_settles() -> None:
    stage = Stage(handler=ThingHandler(dependents_wait=False))
    stage.cloud.make_slow("A", polls=1)
    gate = stage.cloud.hold("GetThing", "A")
    last = stage.cloud.hold("CreateThing", "B")
    running = stage.in_thread(A={"Name": "A"}, B={"Name": "B", "Uses": ref("A")})
    gate.wait_reached()
    last.wait_reached()
    gate.open()
    last.open()
    assert running.result().outcome is Outcome.SUCCEEDED


def test_a_resource_that_never_settles_fails_within_its_time() -> None:
    stage = Stage()
    stage.cloud.make_slow("A", polls=10_000)
    result = stage.deploy(A={})
    assert result.exit_code is ExitCode.FAILED
    assert "not settled within 1 m 0 s" in result.error
    assert not stage.cloud.things


def test_a_stop_starts_nothing_new_lets_what_is_in_flight_finish_and_undoes_nothing() -> None:
    stage = Stage()
    gate = stage.cloud.hold("CreateThing", "a")
    running = stage.in_thread(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    gate.wait_reached()
    stage.run.stop()
    gate.open()
    result = running.result()
    assert result.outcome is Outcome.INTERRUPTED
    assert not result.settled
    assert set(stage.cloud.things) == {"a"}
    assert set(stage.run.record.resources) == {A}
    assert [(item.logical_id, item.change_type, item.status) for item in result.done] == [(A, "CREATE", None)]
    assert stage.run.marks == {A: IntentState.DONE, B: IntentState.DONE}
    assert result.summary["counts"] == {"create": 1, "not tried": 1}


def test_a_stop_that_is_over_returns_at_once_and_leaves_what_is_in_flight_unknown() -> None:
    stage = Stage()
    gate = stage.cloud.hold("CreateThing", "a")
    running = stage.in_thread(A={"Name": "a"})
    gate.wait_reached()
    stage.run.stop(is_over=True)
    result = running.result()
    assert stage.run.marks == {A: IntentState.UNKNOWN}
    assert [(item.logical_id, item.status) for item in result.done] == [(A, "unknown")]
    saves = len(stage.run.saves)
    gate.open()
    assert len(stage.run.saves) == saves


def test_a_stop_before_the_first_call_leaves_nothing_to_journal() -> None:
    stage = Stage()
    stage.run.stop()
    result = stage.deploy(A={})
    assert result.settled
    assert result.record_gone
    assert not result.done


def test_a_call_that_must_not_start_is_no_failure_and_was_never_sent() -> None:
    stage = Stage()
    stage.run.cut()
    result = stage.deploy(A={})
    assert not stage.cloud.log
    assert stage.run.marks == {A: IntentState.DONE}
    assert result.outcome is not Outcome.SUCCEEDED


def test_a_stop_while_a_resource_settles_records_it_as_settling() -> None:
    stage = Stage()
    stage.cloud.make_slow("a", polls=50)
    gate = stage.cloud.hold("GetThing", "a")
    running = stage.in_thread(A={"Name": "a"})
    gate.wait_reached()
    stage.run.stop()
    gate.open()
    running.result()
    assert stage.run.record.resources[A].is_settling


def test_a_stopped_clean_up_keeps_what_it_has_not_deleted_in_the_record() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")})
    gate = stage.cloud.hold("DeleteThing", "b")
    running = stage.in_thread()
    gate.wait_reached()
    stage.run.stop()
    gate.open()
    result = running.result()
    assert set(stage.run.record.resources) == {A}
    assert not result.settled
    assert [(item.logical_id, item.change_type) for item in result.done] == [(B, "DELETE")]


def test_outputs_are_resolved_as_text() -> None:
    stage = Stage()
    stage.deploy(outputs={"Ref": ref("A"), "Number": 5, "Flag": True}, A={})
    assert stage.run.record.outputs == {"Ref": stage.physical("A"), "Number": "5", "Flag": "true"}


def test_the_baseline_is_read_after_the_deploy_and_recorded() -> None:
    stage = Stage(options=DeployOptions())
    assert stage.deploy(A={"Value": 1}, B={}).outcome is Outcome.SUCCEEDED
    assert stage.run.record.resources[A].observed == {"Value": 1}
    assert stage.run.record.resources[B].observed == {}


def test_what_no_wait_left_gets_its_baseline_once_it_has_settled() -> None:
    stage = Stage(options=DeployOptions(wait=False))
    stage.cloud.make_slow("A", polls=2)
    stage.deploy(A={"Value": 1})
    assert stage.run.record.resources[A].observed is None
    stage.begin()
    stage.options = DeployOptions()
    stage.deploy(A={"Value": 1})
    assert stage.run.record.resources[A].observed == {"Value": 1}


def test_a_baseline_that_cannot_be_read_is_a_warning() -> None:
    stage = Stage(options=DeployOptions())
    stage.cloud.refuse("GetThing", "a", times=9)
    assert stage.deploy(A={"Name": "a"}).exit_code is ExitCode.DONE
    assert [event.kind for event in stage.run.events if event.kind is EventKind.WARNING] == [EventKind.WARNING]


def test_an_interrupted_destroy_goes_on_without_repeating_a_delete() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "policy": "Retain"})
    stage.cloud.refuse("DeleteThing", "a", code="Denied")
    result = stage.destroy()
    assert result.exit_code is ExitCode.PARTLY
    assert set(stage.run.record.resources) == {A}
    stage.begin()
    result = stage.destroy()
    assert result.record_gone
    assert set(stage.cloud.things) == {"c"}
    assert stage.cloud.changes() == [("DeleteThing", "b"), ("DeleteThing", "a")]


def test_a_destroy_of_a_record_with_a_circle_breaks_it_says_so_and_deletes_all() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "Uses": ref("B")})
    edited = dataclasses.replace(stage.run.record.resources[A], dependencies=(LogicalId("C"),))
    stage.run.save([SetResource(A, edited)])
    result = stage.destroy()
    assert (result.outcome, result.exit_code) == (Outcome.SUCCEEDED, ExitCode.DONE)
    assert not stage.cloud.things
    (said,) = [event.message for event in stage.run.events if event.kind is EventKind.WARNING]
    assert "the record has a circle" in said
    assert all(f"{one} needs {other}" in said for one, other in ("AC", "BA", "CB"))


def test_a_destroy_deletes_leftovers_too() -> None:
    stage = Stage().has(A={"Name": "a"})
    stage.cloud.call("fake", "CreateThing", {"Name": "old", "Properties": {}})
    stage.run.save([AddPendingDelete(pending("A", "old"))])
    assert stage.destroy().record_gone
    assert not stage.cloud.things


def test_events_tell_start_end_and_time_of_every_operation_and_no_property() -> None:
    stage = Stage()
    stage.deploy(A={"Value": "s3cret"})
    kinds = [event.kind for event in stage.run.events]
    assert kinds == [EventKind.OPERATION_STARTED, EventKind.OPERATION_DONE]
    assert {"type", "operation", "durationMs", "physicalId"} <= set(stage.run.events[1].data)
    assert "s3cret" not in repr(stage.run.events)


@pytest.mark.parametrize("count", [200])
def test_many_resources_are_done_without_much_work_per_resource(count: int) -> None:
    stage = Stage()
    assert stage.deploy(**{f"R{number}": {} for number in range(count)}).outcome is Outcome.SUCCEEDED
    assert len(stage.cloud.things) == count


def test_the_summary_has_every_resource_and_names_only_real_failures() -> None:
    stage = Stage().has(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c"})
    gate = stage.cloud.hold("DeleteThing", "b")
    stage.cloud.refuse("DeleteThing", "c", code="Denied")
    running = stage.in_thread(D={"Name": "d"})
    gate.wait_reached()
    stage.wait_told(EventKind.OPERATION_FAILED)
    stage.run.stop()
    gate.open()
    summary = running.result().summary
    assert summary["counts"] == {"create": 1, "delete": 1, "left": 1, "not tried": 1}
    failures = summary["failures"]
    assert isinstance(failures, list)
    assert [each["logicalId"] for each in failures] == ["C"]


def test_a_delete_that_is_waited_for_says_so() -> None:
    stage = Stage().has(A={"Name": "a"})
    stage.cloud.refuse("DeleteThing", "a", code="DependencyViolation", times=8)
    assert stage.destroy().outcome is Outcome.SUCCEEDED
    (told,) = [event for event in stage.run.events if event.kind is EventKind.OPERATION_WAITING]
    assert (told.logical_id, told.message) == ("A", "fake:DeleteThing: still in use (DependencyViolation)")
    assert told.data == {"code": "DependencyViolation", "type": THING, "operation": "delete"}


def test_an_update_of_what_is_gone_says_so_and_how_to_have_it_made_anew() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1})
    del stage.cloud.things["a"]
    result = stage.deploy(A={"Name": "a", "Value": 2})
    assert result.outcome is Outcome.FAILED
    assert result.error == (
        f"A: {THING} a is recorded and gone from the cloud (NotFound). Deploy with --replace A to have it made anew."
    )


def test_what_waits_to_be_deleted_is_let_go_of_when_another_logical_id_has_that_very_resource() -> None:
    stage = Stage().has(A={"Name": "mine"})
    old = stage.run.record.resources[A]
    stage.run.save([DropResource(A), AddPendingDelete(PendingDelete(A, old))])
    stage.cloud.things.pop(old.physical_id)
    stage.record = stage.run.record
    stage.begin()
    result = stage.deploy(B={"Name": "mine"})
    assert result.exit_code is ExitCode.DONE
    assert set(stage.cloud.things) == {stage.physical("B")} == {old.physical_id}
    assert not stage.run.record.pending_deletes
