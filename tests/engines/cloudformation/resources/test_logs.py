"""Log groups: the class, which only a new group can have another of."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engines.cloudformation.resources.scripted import scripted, wanted

from stackhold.engines.cloudformation.resources.logs import LogGroup
from stackhold.errors import ResourceFailed
from stackhold.model.ids import PhysicalId
from stackhold.testing.scripted_aws import ScriptedAws

NAME = PhysicalId("group")
RARE = {"LogGroupClass": "INFREQUENT_ACCESS"}


def cloud(group_class: str) -> ScriptedAws:
    return ScriptedAws({"DescribeLogGroups": [{"logGroups": [{"logGroupName": NAME, "logGroupClass": group_class}]}]})


@pytest.mark.parametrize("old", [{}, {"LogGroupClass": "STANDARD"}])
def test_another_class_is_refused_whether_or_not_the_record_names_the_old_one(old: dict[str, Any]) -> None:
    with pytest.raises(ResourceFailed, match="cannot change its LogGroupClass"):
        LogGroup().update(scripted(cloud("STANDARD")), NAME, old, wanted(RARE, name=NAME))


def test_a_group_that_was_found_again_with_its_class_goes_on() -> None:
    made = LogGroup().update(scripted(cloud("INFREQUENT_ACCESS")), NAME, {}, wanted(RARE, name=NAME))
    assert made.physical_id == NAME
