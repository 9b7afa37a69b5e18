from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stackhold.cli.paint import Paint
from stackhold.cli.render_plan import plan_document, plan_text, risky, value_text
from stackhold.engines.cloudformation.plan import ABSENT, Action, Effect, Plan, PropertyChange, ResourceChange, Route
from stackhold.engines.cloudformation.template.desired import DesiredOutput
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.model.ids import LogicalId, PhysicalId, Region, StackName, TypeName
from stackhold.model.record import PendingDelete, ResourceRecord, StateRecord

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
STACK, REGION = StackName("payments"), Region("eu-west-1")


def change(name: str, type_name: str, action: Action, **more: Any) -> ResourceChange:
    recorded = None
    if action is not Action.CREATE:
        recorded = ResourceRecord(PhysicalId(f"{name.lower()}-1"), TypeName(type_name), {})
    more.setdefault("route", Route.NATIVE)
    return ResourceChange(LogicalId(name), TypeName(type_name), action, recorded=recorded, **more)


def plan(*changes: ResourceChange, **more: Any) -> Plan:
    return Plan(changes={each.logical_id: each for each in changes}, needs={}, old_needs={}, **more)


FULL = plan(
    change("Keep", "AWS::SNS::Topic", Action.KEEP),
    change("Gone", "AWS::SQS::Queue", Action.DELETE),
    change("Orders", "AWS::DynamoDB::Table", Action.REPLACE, is_stateful=True, changes=(
        PropertyChange("TableName", "a", "b", Effect.REPLACE),
        PropertyChange("Tags.Env", ABSENT, "prod", Effect.UPDATE),
    )),
    change("Bucket", "AWS::S3::Bucket", Action.REPLACE, is_stateful=True, keeps_old="Retain", changes=(
        PropertyChange("BucketName", "a", ABSENT, Effect.REPLACE),
    )),
    change("Attach", "AWS::EC2::VPCGatewayAttachment", Action.REPLACE, old_first=True, changes=(
        PropertyChange("VpcId", "vpc-1", UNKNOWN, Effect.MAY_REPLACE, cause=LogicalId("Vpc")),
    )),
    change("Fn", "AWS::Lambda::Function", Action.UPDATE, changes=(
        PropertyChange("Environment.Variables.DbPassword", "geheim", "secret", Effect.UPDATE),
        PropertyChange("MemorySize", 128, 256, Effect.UPDATE),
    )),
    change("New", "AWS::Foo::Bar", Action.CREATE, route=Route.CLOUD_CONTROL, warnings=("slow \x1b[31mtype",)),
    change("Kept", "AWS::S3::Bucket", Action.RETAIN, is_stateful=True, keeps_old="Retain"),
    change("Meta", "AWS::SQS::Queue", Action.RECORD),
    pending_deletes=(
        PendingDelete(LogicalId("Old"), ResourceRecord(PhysicalId("old-1"), TypeName("AWS::SQS::Queue"), {})),
    ),
    parameters={"Size": "5", "Env": "prod"},
    parameters_changed=True,
    outputs={"Url": DesiredOutput("Url", "x"), "Arn": DesiredOutput("Arn", "y"), "Same": DesiredOutput("Same", "s")},
    output_values={"Url": "x", "Arn": UNKNOWN, "Same": "s"},
    outputs_changed=True,
    warnings=("UpdatePolicy is ignored",),
)  # fmt: skip
RECORD = StateRecord(
    STACK, REGION, outputs={"Url": "w", "Gone": "z", "Same": "s"}, parameters={"Size": "3", "Env": "prod"}
)


def test_a_plan_reads_as_agreed() -> None:
    assert plan_text(FULL, stack=STACK, region=REGION, record=RECORD) == (GOLDEN / "plan.txt").read_text()


def test_nothing_to_change_is_one_line() -> None:
    kept = plan(change("Keep", "AWS::SNS::Topic", Action.KEEP))
    assert plan_text(kept, stack=STACK, region=REGION) == (
        "payments (eu-west-1): nothing to change, 1 resource as recorded\n"
    )


def test_colour_changes_no_word() -> None:
    plain = plan_text(FULL, stack=STACK, region=REGION, record=RECORD)
    coloured = plan_text(FULL, stack=STACK, region=REGION, record=RECORD, paint=Paint(on=True))
    assert coloured != plain
    for code in ("32", "33", "31", "36", "1", "2", "0"):
        coloured = coloured.replace(f"\x1b[{code}m", "")
    assert coloured == plain


def test_neither_text_nor_document_holds_a_secret() -> None:
    shown = plan_text(FULL, stack=STACK, region=REGION) + str(plan_document(FULL, stack=STACK, region=REGION))
    assert "geheim" not in shown
    assert "DbPassword" in shown


def test_the_document_has_every_change_and_no_kept_resource() -> None:
    document = plan_document(FULL, stack=STACK, region=REGION, record=RECORD)
    resources: Any = document["resources"]
    by_name = {each["logicalId"]: each for each in resources}
    assert "Keep" not in by_name
    assert by_name["Attach"]["changes"] == [
        {"path": "VpcId", "old": "vpc-1", "newIsKnownAfterApply": True, "effect": "may replace", "cause": "Vpc"}
    ]
    assert by_name["Orders"]["changes"][1] == {"path": "Tags.Env", "new": "prod", "effect": "update"}
    assert by_name["New"]["route"] == "cc-api"
    assert document["parameters"] == [{"name": "Size", "old": "3", "new": "5"}]
    assert document["outputs"] == [
        {"name": "Url", "old": "w", "new": "x"},
        {"name": "Arn", "newIsKnownAfterApply": True},
        {"name": "Gone", "old": "z"},
    ]
    assert document["counts"] == {
        "create": 1,
        "delete": 1,
        "keep": 1,
        "record only": 1,
        "replace": 3,
        "retain": 1,
        "update": 1,
    }


@pytest.mark.parametrize(
    ("own", "tags_changed", "keeps", "line"),
    [
        ({"team": "core"}, True, False, "  tags: team=pay → team=core"),
        ({}, True, False, "  tags: team=pay → (none)"),
        ({"team": "pay"}, False, True, "  tags kept from the last deploy: team=pay"),
    ],
)
def test_tags_that_change_or_are_kept_are_shown(
    own: dict[str, str], tags_changed: bool, keeps: bool, line: str
) -> None:
    record = StateRecord(STACK, REGION, tags={"team": "pay"})
    some = plan(
        change("New", "AWS::SQS::Queue", Action.CREATE), own_tags=own, tags_changed=tags_changed, keeps_tags=keeps
    )
    assert line in plan_text(some, stack=STACK, region=REGION, record=record).splitlines()


def test_only_stateful_resources_that_lose_their_data_are_risky() -> None:
    assert [each.logical_id for each in risky(FULL)] == ["Orders"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ABSENT, "(absent)"),
        (UNKNOWN, "(known after apply)"),
        ("a\nb", '"a\\nb"'),
        ({"A": [1, UNKNOWN]}, '{"A": [1, "(known after apply)"]}'),
        ("\x1b[2J", '"\\u001b[2J"'),
    ],
)
def test_values_are_shown_on_one_line(value: object, text: str) -> None:
    assert value_text(value) == text


def test_a_long_value_is_cut() -> None:
    assert len(value_text("x" * 1000)) == 160
