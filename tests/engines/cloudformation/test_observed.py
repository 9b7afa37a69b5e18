from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stackhold.engines.cloudformation.observed import diff_observed
from stackhold.engines.cloudformation.plan import ABSENT
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler
from stackhold.model.ids import TypeName

QUEUE = TypeName("AWS::SQS::Queue")
FUNCTION = TypeName("AWS::Lambda::Function")
ROLE = TypeName("AWS::IAM::Role")
RULE = TypeName("AWS::Events::Rule")
SUBNET = TypeName("AWS::EC2::Subnet")


class QueueHandler(Handler):
    """Knows a default, and a property that cannot be read."""

    type = QUEUE
    properties: ClassVar[frozenset[str]] = frozenset()
    found_by = FoundBy.NAME
    defaults: ClassVar[dict[str, Any]] = {"DelaySeconds": 0}
    write_only: ClassVar[frozenset[str]] = frozenset({"KmsMasterKeyId"})


def drifted(
    type_name: TypeName,
    declared: dict[str, Any],
    seen: dict[str, Any],
    baseline: dict[str, Any] | None = None,
    handler: Handler | None = None,
) -> set[str]:
    found = diff_observed(type_name, declared, baseline, seen, handler=handler)
    return {difference.path for difference in found.differences}


def trust(*principals: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": list(principals)}}
    return {"AssumeRolePolicyDocument": {"Statement": [statement]}}


def test_a_declared_property_that_aws_has_otherwise_is_drift() -> None:
    (difference,) = diff_observed(QUEUE, {"DelaySeconds": 3}, None, {"DelaySeconds": "4"}).differences
    assert (difference.path, difference.recorded, difference.observed) == ("DelaySeconds", 3, 4)


def test_a_declared_property_that_is_gone_is_drift() -> None:
    (difference,) = diff_observed(QUEUE, {"DelaySeconds": 3}, None, {}).differences
    assert difference.observed is ABSENT


def test_what_aws_adds_is_no_drift_without_a_baseline() -> None:
    assert drifted(QUEUE, {}, {"DelaySeconds": 3, "Arn": "a"}) == set()


def test_a_baseline_that_says_nothing_is_met_by_absence_but_not_by_a_value() -> None:
    nothing = {"RedrivePolicy": {}, "KmsMasterKeyId": "", "DelaySeconds": 0, "SqsManagedSseEnabled": False}
    assert drifted(QUEUE, {}, {}, nothing) == set()
    assert drifted(QUEUE, {}, {"KmsMasterKeyId": "key", "DelaySeconds": 4}, nothing) == {
        "KmsMasterKeyId",
        "DelaySeconds",
    }
    assert drifted(QUEUE, {}, {}, {"DelaySeconds": 4}) == {"DelaySeconds"}


def test_a_property_that_the_template_left_open_is_compared_with_the_baseline() -> None:
    assert drifted(QUEUE, {}, {"DelaySeconds": 3}, {"DelaySeconds": 3}) == set()
    assert drifted(QUEUE, {}, {"DelaySeconds": 4}, {"DelaySeconds": 3}) == {"DelaySeconds"}
    assert drifted(QUEUE, {}, {}, {"DelaySeconds": 3}) == {"DelaySeconds"}


def test_a_default_that_aws_does_not_show_is_no_drift() -> None:
    assert drifted(QUEUE, {"DelaySeconds": 0}, {}, handler=QueueHandler()) == set()


def test_what_cannot_be_read_is_not_compared() -> None:
    found = diff_observed(QUEUE, {"KmsMasterKeyId": "a"}, None, {}, handler=QueueHandler())
    assert found.not_compared == ("KmsMasterKeyId",)
    assert not found.is_drifted


def test_write_only_members_are_not_compared() -> None:
    found = diff_observed(FUNCTION, {"Code": {"ZipFile": "x"}, "Timeout": 3}, None, {"Timeout": 3})
    assert found.not_compared == ("Code.ZipFile",)
    assert not found.is_drifted


def test_members_that_aws_adds_to_an_object_count_only_when_the_baseline_has_them() -> None:
    declared = {"LoggingConfig": {"LogFormat": "JSON"}}
    seen = {"LoggingConfig": {"LogFormat": "JSON", "LogGroup": "/b"}}
    assert drifted(FUNCTION, declared, seen) == set()
    before = {"LoggingConfig": {"LogFormat": "JSON", "LogGroup": "/a"}}
    assert drifted(FUNCTION, declared, seen, before) == {"LoggingConfig.LogGroup"}


def test_a_map_is_declared_as_a_whole() -> None:
    declared = {"Environment": {"Variables": {"A": "1"}}}
    seen = {"Environment": {"Variables": {"A": "1", "B": "2"}}}
    assert drifted(FUNCTION, declared, seen) == {"Environment.Variables.B"}


def test_tags_of_aws_and_of_ours_are_no_drift_and_others_are() -> None:
    declared = {"Tags": [{"Key": "a", "Value": "1"}]}
    ours = [{"Key": "stackhold:run", "Value": "r"}, {"Key": "aws:x", "Value": "y"}, {"Key": "a", "Value": "1"}]
    assert drifted(QUEUE, declared, {"Tags": ours}) == set()
    assert drifted(QUEUE, declared, {"Tags": [*ours, {"Key": "b", "Value": "2"}]}) == {"Tags.b"}
    assert drifted(QUEUE, declared, {"Tags": []}) == {"Tags.a"}


def test_an_account_is_the_root_of_it() -> None:
    assert drifted(ROLE, trust("123456789012"), trust("arn:aws:iam::123456789012:root")) == set()


def test_a_deleted_principal_is_known_by_its_unique_id() -> None:
    role = "arn:aws:iam::123456789012:role/gone"
    assert drifted(ROLE, trust(role), trust("AROAEXAMPLEEXAMPLE12")) == set()
    assert drifted(ROLE, trust(role), trust("arn:aws:iam::123456789012:role/other")) != set()
    assert drifted(ROLE, trust(role), trust("AROAEXAMPLEEXAMPLE12", "arn:aws:iam::1:user/more")) != set()


def test_a_document_that_differs_says_where() -> None:
    seen = trust("x")
    seen["AssumeRolePolicyDocument"]["Version"] = "2012-10-17"
    assert drifted(ROLE, trust("x"), seen) == {"AssumeRolePolicyDocument.Version"}


def test_networks_are_compared_by_their_canonical_form() -> None:
    assert drifted(SUBNET, {"CidrBlock": "10.0.1.5/24"}, {"CidrBlock": "10.0.1.0/24"}) == set()
    assert drifted(SUBNET, {"CidrBlock": "10.0.1.0/24"}, {"CidrBlock": "10.0.2.0/24"}) == {"CidrBlock"}


def test_an_id_is_the_end_of_its_arn() -> None:
    table = TypeName("AWS::DynamoDB::Table")
    arn = "arn:aws:kms:us-east-1:123456789012:key/abc"
    declared, seen = ({"SSESpecification": {"KMSMasterKeyId": key}} for key in ("abc", arn))
    assert drifted(table, declared, seen) == set()


def test_a_value_that_aws_rewrites_in_an_unknown_way_is_not_compared() -> None:
    group = TypeName("AWS::EC2::SecurityGroup")
    declared = {"SecurityGroupEgress": [{"IpProtocol": "6", "CidrIp": "0.0.0.0/0"}]}
    seen = {"SecurityGroupEgress": [{"IpProtocol": "tcp", "CidrIp": "0.0.0.0/0"}]}
    found = diff_observed(group, declared, None, seen)
    assert found.not_compared == ("SecurityGroupEgress.0.IpProtocol",)
    assert not found.is_drifted


def test_items_of_an_unordered_list_find_their_match_in_any_order() -> None:
    group = TypeName("AWS::EC2::SecurityGroup")
    one, other = {"IpProtocol": "tcp", "CidrIp": "10.0.0.0/8"}, {"IpProtocol": "tcp", "CidrIp": "11.0.0.0/8"}
    seen = {"SecurityGroupIngress": [{**other, "Description": "x"}, one]}
    assert drifted(group, {"SecurityGroupIngress": [one, other]}, seen) == set()
    assert drifted(group, {"SecurityGroupIngress": [one, one]}, seen) != set()


def test_a_rewritten_value_in_an_unordered_list_is_compared_with_the_baseline() -> None:
    group = TypeName("AWS::EC2::SecurityGroup")
    declared = {"SecurityGroupEgress": [{"IpProtocol": "6", "CidrIp": "0.0.0.0/0"}]}
    shown = {"SecurityGroupEgress": [{"IpProtocol": "tcp", "CidrIp": "0.0.0.0/0"}]}
    other = {"SecurityGroupEgress": [{"IpProtocol": "udp", "CidrIp": "0.0.0.0/0"}]}
    assert diff_observed(group, declared, shown, shown).not_compared == ()
    assert drifted(group, declared, shown, shown) == set()
    assert drifted(group, declared, other, shown) == {"SecurityGroupEgress"}


@pytest.mark.parametrize("empty", [[], ""])
def test_an_emptiness_that_aws_never_shows_is_no_drift(empty: Any) -> None:
    name = "Targets" if empty == [] else "Description"
    assert drifted(RULE, {name: empty}, {}, {}) == set()


def test_attributes_in_a_baseline_are_not_compared() -> None:
    assert drifted(QUEUE, {}, {}, {"Arn": "a"}) == set()
