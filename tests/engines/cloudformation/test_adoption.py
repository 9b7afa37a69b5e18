"""A resource that was found is brought to what the template asks, and replaced only where the template differs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.engines.cloudformation.test_planner import planned, record

from stackhold.engines.cloudformation.adoption import FOUND_AGAIN, compared
from stackhold.engines.cloudformation.places import digest_of
from stackhold.engines.cloudformation.plan import Action, ResourceChange
from stackhold.model.ids import LogicalId, PhysicalId, TypeName
from stackhold.model.record import ResourceRecord

QUEUE = TypeName("AWS::SQS::Queue")
ASKED: dict[str, Any] = {"QueueName": "q", "DelaySeconds": 1}


def found(seen: dict[str, Any], *, digest: str = "") -> ResourceRecord:
    return ResourceRecord(PhysicalId("q"), QUEUE, seen, adopted_as=digest, dependencies=())


def change_of(recorded: ResourceRecord, **asked: Any) -> ResourceChange:
    plan = planned({"Q": {"Type": QUEUE, "Properties": asked}}, record({"Q": recorded}))
    return plan.changes[LogicalId("Q")]


def test_one_that_is_just_as_asked_is_still_updated_once() -> None:
    change = change_of(found(ASKED), **ASKED)
    assert (change.action, change.changes) == (Action.UPDATE, ())
    assert change.warnings == (FOUND_AGAIN,)
    settled = dataclasses.replace(found(ASKED), adopted_as=None)
    assert change_of(settled, **ASKED).action is Action.KEEP


def test_what_only_a_create_sets_and_no_read_shows_counts_as_sent() -> None:
    assert change_of(found({"DelaySeconds": 1}), **ASKED).action is Action.UPDATE
    assert compared(found({"DelaySeconds": 1}), ASKED) == ASKED


def test_a_difference_that_replaces_does_so_when_the_template_was_edited() -> None:
    assert change_of(found({**ASKED, "QueueName": "other"}), **ASKED).action is Action.REPLACE


@pytest.mark.parametrize("spelt", ["Q", ""])
def test_the_very_same_create_is_never_a_reason_to_replace(spelt: str) -> None:
    digest = digest_of(QUEUE, ASKED, {})
    assert change_of(found({**ASKED, "QueueName": spelt}, digest=digest), **ASKED).action is Action.UPDATE
