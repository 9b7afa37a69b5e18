from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.diff import diff_properties
from stackhold.engines.cloudformation.plan import ABSENT, Effect
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler
from stackhold.engines.cloudformation.values import UNKNOWN
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.model.record import ResourceRecord

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.values import Props

QUEUE = TypeName("AWS::SQS::Queue")
POLICY = TypeName("AWS::SQS::QueuePolicy")
TABLE = TypeName("AWS::DynamoDB::Table")
RULE = TypeName("AWS::Events::Rule")
FUNCTION = TypeName("AWS::Lambda::Function")
BUCKET = TypeName("AWS::S3::Bucket")


class TableHandler(Handler):
    """Answers what it is told to."""

    type = TABLE
    properties: ClassVar[frozenset[str]] = frozenset()
    found_by = FoundBy.NAME

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        assert changed == {"KeySchema"}
        return self.answer


def changed(type_name: TypeName, old: dict[str, Any], new: dict[str, Any], **how: Any) -> dict[str, Effect]:
    return {change.path: change.effect for change in diff_properties(type_name, old, new, **how)}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"PolicyDocument": {"Version": "2012-10-17", "Statement": list(statements)}, "Queues": ["q"]}


def test_a_plain_property_is_changed_in_place() -> None:
    assert changed(QUEUE, {"VisibilityTimeout": 30}, {"VisibilityTimeout": 60}) == {"VisibilityTimeout": Effect.UPDATE}


