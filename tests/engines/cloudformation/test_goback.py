"""Going back after a failure, with and without it: what goes, what is restored, what stays, what is said."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar, cast

import pytest
from tests.engines.cloudformation.stage import Stage, ThingHandler

from stackhold.engines.cloudformation.bench import DeployOptions
from stackhold.engines.cloudformation.resources.handler import FoundBy, NameRule
from stackhold.engines.cloudformation.values import RefTo
from stackhold.model.events import EventKind
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId, PhysicalId
from stackhold.model.run import IntentState, Outcome

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Made, Want
    from stackhold.engines.cloudformation.values import Props
    from stackhold.ports.engine import WorkResult

A, B, C = LogicalId("A"), LogicalId("B"), LogicalId("C")
NO_ROLLBACK = DeployOptions(baseline=False, rollback=False)


def ref(name: str) -> RefTo:
    return RefTo(LogicalId(name))


def told(stage: Stage) -> dict[str, str]:
    return {
        str(event.logical_id): str(event.data.get("outcome"))
        for event in stage.run.events
        if event.kind is EventKind.OPERATION_DONE and event.data["operation"] == "go back"
    }


def names_taken(result: WorkResult) -> list[str]:
    resources = cast("list[dict[str, object]]", result.summary["resources"])
    return [str(each["logicalId"]) for each in resources if each.get("isNameTaken")]


def test_a_failed_first_deploy_leaves_nothing() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "c")
    result = stage.deploy(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "after": ["B"]})
    assert result.outcome is Outcome.FAILED
    assert result.exit_code is ExitCode.FAILED
    assert result.settled
    assert result.record_gone
    assert not result.keeps_journal
    assert result.error.startswith("C: ")
    assert not stage.cloud.things
    assert [name for verb, name in stage.cloud.changes() if verb == "DeleteThing"] == ["b", "a"]
    assert told(stage) == {"A": "deleted", "B": "deleted"}
    assert set(stage.run.marks.values()) == {IntentState.DONE}


def test_what_the_run_created_goes_and_what_it_updated_gets_its_recorded_properties_back() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1}, B={"Name": "b", "Value": 1})
    before = dict(stage.run.record.resources)
    stage.cloud.refuse("CreateThing", "d")
    result = stage.deploy(
        A={"Name": "a", "Value": 2},
        B={"Name": "b", "Value": 1},
        C={"Name": "c", "after": ["A"]},
        D={"Name": "d", "after": ["C"]},
    )
    assert result.exit_code is ExitCode.FAILED
    assert not result.record_gone
    assert set(stage.cloud.things) == {"a", "b"}
    assert stage.cloud.things["a"].properties == {"Name": "a", "Value": 1}
    assert dict(stage.run.record.resources) == before
    assert told(stage) == {"A": "restored", "C": "deleted"}
    assert result.settled
    assert result.keeps_journal


def test_an_update_is_restored_on_the_route_that_it_took() -> None:
    """The native handler does not send what sent the resource to Cloud Control, so it could not take it back."""

    class OnlyValue(ThingHandler):
        def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
            raise AssertionError("the native handler was asked")

    stage = Stage(cloud_control=ThingHandler()).has(A={"Name": "a", "Value": 1})
    stage.handler = OnlyValue()
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(
        A={"Name": "a", "Value": 1, "Kind": None, "Uses": "more", "route": "cc-api"}, B={"Name": "b", "after": ["A"]}
    )
    assert result.exit_code is ExitCode.FAILED
    assert stage.cloud.things["a"].properties == {"Name": "a", "Value": 1}
    assert stage.run.record.resources[A].provisioned_by == "sdk"


def test_a_replacement_is_undone_new_one_gone_old_one_kept_dependents_back() -> None:
    stage = Stage().has(A={"Kind": "x"}, B={"Name": "b", "Uses": ref("A")})
    old = stage.physical("A")
    stage.cloud.refuse("CreateThing", "c")
    result = stage.deploy(A={"Kind": "y"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "after": ["B"]})
    assert result.exit_code is ExitCode.FAILED
    assert set(stage.cloud.things) == {old, "b"}
    assert stage.cloud.things["b"].properties == {"Name": "b", "Uses": old}
    assert stage.physical("A") == old
    assert not stage.run.record.pending_deletes


@pytest.mark.parametrize("holds_data", [True, False])
def test_an_old_one_that_had_to_go_first_is_created_again_and_the_loss_of_data_is_said(holds_data: bool) -> None:
    stage = Stage().has(A={"Kind": "x"})
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(A={"Kind": "y", "old_first": True, "stateful": holds_data}, B={"Name": "b", "after": ["A"]})
    assert result.exit_code is ExitCode.FAILED
    assert stage.cloud.things[stage.physical("A")].properties == {"Kind": "x"}
    assert any("what it held is lost" in event.message for event in stage.run.events) is holds_data


def test_a_created_resource_with_policy_retain_is_kept_and_named_as_in_no_record() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(A={"Name": "a", "policy": "Retain"}, B={"Name": "b", "after": ["A"]})
    assert result.record_gone
    assert set(stage.cloud.things) == {"a"}
    (kept,) = [each.message for each in stage.run.events if "kept as a (DeletionPolicy Retain)" in each.message]
    assert "it is in no record now, and its name stays taken: give another name" in kept
    assert "delete-resource --type-name Test::Fake::Thing --identifier a --region" in kept
    assert names_taken(result) == ["A"]
    assert "undoing 1 operation" in [each.message for each in stage.run.events]


def test_a_kept_resource_whose_name_was_made_up_stands_in_nobodys_way() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "b")
    result = stage.deploy(A={"policy": "Retain"}, B={"Name": "b", "after": ["A"]})
    assert any("in no record now: delete it by hand once" in each.message for each in stage.run.events)
    assert names_taken(result) == []


def test_a_created_resource_with_retain_except_on_create_goes() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a", "policy": "RetainExceptOnCreate"}, B={"Name": "b", "after": ["A"]})
    assert not stage.cloud.things


def test_a_create_that_failed_half_way_is_found_by_its_name_and_goes() -> None:
    stage = Stage(handler=ThingHandler(calls_after_create=1))
    stage.cloud.refuse("UpdateThing", "a")
    result = stage.deploy(A={"Name": "a"})
    assert result.exit_code is ExitCode.FAILED
    assert not stage.cloud.things


def test_a_name_that_another_has_is_left_alone() -> None:
    stage = Stage()
    stage.cloud.call("fake", "CreateThing", {"Name": "a", "Properties": {"Owner": "someone"}})
    result = stage.deploy(A={"Name": "a"})
    assert result.exit_code is ExitCode.FAILED
    assert stage.cloud.things["a"].properties == {"Owner": "someone"}


def test_a_lost_create_under_our_own_name_is_looked_for_and_goes() -> None:
    stage = Stage()
    name = "shop-A-x"
    stage.deploy(A={})
    name = stage.physical("A")
    stage = Stage()
    stage.cloud.lose("CreateThing", name, is_carried_out=True)
    result = stage.deploy(A={})
    assert result.exit_code is ExitCode.FAILED
    assert not stage.cloud.things
    assert stage.run.marks == {A: IntentState.DONE}


def test_a_lost_create_that_cannot_be_found_stays_an_intent_with_the_command_that_looks_for_it() -> None:
    stage = Stage()
    stage.cloud.lose("CreateThing", "a", is_carried_out=False)
    result = stage.deploy(A={"Name": "a"})
    assert result.exit_code is ExitCode.PARTLY
    assert not result.settled
    assert stage.run.marks == {A: IntentState.UNKNOWN}
    assert (
        "aws cloudcontrol get-resource --type-name Test::Fake::Thing --identifier a --region eu-west-1" in result.error
    )
    assert [(item.logical_id, item.status) for item in result.done] == [(A, "unknown")]


class Marked(ThingHandler):
    """A thing without a name of its own, found by what its create was marked with alone."""

    name_rule: ClassVar[NameRule | None] = None
    found_by: ClassVar[FoundBy] = FoundBy.TAG

    def create(self, ctx: Context, want: Want) -> Made:
        return super().create(ctx, dataclasses.replace(want, name="-".join(want.tags.values())))

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        name = PhysicalId("-".join(lost.tags.values()))
        return None if name in lost.known or self.read(ctx, name, {}) is None else name


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_lost_create_without_a_name_is_looked_for_by_its_marks(is_carried_out: bool) -> None:
    stage = Stage(handler=Marked())
    stage.cloud.lose("CreateThing", f"shop-eu-west-1-{stage.run.identity.run_id}-A", is_carried_out=is_carried_out)
    result = stage.deploy(A={})
    assert not stage.cloud.things
    assert result.exit_code is (ExitCode.FAILED if is_carried_out else ExitCode.PARTLY)
    assert stage.run.marks == {A: IntentState.DONE if is_carried_out else IntentState.UNKNOWN}


def test_a_failed_update_that_may_have_changed_something_is_restored() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1})
    stage.cloud.lose("UpdateThing", "a", is_carried_out=True)
    result = stage.deploy(A={"Name": "a", "Value": 2})
    assert result.exit_code is ExitCode.FAILED
    assert stage.cloud.things["a"].properties == {"Name": "a", "Value": 1}
    assert stage.run.record.resources[A].properties == {"Name": "a", "Value": 1}


def test_a_refused_update_needs_no_restoring() -> None:
    stage = Stage().has(A={"Name": "a", "Value": 1})
    stage.cloud.refuse("UpdateThing", "a")
    result = stage.deploy(A={"Name": "a", "Value": 2})
    assert result.exit_code is ExitCode.FAILED
    assert not stage.cloud.changes()


def test_going_back_goes_on_with_what_does_not_depend_on_what_it_could_not_undo() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "d")
    stage.cloud.refuse("DeleteThing", "b", code="Busy")
    result = stage.deploy(
        A={"Name": "a"},
        B={"Name": "b", "Uses": ref("A")},
        C={"Name": "c"},
        D={"Name": "d", "after": ["B", "C"]},
    )
    assert result.exit_code is ExitCode.PARTLY
    assert not result.settled
    assert set(stage.cloud.things) == {"a", "b"}
    assert set(stage.run.record.resources) == {A, B}
    assert {item.logical_id for item in result.done} == {A, B}


def test_what_is_in_flight_finishes_before_going_back() -> None:
    stage = Stage()
    gate = stage.cloud.hold("CreateThing", "a")
    stage.cloud.refuse("CreateThing", "b")
    running = stage.in_thread(A={"Name": "a"}, B={"Name": "b"}, C={"Name": "c", "after": ["A"]})
    gate.wait_reached()
    stage.wait_told(EventKind.OPERATION_FAILED)
    gate.open()
    assert running.result().exit_code is ExitCode.FAILED
    assert not stage.cloud.things
    assert ("CreateThing", "c") not in stage.cloud.log


def test_a_signal_while_going_back_stops_there_too() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "c")
    gate = stage.cloud.hold("DeleteThing", "b")
    running = stage.in_thread(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "after": ["B"]})
    gate.wait_reached()
    stage.run.stop()
    gate.open()
    result = running.result()
    assert result.exit_code is ExitCode.PARTLY
    assert set(stage.run.record.resources) == {A}
    assert [item.logical_id for item in result.done] == [A]


def test_without_rollback_what_was_done_stays_and_a_half_made_one_goes() -> None:
    stage = Stage(options=NO_ROLLBACK, handler=ThingHandler(calls_after_create=1))
    stage.cloud.refuse("UpdateThing", "b")
    result = stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    assert result.exit_code is ExitCode.PARTLY
    assert not result.settled
    assert set(stage.cloud.things) == {"a"}
    assert set(stage.run.record.resources) == {A}
    assert [item.logical_id for item in result.done] == [A]


def test_without_rollback_a_half_made_one_that_will_not_go_becomes_a_pending_delete() -> None:
    stage = Stage(options=NO_ROLLBACK, handler=ThingHandler(calls_after_create=1))
    stage.cloud.refuse("UpdateThing", "a")
    stage.cloud.refuse("DeleteThing", "a")
    stage.deploy(A={"Name": "a"})
    assert [item.resource.physical_id for item in stage.run.record.pending_deletes] == ["a"]
    assert not stage.run.record.resources


def test_nothing_goes_back_once_the_clean_up_has_begun() -> None:
    stage = Stage().has(A={"Kind": "x"}, B={"Name": "b"})
    stage.cloud.refuse("DeleteThing", "b")
    result = stage.deploy(A={"Kind": "y"})
    assert result.exit_code is ExitCode.PARTLY
    assert len(stage.cloud.things) == 2
    assert not any(event.kind is EventKind.GOING_BACK for event in stage.run.events)


def test_an_output_without_a_value_goes_back_before_the_clean_up() -> None:
    stage = Stage().has(A={"Name": "a"})
    result = stage.deploy(outputs={"Gone": ref("Z")}, B={"Name": "b"})
    assert result.exit_code is ExitCode.FAILED
    assert set(stage.cloud.things) == {"a"}
    assert "output Gone has no value" in result.error


def test_a_half_made_resource_that_will_not_go_is_recorded_as_to_be_deleted() -> None:
    stage = Stage(handler=ThingHandler(calls_after_create=1))
    stage.cloud.refuse("UpdateThing", "a")
    stage.cloud.refuse("DeleteThing", "a")
    result = stage.deploy(A={"Name": "a"})
    assert result.exit_code is ExitCode.PARTLY
    assert not result.record_gone
    assert [item.resource.physical_id for item in stage.run.record.pending_deletes] == ["a"]
    stage.begin()
    assert stage.destroy().record_gone
    assert not stage.cloud.things


class Garbled(ThingHandler):
    """A thing without a name of its own, whose create is answered with something that no id can be read from."""

    name_rule: ClassVar[NameRule | None] = None
    found_by: ClassVar[FoundBy] = FoundBy.NOTHING

    def create(self, ctx: Context, want: Want) -> Made:
        super().create(ctx, dataclasses.replace(want, name="thing-1"))
        raise KeyError("ThingId")


def test_a_create_whose_answer_cannot_be_read_stays_an_intent() -> None:
    stage = Stage(handler=Garbled())
    result = stage.deploy(A={})
    assert result.exit_code is ExitCode.PARTLY
    assert stage.run.marks == {A: IntentState.UNKNOWN}


def test_what_waits_for_a_stuck_one_over_several_steps_says_so_and_not_that_the_run_was_stopped() -> None:
    stage = Stage()
    stage.cloud.refuse("CreateThing", "d")
    stage.cloud.refuse("DeleteThing", "c")
    result = stage.deploy(
        A={"Name": "a"},
        B={"Name": "b", "after": ["A"]},
        C={"Name": "c", "after": ["B"]},
        D={"Name": "d", "after": ["C"]},
    )
    assert result.exit_code is ExitCode.PARTLY
    resources = result.summary["resources"]
    assert isinstance(resources, list)
    reasons = {each["logicalId"]: each.get("reason") for each in resources}
    assert reasons["B"] == "waits for C"
    assert reasons["A"] == "waits for B"
