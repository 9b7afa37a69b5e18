"""Rolling back by the journal: what each kind of operation needs, in which order, and what is left when it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.cloudformation.back_stage import BackStage, physical, stop_at, stop_in_clean_up
from tests.engines.cloudformation.stage import ThingHandler

from stackhold.engines.cloudformation.values import RefTo
from stackhold.errors import InputError
from stackhold.model.exit_codes import ExitCode
from stackhold.model.ids import LogicalId
from stackhold.model.run import IntentKind, IntentState, Outcome

if TYPE_CHECKING:
    from stackhold.ports.engine import WorkResult

A, B, C, D = LogicalId("A"), LogicalId("B"), LogicalId("C"), LogicalId("D")


def ref(name: str) -> RefTo:
    return RefTo(LogicalId(name))


def content(stage: BackStage) -> dict[str, Any]:
    """What exists, by logical id, with the names that the product has made up left out."""
    names = {name: name.rsplit("-", 1)[0] for name in stage.cloud.things}

    def plain(value: Any) -> Any:
        return names.get(value, value) if isinstance(value, str) else value

    return {
        names[name]: {key: plain(value) for key, value in thing.properties.items()}
        for name, thing in stage.cloud.things.items()
    }


def recorded(stage: BackStage) -> dict[str, Any]:
    """What is recorded, in the same form."""
    names = {name: name.rsplit("-", 1)[0] for name in stage.cloud.things}
    resources = stage.record.resources if stage.record else {}
    return {
        names.get(item.physical_id, item.physical_id): {
            key: names.get(value, value) if isinstance(value, str) else value for key, value in item.properties.items()
        }
        for item in resources.values()
    }


def outcomes(result: WorkResult) -> dict[str, str]:
    entries = result.summary["resources"]
    assert isinstance(entries, list)
    return {entry["logicalId"]: entry["outcome"] for entry in entries}


def assert_complete(stage: BackStage, result: WorkResult) -> None:
    assert (result.outcome, result.exit_code, result.error) == (Outcome.SUCCEEDED, ExitCode.DONE, "")
    assert stage.journal is None
    assert set(stage.run.marks.values()) <= {IntentState.DONE}


def test_without_a_journal_there_is_nothing_to_do() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a"})
    assert stage.planned().is_empty
    assert BackStage().planned().is_empty


def test_a_first_deploy_goes_dependents_first_and_its_record_with_it() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "c")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "after": ["B"]})
    assert stage.ways() == {"A": "delete", "B": "delete"}
    result = stage.rollback()
    assert_complete(stage, result)
    assert result.record_gone
    assert not stage.cloud.things
    assert [name for verb, name in stage.cloud.changes() if verb == "DeleteThing"] == ["b", "a"]


def test_updates_get_their_recorded_properties_back_in_reverse_and_creates_go() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a", "Value": 1}, B={"Name": "b", "Value": 1, "after": ["A"]})
    before = stage.record.resources if stage.record else {}
    stage.cloud.refuse("CreateThing", "d")
    stage.deploy(
        A={"Name": "a", "Value": 2},
        B={"Name": "b", "Value": 2, "after": ["A"]},
        C={"Name": "c", "after": ["B"]},
        D={"Name": "d", "after": ["C"]},
    )
    stage.cloud.log.clear()
    result = stage.rollback()
    assert_complete(stage, result)
    assert content(stage) == {"a": {"Name": "a", "Value": 1}, "b": {"Name": "b", "Value": 1}}
    assert stage.record is not None
    assert stage.record.resources == before
    assert stage.cloud.changes() == [("DeleteThing", "c"), ("UpdateThing", "b"), ("UpdateThing", "a")]


def test_a_replacement_puts_the_old_one_back_while_it_waits_for_its_deletion() -> None:
    stage = BackStage()
    stage.deploy(A={"Kind": "x"}, B={"Name": "b", "Uses": ref("A")})
    old = physical(stage, A)
    stage.cloud.refuse("CreateThing", "c")
    stage.deploy(A={"Kind": "y"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c", "after": ["B"]})
    assert stage.ways() == {"A": "put back", "B": "restore"}
    stage.cloud.log.clear()
    result = stage.rollback()
    assert_complete(stage, result)
    assert [verb for verb, _ in stage.cloud.changes()] == ["UpdateThing", "DeleteThing"]
    assert stage.cloud.things["b"].properties["Uses"] == physical(stage, A) == old
    assert set(stage.cloud.things) == {old, "b"}
    assert not stage.run.record.pending_deletes


class HoldsData(ThingHandler):
    """Things that hold data."""

    is_stateful = True


def test_a_replaced_one_that_is_gone_is_made_anew_before_what_refers_to_it_goes_back() -> None:
    stage = BackStage(handler=HoldsData())
    stage.deploy(A={"Kind": "x"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c"}, D={"Name": "d", "after": ["C"]})
    old = physical(stage, A)
    stop_in_clean_up(stage, "d", old, A={"Kind": "y"}, B={"Name": "b", "Uses": ref("A")})
    assert old not in stage.cloud.things
    assert stage.ways() == {"A": "create again", "B": "restore", "D": "create again"}
    stage.cloud.log.clear()
    result = stage.rollback()
    assert_complete(stage, result)
    again = physical(stage, A)
    assert again != old
    assert stage.cloud.things["b"].properties == {"Name": "b", "Uses": again}
    assert stage.run.record.resources[B].properties == {"Name": "b", "Uses": again}
    assert stage.cloud.things[again].properties == {"Kind": "x"}
    assert set(stage.cloud.things) == {again, "b", "c", "d"}
    verbs = [(verb, name) for verb, name in stage.cloud.changes() if name not in {"c", "d"}]
    assert [verb for verb, _ in verbs] == ["CreateThing", "UpdateThing", "DeleteThing"]
    entries = result.summary["resources"]
    assert isinstance(entries, list)
    assert {entry["logicalId"]: "lost" in entry.get("note", "") for entry in entries} == {
        "A": True,
        "B": False,
        "D": True,
    }


def test_a_replaced_one_that_a_policy_kept_takes_its_place_again() -> None:
    stage = BackStage()
    stage.deploy(A={"Kind": "x"})
    old = physical(stage, A)
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Kind": "y", "replace_policy": "Retain"}, B={"Name": "b", "after": ["A"]})
    assert not stage.run.record.pending_deletes
    assert_complete(stage, stage.rollback())
    assert set(stage.cloud.things) == {old}
    assert physical(stage, A) == old


def test_what_a_policy_kept_while_a_destroy_was_stopped_is_recorded_again() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]}, C={"Name": "c", "policy": "Retain"})
    before = stage.run.record.resources
    stop_at(stage, stage.cloud.hold("DeleteThing", "b"), stage.destroy)
    assert set(stage.run.record.resources) == {A}
    assert_complete(stage, stage.rollback())
    assert stage.run.record.resources[C] == before[C]
    assert [name for verb, name in stage.cloud.changes() if verb == "CreateThing"] == ["a", "c", "b", "b"]


def test_an_interrupted_destroy_is_undone_needed_ones_first() -> None:
    stage = BackStage()
    stage.deploy(A={"Kind": "x"}, B={"Kind": "y", "Uses": ref("A")}, C={"Name": "c", "Uses": ref("B")})
    before = content(stage)
    gate = stage.cloud.hold("DeleteThing", physical(stage, B))
    stop_at(stage, gate, stage.destroy)
    assert set(stage.run.record.resources) == {A}
    result = stage.rollback()
    assert_complete(stage, result)
    assert content(stage) == recorded(stage) == before
    assert stage.cloud.things["c"].properties["Uses"] == physical(stage, B)


def test_what_was_created_is_kept_when_its_policy_says_so_and_named() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a", "policy": "Retain"}, B={"Name": "b", "after": ["A"]})
    result = stage.rollback()
    assert_complete(stage, result)
    assert set(stage.cloud.things) == {"a"}
    assert result.record_gone
    assert "as a (DeletionPolicy Retain); it is in no record now" in str(result.summary["resources"])


def test_several_runs_are_undone_together_to_how_it_was_before_the_oldest() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a", "Value": 1})
    for number in (2, 3):
        stage.cloud.refuse("CreateThing", "z")
        stage.deploy(
            A={"Name": "a", "Value": number},
            B={"Name": "b", "Value": number, "Uses": ref("A")},
            Z={"Name": "z", "after": ["B"]},
        )
    assert len(stage.journal.segments if stage.journal else ()) == 2
    stage.cloud.log.clear()
    assert_complete(stage, stage.rollback())
    assert stage.cloud.changes() == [("DeleteThing", "b"), ("UpdateThing", "a")]
    assert content(stage) == {"a": {"Name": "a", "Value": 1}}


def test_what_cannot_be_undone_holds_back_only_what_it_needs_and_the_next_rollback_goes_on() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "d")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, C={"Name": "c"}, D={"Name": "d", "after": ["B"]})
    stage.cloud.refuse("DeleteThing", "b", code="Busy")
    result = stage.rollback()
    assert (result.outcome, result.exit_code) == (Outcome.FAILED, ExitCode.PARTLY)
    assert result.error.startswith("B: ")
    assert outcomes(result) == {"A": "left", "B": "left", "C": "done"}
    assert not result.record_gone
    assert set(stage.cloud.things) == {"a", "b"}
    assert {name for name, _ in stage.journalled()} == {"A", "B"}
    assert stage.journal is not None
    assert [segment.reason for segment in stage.journal.segments] == ["rollback-partial"]
    again = stage.rollback()
    assert_complete(stage, again)
    assert again.record_gone
    assert not stage.cloud.things


def test_an_orphan_stays_in_the_cloud_out_of_record_and_journal_and_holds_nothing_back() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "d")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, D={"Name": "d", "after": ["B"]})
    result = stage.rollback("B")
    assert_complete(stage, result)
    assert set(stage.cloud.things) == {"b"}
    assert result.record_gone
    assert "as b (--orphan); it is in no record now" in str(result.summary["resources"])


def test_an_updated_orphan_stays_as_it_is_recorded() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a", "Value": 1})
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a", "Value": 2}, B={"Name": "b", "after": ["A"]})
    assert_complete(stage, stage.rollback("A"))
    assert content(stage) == recorded(stage) == {"a": {"Name": "a", "Value": 2}}


def test_an_orphan_that_the_journal_does_not_know_is_refused() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    with pytest.raises(InputError, match="--orphan names Z"):
        stage.rollback("Z")


def test_a_journal_whose_record_is_gone_is_refused() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    stage.record = None
    with pytest.raises(InputError, match="the record that goes with it is gone"):
        stage.planned()


def test_a_create_whose_answer_was_lost_is_left_until_its_revert_is_asked_for() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a"})
    stage.deploy(A={"Name": "a"}, B={})
    name = physical(stage, B)
    stage = BackStage()
    stage.deploy(A={"Name": "a"})
    stage.cloud.lose("CreateThing", name, is_carried_out=True)
    stage.cloud.stops_before = ("CreateThing", name)
    stage.deploy(A={"Name": "a", "Value": 2}, B={"after": ["A"]})
    assert name in stage.cloud.things
    partly = stage.rollback()
    assert partly.exit_code is ExitCode.PARTLY
    assert "--revert-failed" in partly.error
    assert stage.journalled() == [("B", "CREATE")]
    assert stage.cloud.things["a"].properties == {"Name": "a"}
    assert_complete(stage, stage.rollback(reverts_failed=True))
    assert set(stage.cloud.things) == {"a"}


def test_a_create_under_a_name_that_anybody_could_have_is_never_taken_for_ours() -> None:
    stage = BackStage()
    stage.cloud.lose("CreateThing", "b", is_carried_out=False)
    stage.cloud.stops_before = ("CreateThing", "b")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "after": ["A"]})
    stage.cloud.call("fake", "CreateThing", {"Name": "b", "Properties": {"Owner": "someone"}})
    result = stage.rollback(reverts_failed=True)
    assert result.exit_code is ExitCode.PARTLY
    assert "aws cloudcontrol get-resource --type-name Test::Fake::Thing --identifier b" in result.error
    assert set(stage.cloud.things) == {"b"}
    assert stage.journalled() == [("B", "CREATE")]
    assert_complete(stage, stage.rollback("B"))


def test_a_failed_update_is_read_and_restored_when_asked_for() -> None:
    stage = BackStage()
    stage.deploy(A={"Name": "a", "Value": 1})
    stage.cloud.lose("UpdateThing", "a", is_carried_out=True)
    stage.deploy(A={"Name": "a", "Value": 2})
    assert stage.ways() == {"A": "leave"}
    assert stage.ways(reverts_failed=True) == {"A": "restore"}
    assert_complete(stage, stage.rollback(reverts_failed=True))
    assert stage.cloud.things["a"].properties == {"Name": "a", "Value": 1}
    assert ("GetThing", "a") in stage.cloud.log


def test_a_half_made_create_that_is_recorded_as_to_be_deleted_goes_without_being_asked_for() -> None:
    stage = BackStage(handler=ThingHandler(calls_after_create=1))
    stage.cloud.refuse("UpdateThing", "a")
    stage.cloud.refuse("DeleteThing", "a")
    stage.deploy(A={"Name": "a"})
    assert stage.run.record.pending_deletes
    result = stage.rollback()
    assert_complete(stage, result)
    assert result.record_gone
    assert not stage.cloud.things


def test_a_signal_stops_a_rollback_and_the_next_one_goes_on() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "d")
    stage.deploy(A={"Name": "a"}, B={"Name": "b", "Uses": ref("A")}, D={"Name": "d", "after": ["B"]})
    gate = stage.cloud.hold("DeleteThing", "b")
    result = stop_at(stage, gate, stage.rollback)
    assert result.exit_code is ExitCode.PARTLY
    assert outcomes(result) == {"A": "not tried", "B": "done"}
    assert stage.journalled() == [("A", "CREATE")]
    assert_complete(stage, stage.rollback())
    assert not stage.cloud.things


def test_every_identity_that_may_change_is_an_intent() -> None:
    stage = BackStage()
    stage.deploy(A={"Kind": "x"}, B={"Name": "b", "Value": 1}, C={"Name": "c"}, D={"Name": "d", "after": ["C"]})
    stop_in_clean_up(stage, "d", physical(stage, A), A={"Kind": "y"}, B={"Name": "b", "Value": 2})
    work = stage.planned()
    assert {(str(one.logical_id), one.kind) for one in work.intents} == {
        ("A", IntentKind.CREATE),
        ("A", IntentKind.DELETE),
        ("B", IntentKind.UPDATE),
        ("D", IntentKind.CREATE),
    }
    made = {str(one.logical_id): one for one in work.intents if one.kind is IntentKind.CREATE}
    assert made["D"].name == "d"
    work.perform(stage.run)
    assert made["A"].name in stage.cloud.things
    assert [step["operation"] for step in work.steps] == ["restore", "create again", "create again"]


def test_the_outputs_of_before_come_back_where_a_segment_tells_them() -> None:
    stage = BackStage()
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a", "policy": None}, B={"Name": "b", "after": ["A"]})
    stage.deploy(A={"Name": "a", "Value": 1})
    stage.cloud.refuse("CreateThing", "b")
    stage.deploy(A={"Name": "a", "Value": 2}, B={"Name": "b", "after": ["A"]})
    assert stage.journal is not None
    stage.journal.segments[0].extra["previousOutputs"] = {"Url": "one"}  # type: ignore[index]
    assert_complete(stage, stage.rollback())
    assert stage.run.record.outputs == {"Url": "one"}


NUMBERED = {"Kind": st.sampled_from("xy"), "Value": st.integers(1, 3)}
templates = st.fixed_dictionaries(
    {},
    optional={
        "A": st.fixed_dictionaries(NUMBERED),
        "B": st.fixed_dictionaries({**NUMBERED, "Uses": st.just(ref("A"))}),
        "C": st.fixed_dictionaries(
            {"Name": st.just("shop-C-c"), "Value": st.integers(1, 3), "Uses": st.just(ref("B"))}
        ),
        "D": st.fixed_dictionaries(NUMBERED),
    },
)


def whole(template: dict[str, Any]) -> dict[str, Any]:
    """The template with what its resources refer to."""
    needed = {"B": "A", "C": "B"}
    found = dict(template)
    for name in ("C", "B"):
        if name in found and needed[name] not in found:
            del found[name]
    return {name: found[name] for name in found if name not in needed or needed[name] in found}


@settings(deadline=None, max_examples=150)
@given(
    first=templates.map(whole),
    others=st.lists(st.tuples(templates.map(whole), st.integers(1, 6), st.booleans()), min_size=1, max_size=3),
    cuts=st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["stopped", "not settled", "killed"])), max_size=3),
)
def test_whatever_was_deployed_and_stopped_a_rollback_brings_back_what_was_there_before(
    first: dict[str, Any], others: list[tuple[dict[str, Any], int, bool]], cuts: list[tuple[int, str]]
) -> None:
    stage = BackStage()
    if first:
        assert stage.deploy(**first).settled
    before = content(stage)
    for template, calls, is_killed in others:
        stage.cloud.changes_left = calls
        (stage.killed_deploy if is_killed else stage.deploy)(**template)
        if stage.journal is None:
            before = content(stage)
    for calls, how in cuts:
        if stage.journal is None:
            break
        stage.cloud.changes_left = None if how == "killed" else calls
        stage.cloud.dies_after = calls if how == "killed" else None
        (stage.rollback if how == "stopped" else stage.killed_rollback)()
    stage.cloud.changes_left = stage.cloud.dies_after = None
    if stage.journal is not None:
        result = stage.rollback()
        assert result.exit_code is ExitCode.DONE, result
        assert stage.journal is None
    assert content(stage) == recorded(stage) == before
    living = {item.physical_id for item in (stage.record.resources if stage.record else {}).values()}
    assert living == set(stage.cloud.things)
