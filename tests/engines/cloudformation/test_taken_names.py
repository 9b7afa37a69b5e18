"""Which names are free when a deploy wants them, from template and record to the refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.engines.cloudformation.graph import edges
from stackhold.engines.cloudformation.planner import plan_deploy
from stackhold.engines.cloudformation.resources.registry import handler_for
from stackhold.engines.cloudformation.template import evaluate, parse_text
from stackhold.engines.cloudformation.template.desired import Inputs
from stackhold.errors import InputError
from stackhold.model.ids import LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.plan import Plan

STACK, EAST = StackName("shop"), Region("us-east-1")
PARAMETER = TypeName("AWS::SSM::Parameter")
RULE = TypeName("AWS::Events::Rule")
ROLE = TypeName("AWS::IAM::Role")


def parameter(name: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"Name": name}
    return {"Type": PARAMETER, "Properties": {"Type": "String", "Value": "v", **named}, **more}


def recorded(name: str, *, given: bool = True, **fields: Any) -> ResourceRecord:
    properties = {"Type": "String", "Value": "v", **({"Name": name} if given else {})}
    return ResourceRecord(PhysicalId(name), PARAMETER, properties, **fields)


def planned(
    resources: dict[str, Any],
    before: dict[str, ResourceRecord] | None = None,
    *,
    pending: dict[str, ResourceRecord] | None = None,
    gone: tuple[str, ...] = (),
    replace: tuple[str, ...] = (),
) -> Plan:
    inputs = Inputs(STACK, EAST, "123456789012", "aws", "amazonaws.com", "arn:aws:cloudformation:us-east-1:1:stack/s/1")
    desired = evaluate(parse_text(json.dumps({"Resources": resources}), file="t.json"), inputs)
    waiting = tuple(PendingDelete(LogicalId(name), one, "Denied") for name, one in (pending or {}).items())
    record = StateRecord(
        STACK, EAST, {LogicalId(name): one for name, one in (before or {}).items()}, pending_deletes=waiting
    )
    return plan_deploy(
        desired,
        record,
        needs=edges(desired),
        attribute=lambda *_: None,
        native=handler_for,
        allow_replace=frozenset(map(LogicalId, replace)),
        is_gone=lambda _, resource: resource.physical_id in gone,
    )


def refused(*args: Any, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        planned(*args, **more)
    return caught.value


def test_a_name_that_another_resource_keeps_is_refused() -> None:
    error = refused({"A": parameter("n"), "B": parameter("n")}, {"A": recorded("n")})
    assert "B (AWS::SSM::Parameter) would be created as n, which is A's name" in error.message


def test_two_new_resources_of_one_name_are_refused() -> None:
    assert "B (AWS::SSM::Parameter) would be created as n, and so would A" in (
        refused({"A": parameter("n"), "B": parameter("n")}).message
    )


def test_the_generated_name_of_another_resource_is_taken_too() -> None:
    error = refused({"A": parameter(), "B": parameter("shop-A-1")}, {"A": recorded("shop-A-1", given=False)})
    assert "which is A's name" in error.message


def test_swapped_names_are_refused_with_the_way_round() -> None:
    error = refused({"A": parameter("b"), "B": parameter("a")}, {"A": recorded("a"), "B": recorded("b")})
    assert "A (AWS::SSM::Parameter) would be created as b, which is B's name until its old one is deleted" in (
        error.message
    )
    assert "B (AWS::SSM::Parameter) would be created as a" in error.message
    assert "give one of the two a third name first" in error.hint


def test_a_chain_of_names_is_refused_even_where_the_one_behind_is_new() -> None:
    error = refused({"A": parameter("b"), "New": parameter("a")}, {"A": recorded("a")})
    assert "New (AWS::SSM::Parameter) would be created as a, which is A's name until its old one" in error.message
    assert "first A under its new name" in error.hint


def test_a_replaced_resource_cannot_take_the_name_of_one_that_goes_or_is_kept() -> None:
    goes = refused({"A": parameter("b")}, {"A": recorded("a"), "B": recorded("b")})
    assert "which is B's name until that is deleted, at the end of the run" in goes.message
    kept = refused({"A": parameter("b")}, {"A": recorded("a"), "B": recorded("b", deletion_policy="Retain")})
    assert "its policy Retain keeps it" in kept.message


def test_a_name_whose_bearer_an_earlier_run_could_not_delete_is_refused_until_that_is_gone() -> None:
    error = refused({"New": parameter("n")}, pending={"Old": recorded("n")})
    assert "still the name of an old Old that an earlier run could not delete (Denied)" in error.message
    assert "delete n yourself" in error.hint
    assert planned({"New": parameter("n")}, pending={"Old": recorded("n")}, gone=("n",)).changes


def test_an_old_one_that_is_taken_back_has_its_name_by_right() -> None:
    assert planned({"A": parameter("a")}, {"A": recorded("b")}, pending={"A": recorded("a")}).changes


def test_a_resource_made_anew_on_request_keeps_its_name() -> None:
    assert planned({"A": parameter("n")}, {"A": recorded("n")}, replace=("A",), gone=("n",)).changes


def test_one_name_under_two_parents_is_two_names() -> None:
    rule = {"Name": "n", "ScheduleExpression": "rate(1 day)"}
    assert planned(
        {
            "A": {"Type": RULE, "Properties": {**rule}},
            "B": {"Type": RULE, "Properties": {**rule, "EventBusName": "other"}},
        }
    ).changes
    assert "and so would A" in (
        refused(
            {
                "A": {"Type": RULE, "Properties": {**rule}},
                "B": {"Type": RULE, "Properties": {**rule, "EventBusName": "default"}},
            }
        ).message
    )


@pytest.mark.parametrize("name", ["aws-thing", "SSMthing", "/aws/thing"])
def test_a_name_that_aws_keeps_for_itself_is_refused_for_what_is_made(name: str) -> None:
    assert "AWS keeps names with" in refused({"A": parameter(name)}).message
    assert "AWS keeps names with" in refused({"A": parameter(name)}, {"A": recorded("a")}).message
    assert planned({"A": parameter(name)}, {"A": recorded(name)}).is_empty
