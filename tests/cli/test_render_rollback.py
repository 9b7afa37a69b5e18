from __future__ import annotations

import json

from stackhold.cli.render_rollback import losing, rollback_document, rollback_text
from stackhold.engines.cloudformation.plan import Effect, PropertyChange
from stackhold.engines.cloudformation.rollback_plan import RollbackPlan, Undoing, Way
from stackhold.model.ids import LogicalId, PhysicalId, Region, RunId, StackName, TypeName
from stackhold.model.instant import Instant
from stackhold.model.journal import JournalSegment
from stackhold.model.record import ResourceRecord

STACK, REGION = StackName("payments"), Region("eu-west-1")
TABLE, QUEUE, ROUTE = TypeName("AWS::DynamoDB::Table"), TypeName("AWS::SQS::Queue"), TypeName("AWS::EC2::Route")


def thing(physical_id: str) -> ResourceRecord:
    return ResourceRecord(PhysicalId(physical_id), TABLE, {})


def plan(*undoings: Undoing) -> RollbackPlan:
    segment = JournalSegment(RunId("20260319T080000000Z-0badcafe"), Instant(1_773_907_200_000), "failed", False, ())
    return RollbackPlan({undoing.logical_id: undoing for undoing in undoings}, (segment,))


NEW, OLD = thing("t-2"), thing("t-1")
PASSWORD = PropertyChange("MasterUserPassword", "a", "b", Effect.UPDATE)
SIZE = PropertyChange("Size", 2, 1, Effect.UPDATE)
WHOLE = plan(
    Undoing(LogicalId("Odd"), QUEUE, Way.LEAVE, reason="nobody knows\x1b"),
    Undoing(LogicalId("Data"), TABLE, Way.DELETE, now=NEW, removals=(NEW,), loses=(NEW,)),
    Undoing(LogicalId("Box"), QUEUE, Way.RESTORE, now=NEW, before=OLD, changes=(SIZE, PASSWORD)),
    Undoing(LogicalId("Swap"), QUEUE, Way.PUT_BACK, now=NEW, before=OLD, removals=(NEW,)),
    Undoing(LogicalId("Gone"), QUEUE, Way.CREATE_AGAIN, before=OLD, held_data=True),
    Undoing(LogicalId("Way"), ROUTE, Way.CREATE_AGAIN, before=thing("r-1")),
    Undoing(LogicalId("Done"), QUEUE, Way.FORGET),
)


def test_a_plan_shows_each_way_back_what_is_lost_and_what_cannot_be_undone() -> None:
    assert rollback_text(WHOLE, stack=STACK, region=REGION).splitlines() == [
        "payments (eu-west-1): 1 to delete, 1 to restore, 1 to put back, 2 to create again, 1 that cannot be undone "
        "now, 1 undone already",
        "",
        "  undoes 20260319T080000000Z-0badcafe (failed, 2026-03-19T08:00:00.000Z)",
        "  - delete       Data  AWS::DynamoDB::Table  t-2  [stateful]",
        "  ~ restore      Box  AWS::SQS::Queue  t-2",
        "      Size: 2 → 1",
        "      MasterUserPassword: changed (not shown)",
        "  ± put back     Swap  AWS::SQS::Queue  t-2",
        "      t-1 is back, and t-2 is deleted",
        "  + create again Gone  AWS::SQS::Queue  t-1  [stateful]",
        "      t-1 is gone; it is made anew, without what it held",
        "  + create again Way  AWS::EC2::Route  r-1",
        "  ! leave        Odd  AWS::SQS::Queue",
        "      nobody knows\\x1b",
    ]
    assert losing(WHOLE) == ("Data",)


def test_the_document_has_everything_and_no_secret() -> None:
    document = rollback_document(WHOLE, stack=STACK, region=REGION)
    assert json.loads(json.dumps(document)) == document
    found = {each["logicalId"]: each for each in document["resources"]}  # type: ignore[attr-defined]
    assert found["Swap"]["deletes"] == ["t-2"]
    assert found["Swap"]["formerPhysicalId"] == "t-1"
    assert found["Box"]["changes"][1] == {"path": "MasterUserPassword", "effect": "update"}
    assert found["Data"]["stateful"] is True
    assert found["Odd"]["reason"].startswith("nobody knows")