def test_text_and_number_of_a_record_are_the_same() -> None:
    assert changed(QUEUE, {"VisibilityTimeout": "60"}, {"VisibilityTimeout": 60}) == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [({}, {"FifoQueue": True}), ({"FifoQueue": True}, {}), ({"QueueName": "a"}, {"QueueName": "b"})],
)
def test_a_create_only_property_added_removed_or_changed_replaces(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert set(changed(QUEUE, old, new).values()) == {Effect.REPLACE}


def test_a_create_only_property_that_is_not_known_may_replace() -> None:
    assert changed(QUEUE, {"QueueName": "a"}, {"QueueName": UNKNOWN}) == {"QueueName": Effect.MAY_REPLACE}


def test_another_property_that_is_not_known_is_changed_in_place() -> None:
    new = {"Targets": [{"Arn": UNKNOWN, "Id": "a"}]}
    assert changed(RULE, {"Targets": [{"Arn": "x", "Id": "a"}]}, new) == {"Targets": Effect.UPDATE}


def test_absent_empty_list_and_empty_text_are_three_things() -> None:
    assert changed(RULE, {}, {"Targets": []}) == {"Targets": Effect.UPDATE}
    assert changed(RULE, {"Targets": []}, {}) == {"Targets": Effect.UPDATE}
    assert changed(RULE, {}, {"Description": ""}) == {"Description": Effect.UPDATE}


def test_an_absent_side_is_marked() -> None:
    (change,) = diff_properties(QUEUE, {}, {"DelaySeconds": 3})
    assert change.old is ABSENT
    assert change.new == 3


def test_naming_the_name_that_aws_has_is_no_change() -> None:
    recorded = ResourceRecord(PhysicalId("https://sqs/1/made-up"), QUEUE, {}, {"QueueName": "made-up"})
    assert changed(QUEUE, {}, {"QueueName": "made-up"}, recorded=recorded) == {}
    assert changed(QUEUE, {}, {"QueueName": "other"}, recorded=recorded) == {"QueueName": Effect.REPLACE}


def test_naming_the_physical_id_or_the_baselines_name_is_no_change() -> None:
    recorded = ResourceRecord(PhysicalId("made-up"), BUCKET, {})
    assert changed(BUCKET, {}, {"BucketName": "made-up"}, recorded=recorded) == {}
    recorded = ResourceRecord(PhysicalId("x"), BUCKET, {}, observed={"BucketName": "made-up"})
    assert changed(BUCKET, {}, {"BucketName": "made-up"}, recorded=recorded) == {}


@pytest.mark.parametrize(
    ("answer", "effect"), [(True, Effect.REPLACE), (False, Effect.UPDATE), (None, Effect.MAY_REPLACE)]
)
def test_the_native_handler_decides_what_the_schema_leaves_open(answer: bool | None, effect: Effect) -> None:
    old = {"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}
    new = {"KeySchema": [{"AttributeName": "b", "KeyType": "HASH"}]}
    assert set(changed(TABLE, old, new, handler=TableHandler(answer)).values()) == {effect}


def test_without_a_native_handler_what_is_left_open_may_replace() -> None:
    old = {"KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}
    new = {"KeySchema": [{"AttributeName": "b", "KeyType": "HASH"}]}
    assert changed(TABLE, old, new) == {"KeySchema.0.AttributeName": Effect.MAY_REPLACE}


def test_a_type_that_cannot_be_updated_is_always_replaced() -> None:
    configuration = TypeName("AWS::Glue::SecurityConfiguration")
    old = {"Name": "n", "EncryptionConfiguration": {}}
    new = {"Name": "n", "EncryptionConfiguration": {"S3Encryptions": []}}
    assert set(changed(configuration, old, new).values()) == {Effect.REPLACE}


def test_a_nested_create_only_place_replaces_only_when_it_is_the_one_that_changes() -> None:
    plan = TypeName("AWS::EC2::TransitGatewayConnectPeer")
    place = "ConnectPeerConfiguration"
    old = {place: {"BgpConfigurations": [{"PeerAsn": 1, "TransitGatewayAddress": "a"}], "PeerAddress": "p"}}
    new = {place: {"BgpConfigurations": [{"PeerAsn": 2, "TransitGatewayAddress": "a"}], "PeerAddress": "p"}}
    assert set(changed(plan, old, new).values()) == {Effect.REPLACE}


def test_a_member_beside_a_nested_create_only_place_is_changed_in_place() -> None:
    domain = TypeName("AWS::MSK::Replicator")
    item = {"SourceKafkaClusterArn": "s", "TargetKafkaClusterArn": "t", "TargetCompressionType": "NONE"}
    topics = {"TopicReplication": {"TopicsToReplicate": ["a"]}}
    more = {"TopicReplication": {"TopicsToReplicate": ["a", "b"]}}
    old, new = {"ReplicationInfoList": [{**item, **topics}]}, {"ReplicationInfoList": [{**item, **more}]}
    assert set(changed(domain, old, new).values()) == {Effect.UPDATE}


def test_tags_are_a_map_without_aws_and_ownership_tags() -> None:
    old = {"Tags": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}, {"Key": "aws:x", "Value": "y"}]}
    new = {"Tags": [{"Key": "b", "Value": "2"}, {"Key": "a", "Value": "1"}]}
    assert changed(QUEUE, old, new) == {}
    new["Tags"][1]["Value"] = "3"
    assert changed(QUEUE, old, new) == {"Tags.a": Effect.UPDATE}
    old["Tags"].append({"Key": "stackhold:run", "Value": "r"})
    assert changed(QUEUE, old, new) == {"Tags.a": Effect.UPDATE}


def test_a_list_whose_order_means_nothing_is_a_multiset() -> None:
    one, other = {"AttributeName": "a", "AttributeType": "S"}, {"AttributeName": "b", "AttributeType": "S"}
    assert changed(FUNCTION, {"Layers": ["a", "b"]}, {"Layers": ["b", "a"]}) != {}
    group = TypeName("AWS::EC2::SecurityGroup")
    rule, more = {"IpProtocol": "tcp", "FromPort": 1}, {"IpProtocol": "tcp", "FromPort": 2}
    assert changed(group, {"SecurityGroupIngress": [rule, more]}, {"SecurityGroupIngress": [more, rule]}) == {}
    assert changed(group, {"SecurityGroupIngress": [rule, rule]}, {"SecurityGroupIngress": [rule]}) != {}
    assert one != other


def test_a_policy_means_the_same_whichever_way_it_is_written() -> None:
    old = policy({"Action": ["sqs:B", "sqs:A"], "Resource": ["*"], "Principal": {"AWS": ["1", "2"]}}, {"Action": "x"})
    new = policy({"Action": ["x"]}, {"Principal": {"AWS": ["2", "1"]}, "Resource": "*", "Action": ["sqs:A", "sqs:B"]})
    assert changed(POLICY, old, new) == {}


def test_a_document_as_text_means_what_it_says() -> None:
    text = '{"Statement": {"Action": "sqs:A"}, "Version": "2012-10-17"}'
    assert changed(POLICY, {**policy(), "PolicyDocument": text}, policy({"Action": ["sqs:A"]})) == {}


def test_a_changed_statement_is_a_change_in_place() -> None:
    assert changed(POLICY, policy({"Action": "a"}), policy({"Action": "b"})) == {
        "PolicyDocument.Statement.0.Action.0": Effect.UPDATE
    }


def test_a_document_with_an_unknown_part_shows_only_that_part() -> None:
    old, new = policy({"Action": "a", "Resource": "x"}), policy({"Action": "a", "Resource": UNKNOWN})
    assert changed(POLICY, old, new) == {"PolicyDocument.Statement.0.Resource": Effect.UPDATE}


def test_nested_values_are_named_by_their_path() -> None:
    old = {"Environment": {"Variables": {"A": "1", "B": "2"}}}
    new = {"Environment": {"Variables": {"A": "1", "B": "3", "C": "4"}}}
    assert set(changed(FUNCTION, old, new)) == {"Environment.Variables.B", "Environment.Variables.C"}


def test_true_is_not_one() -> None:
    custom = TypeName("Custom::Thing")
    assert changed(custom, {"A": True}, {"A": 1}) == {"A": Effect.UPDATE}
    assert changed(custom, {"A": 1.0}, {"A": 1}) == {}


scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
trees = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_size=4,
)


@given(properties=trees, type_name=st.sampled_from([TypeName("Custom::Thing"), FUNCTION, POLICY, QUEUE]))
def test_nothing_differs_from_itself(properties: dict[str, Any], type_name: TypeName) -> None:
    assert diff_properties(type_name, properties, properties) == ()


@given(old=trees, new=trees)
def test_what_differs_differs_both_ways(old: dict[str, Any], new: dict[str, Any]) -> None:
    custom = TypeName("Custom::Thing")
    there = {change.path for change in diff_properties(custom, old, new)}
    back = {change.path for change in diff_properties(custom, new, old)}
    assert there == back
