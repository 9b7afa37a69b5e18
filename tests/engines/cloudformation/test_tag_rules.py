from __future__ import annotations

from typing import Any

import pytest

from stackhold.engines.cloudformation.tag_rules import check_tags, refuse_reserved_keys
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.errors import InputError
from stackhold.model.ids import LogicalId, TypeName

QUEUE, PARAMETER, FUNCTION = "AWS::SQS::Queue", "AWS::SSM::Parameter", "AWS::Lambda::Function"


def check(tags: Any, type_name: str = QUEUE) -> None:
    check_tags(TypeName(type_name), {"Tags": tags}, logical_id=LogicalId("Thing"))


@pytest.mark.parametrize("key", ["aws:x", "AWS:x", "stackhold:stack"])
def test_a_reserved_key_is_refused_wherever_it_is_given(key: str) -> None:
    with pytest.raises(InputError, match=r"--tag: the tag '.*' begins with .*, which is reserved"):
        refuse_reserved_keys({"fine": "1", key: "2"}, given_by="--tag")
    with pytest.raises(InputError, match=r"Tags\.0: the tag"):
        check([{"Key": key, "Value": "1"}])
    with pytest.raises(InputError, match=r"the tag"):
        check({key: "1"}, PARAMETER)


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        ([{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}], r"Tags\.1 has the key 'a' a second time"),
        ([{"Key": "a"}], r"Tags\.0 \(a\) has no Value"),
        ([{"Value": "1"}], r"Tags\.0 has no Key"),
        ([{"Key": "", "Value": "1"}], r"Tags\.0: a tag needs a key"),
    ],
)
def test_tags_that_no_service_takes_are_refused(tags: list[dict[str, str]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        check(tags)


def test_other_tags_pass() -> None:
    check([{"Key": "aws", "Value": ""}, {"Key": "A", "Value": "1"}, {"Key": "a", "Value": UNKNOWN}])
    check([{"Key": UNKNOWN, "Value": "1"}, {"Key": UNKNOWN, "Value": "2"}])
    check(UNKNOWN)
    check({"a": "1"}, PARAMETER)
    check([{"Key": "a"}], FUNCTION)
