"""How each resource goes back, from what record and journal say; and the order in which they do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackhold.engines.cloudformation.rollback_order import Part, Step, order_of
from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing, Way, plan_rollback, what_is_left
from stackhold.errors import RecordUnreadable
from stackhold.model.codec import resource_document
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.journal import Journal, JournalOperation, JournalSegment
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord

STACK, REGION = StackName("shop"), Region("eu-west-1")
QUEUE, BUCKET = TypeName("AWS::SQS::Queue"), TypeName("AWS::S3::Bucket")


def thing(physical_id: str, *needs: str, kind: TypeName = QUEUE, **properties: Any) -> ResourceRecord:
    return ResourceRecord(
        PhysicalId(physical_id),
        kind,
        properties,
        dependencies=tuple(LogicalId(need) for need in needs) or None,
        provisioned_by="cc-api",
    )


def did(
    change: str,
    physical_id: str,
    before: ResourceRecord | None = None,
    *,
    name: str = "A",
    status: str | None = None,
    **extra: object,
) -> JournalOperation:
    return JournalOperation(
        LogicalId(name),
        change,
        QUEUE,
        PhysicalId(physical_id),
        {},
        previous=resource_document(before) if before is not None else None,
        status=status,
        extra=extra,
    )


def journal(*operations: JournalOperation) -> Journal:
    segment = JournalSegment(RunId("r"), Instant(1), "failed", False, operations, tool_version="0")
    return Journal(STACK, REGION, (segment,))


def record(pending: tuple[ResourceRecord, ...] = (), **resources: ResourceRecord) -> StateRecord:
    return StateRecord(
        STACK,
        REGION,
        {LogicalId(name): item for name, item in resources.items()},
        pending_deletes=tuple(PendingDelete(LogicalId("A"), item) for item in pending),
    )


def decided(now: StateRecord, *operations: JournalOperation, reverts_failed: bool = False) -> Undoing:
    plan = plan_rollback(now, journal(*operations), native=lambda _: None, reverts_failed=reverts_failed)
    return plan.undoings[LogicalId("A")]


ONE, TWO, THREE = thing("one", Size=1), thing("two", Size=2), thing("three", Size=1)
ONE_CHANGED = thing("one", Size=2)
FOUND = replace(THREE, adopted_as="")


@pytest.mark.parametrize(
    ("now", "operations", "way", "removals"),
    [
        pytest.param(record(A=ONE), [did("CREATE", "one")], Way.DELETE, ["one"], id="created"),
        pytest.param(record(), [did("CREATE", "one")], Way.FORGET, [], id="created-and-gone"),
        pytest.param(record((ONE,)), [did("CREATE", "one")], Way.DELETE, ["one"], id="created-and-to-be-deleted"),
        pytest.param(record(A=ONE_CHANGED), [did("UPDATE", "one", ONE)], Way.RESTORE, [], id="updated"),
        pytest.param(record(A=ONE), [did("UPDATE", "one", ONE)], Way.FORGET, [], id="updated-and-restored"),
        pytest.param(record((ONE,), A=TWO), [did("REPLACE", "two", ONE)], Way.PUT_BACK, ["two"], id="replaced"),
        pytest.param(record(A=TWO), [did("REPLACE", "two", ONE)], Way.CREATE_AGAIN, ["two"], id="replaced-old-gone"),
        pytest.param(record(A=ONE), [did("REPLACE", "two", ONE)], Way.FORGET, [], id="replaced-and-back"),
        pytest.param(
            record((TWO,), A=ONE), [did("REPLACE", "two", ONE)], Way.FORGET, ["two"], id="back-and-new-one-left"
        ),
        pytest.param(record(A=THREE), [did("REPLACE", "two", ONE)], Way.FORGET, [], id="made-anew-already"),
        pytest.param(
            record((TWO,), A=THREE), [did("REPLACE", "two", ONE)], Way.FORGET, ["two"], id="made-anew-new-one-left"
        ),
        pytest.param(record(), [did("DELETE", "one", ONE)], Way.CREATE_AGAIN, [], id="deleted"),
        pytest.param(record((ONE,)), [did("DELETE", "one", ONE)], Way.PUT_BACK, [], id="deleted-in-part"),
        pytest.param(record(A=THREE), [did("DELETE", "one", ONE)], Way.FORGET, [], id="deleted-and-made-anew"),
        pytest.param(record(A=FOUND), [did("DELETE", "one", ONE)], Way.RESTORE, [], id="made-anew-found-again"),
        pytest.param(record(A=FOUND), [did("REPLACE", "two", ONE)], Way.RESTORE, [], id="replaced-and-found-again"),
        pytest.param(record(A=TWO), [did("DELETE", "one", ONE, leftover=True)], Way.FORGET, [], id="leftover-deleted"),
        pytest.param(
            record(A=TWO),
            [did("REPLACE", "two", ONE), did("DELETE", "one", ONE, leftover=True)],
            Way.CREATE_AGAIN,
            ["two"],
            id="replaced-and-old-one-cleaned-up",
        ),
        pytest.param(
            record((ONE_CHANGED,), A=TWO),
            [did("UPDATE", "one", ONE), did("REPLACE", "two", ONE_CHANGED)],
            Way.PUT_BACK,
            ["two"],
            id="updated-then-replaced",
        ),
        pytest.param(
            record(A=ONE_CHANGED),
            [did("CREATE", "one"), did("UPDATE", "one", ONE)],
            Way.DELETE,
            ["one"],
            id="created-then-updated",
        ),
        pytest.param(record(), [did("CREATE", "one"), did("DELETE", "one", ONE)], Way.FORGET, [], id="came-and-went"),
        pytest.param(record(A=ONE), [did("CREATE", "x", status="unknown")], Way.DELETE, ["one"], id="lost-and-found"),
        pytest.param(record(), [did("CREATE", "x", status="unknown")], Way.LEAVE, [], id="lost"),
        pytest.param(record(A=ONE), [did("UPDATE", "one", ONE, status="failed")], Way.LEAVE, [], id="update-failed"),
        pytest.param(
            record((ONE,), A=TWO),
            [did("REPLACE", "x", ONE, status="unknown")],
            Way.PUT_BACK,
            ["two"],
            id="found-new-one",
        ),
        pytest.param(record(A=ONE), [did("REPLACE", "x", ONE, status="unknown")], Way.LEAVE, [], id="replace-lost"),
        pytest.param(record(A=ONE), [did("MOVE", "one", ONE)], Way.LEAVE, [], id="unheard-of"),
        pytest.param(record(A=ONE_CHANGED), [did("UPDATE", "one")], Way.LEAVE, [], id="nothing-said-of-before"),
    ],
)
def test_how_a_resource_goes_back(
    now: StateRecord, operations: list[JournalOperation], way: Way, removals: list[str]
) -> None:
    undoing = decided(now, *operations)
    assert (undoing.way, [item.physical_id for item in undoing.removals]) == (way, removals)


@pytest.mark.parametrize(
    ("now", "operation", "way"),
    [
        (record(), did("CREATE", "x", status="unknown"), Way.LOOK_FOR),
        (record(A=ONE), did("UPDATE", "one", ONE, status="failed"), Way.RESTORE),
        (record(A=ONE), did("REPLACE", "x", ONE, status="unknown"), Way.LOOK_FOR),
        (record(), did("REPLACE", "x", ONE, status="failed"), Way.CREATE_AGAIN),
        (record(A=ONE), did("DELETE", "one", ONE, status="unknown"), Way.RESTORE),
        (record(), did("DELETE", "one", ONE, status="unknown"), Way.CREATE_AGAIN),
    ],
)
def test_how_what_is_in_doubt_goes_back_when_that_is_asked_for(
    now: StateRecord, operation: JournalOperation, way: Way
) -> None:
    undoing = decided(now, operation, reverts_failed=True)
    assert undoing.way is way
    assert undoing.doubt is not None


def test_what_would_be_made_beside_its_namesake_is_made_after_that_has_gone() -> None:
    old, new = thing("a", kind=BUCKET, BucketName="a"), thing("a-2", kind=BUCKET, BucketName="a")
    assert decided(record(A=new), did("REPLACE", "a-2", old)).old_first
    assert not decided(record(A=TWO), did("REPLACE", "two", ONE)).old_first


def test_a_former_state_of_another_shape_is_refused_by_its_place() -> None:
    operation = JournalOperation(LogicalId("A"), "UPDATE", QUEUE, PhysicalId("one"), previous={"physicalId": 7})
    with pytest.raises(RecordUnreadable, match=r"A\.previousState"):
        decided(record(A=ONE), operation)


def test_what_is_undone_leaves_the_journal_and_empty_segments_go() -> None:
    whole = journal(did("CREATE", "one"), did("CREATE", "b", name="B")).segments
    assert what_is_left(whole, set()) == whole
    [left] = what_is_left(whole, {LogicalId("A")})
    assert [one.logical_id for one in left.operations] == ["B"]
    assert left.reason == "rollback-partial"
    assert what_is_left(whole, {LogicalId("A"), LogicalId("B")}) == ()


@pytest.mark.parametrize(("kind", "held_data"), [("AWS::S3::Bucket", True), ("AWS::EC2::Route", False)])
def test_only_what_holds_data_is_said_to_come_back_without_it(kind: str, held_data: bool) -> None:
    undoing = decided(record(), did("DELETE", "one", thing("one", kind=TypeName(kind))))
    assert (undoing.way, undoing.held_data) == (Way.CREATE_AGAIN, held_data)


names = st.sampled_from("ABCDEF").map(LogicalId)
graphs = st.dictionaries(names, st.sets(names, max_size=3), min_size=1)
ways = st.sampled_from([Way.DELETE, Way.RESTORE, Way.PUT_BACK, Way.CREATE_AGAIN, Way.ORPHAN, Way.LEAVE])


@settings(deadline=None)
@given(now=graphs, before=graphs, data=st.data())
def test_every_step_comes_and_none_waits_for_itself(
    now: dict[LogicalId, set[LogicalId]], before: dict[LogicalId, set[LogicalId]], data: st.DataObject
) -> None:
    resources = {name: thing(name.lower(), *sorted(needs)) for name, needs in now.items()}
    undoings = {}
    for name in sorted({*now, *before}):
        living = resources.get(name)
        former = thing(f"{name}-before", *sorted(before[name])) if name in before else None
        removals = (living,) if living is not None and data.draw(st.booleans()) else ()
        undoings[name] = Undoing(name, QUEUE, data.draw(ways), now=living, before=former, removals=removals)
    order = order_of(RollbackPlan(undoings, (), StateRecord(STACK, REGION, resources)))
    assert {name for name, _ in order} == undoings.keys()
    left: dict[Step, set[Step]] = {step: set(needs) for step, needs in order.items()}
    assert all(need in order for needs in left.values() for need in needs)
    while left:
        ready = [step for step, needs in left.items() if not needs]
        assert ready, f"a cycle among {left}"
        for step in ready:
            del left[step]
        for needs in left.values():
            needs.difference_update(ready)


def test_what_is_made_anew_comes_first_and_what_took_its_place_goes_last() -> None:
    a, b = LogicalId("A"), LogicalId("B")
    resources = {a: TWO, b: thing("b", "A")}
    undoings = {
        b: Undoing(b, QUEUE, Way.RESTORE, now=resources[b], before=thing("b", "A")),
        a: Undoing(a, QUEUE, Way.CREATE_AGAIN, now=TWO, before=ONE, removals=(TWO,)),
    }
    order = order_of(RollbackPlan(undoings, (), StateRecord(STACK, REGION, resources)))
    assert order == {
        (a, Part.MAKE): set(),
        (b, Part.BACK): {(a, Part.MAKE)},
        (a, Part.BACK): {(a, Part.MAKE), (b, Part.BACK)},
    }
