from __future__ import annotations

import pytest

from stackhold.engines.cloudformation.schema import (
    Kind,
    TypeSchema,
    has_attribute,
    matches,
    schema_for,
    schema_types,
    schema_version,
    touches,
)
from stackhold.model.ids import TypeName


def known(name: str) -> TypeSchema:
    schema = schema_for(TypeName(name))
    assert schema is not None
    return schema


def test_every_type_of_the_region_is_there_and_can_be_read() -> None:
    schemas = [known(name) for name in schema_types()]
    assert len(schemas) == 1854
    assert schema_version() == "1.58.0"
    assert sum(not schema.has_handlers for schema in schemas) == 110
    assert sum(not schema.has_update for schema in schemas) == 173
    assert sum(schema.delete_first for schema in schemas) == 92
    assert sum(bool(schema.conditional) for schema in schemas) == 45
    assert sum(bool(schema.write_only) for schema in schemas) == 507


def test_every_create_only_pointer_names_a_place_in_the_properties() -> None:
    for name in schema_types():
        schema = known(name)
        assert all(schema.shape_at(pointer) is not None for pointer in schema.create_only), name


def test_a_type_without_a_schema_is_none() -> None:
    assert schema_for(TypeName("Custom::Thing")) is None


def test_a_schema_is_read_once() -> None:
    assert schema_for(TypeName("AWS::S3::Bucket")) is schema_for(TypeName("AWS::S3::Bucket"))


def test_a_bucket_knows_what_replaces_it_and_where_its_tags_are() -> None:
    bucket = known("AWS::S3::Bucket")
    assert ("BucketName",) in bucket.create_only
    assert bucket.tag_property == ("Tags",)
    assert bucket.tags_updatable
    assert bucket.primary_id == (("BucketName",),)
    assert bucket.has_handlers
    assert bucket.has_update
    assert not bucket.delete_first


def test_conditional_create_only_is_kept_apart() -> None:
    table = known("AWS::DynamoDB::Table")
    assert table.conditional == (("KeySchema",),)
    assert ("KeySchema",) not in table.create_only
    assert table.required == {"KeySchema"}


def test_some_types_go_before_they_come() -> None:
    assert known("AWS::EC2::SubnetRouteTableAssociation").delete_first


def test_shapes_follow_definitions_lists_and_documents() -> None:
    function = known("AWS::Lambda::Function").properties
    memory = function.member("MemorySize")
    assert memory is not None
    assert memory.kind is Kind.INTEGER
    rule = known("AWS::Events::Rule")
    arn = rule.shape_at(("Targets", "0", "Arn"))
    assert arn is not None
    assert arn.kind is Kind.STRING
    policy = known("AWS::SQS::QueuePolicy").shape_at(("PolicyDocument",))
    assert policy is not None
    assert policy.kind is Kind.DOCUMENT
    tags = known("AWS::S3::Bucket").shape_at(("Tags",))
    assert tags is not None
    assert tags.kind is Kind.SET
    variables = known("AWS::Lambda::Function").shape_at(("Environment", "Variables", "TABLE"))
    assert variables is not None
    assert variables.kind is Kind.STRING


def test_an_unknown_place_has_no_shape() -> None:
    assert known("AWS::Lambda::Function").shape_at(("Memory",)) is None
    assert known("AWS::Lambda::Function").shape_at(("Code", "Nothing")) is None


@pytest.mark.parametrize(
    ("name", "attribute", "is_there"),
    [
        ("AWS::SQS::Queue", "Arn", True),
        ("AWS::SQS::Queue", "QueueName", True),
        ("AWS::SQS::Queue", "Nothing", False),
        ("AWS::RDS::DBInstance", "Endpoint.Address", True),
        ("AWS::RDS::DBInstance", "Endpoint.Nothing", False),
        ("AWS::DynamoDB::Table", "StreamArn", True),
        ("AWS::DynamoDB::Table", "BillingMode", False),
        ("AWS::Kinesis::StreamConsumer", "StreamARN", True),
        ("Custom::Thing", "Whatever.It.Says", True),
    ],
)
def test_attributes_are_the_schemas(name: str, attribute: str, is_there: bool) -> None:
    assert has_attribute(TypeName(name), attribute) is is_there


def test_a_native_handler_may_add_attributes() -> None:
    assert has_attribute(TypeName("AWS::DynamoDB::Table"), "TableId", native=frozenset({"TableId"}))


def test_any_item_of_a_pointer_is_any_position_of_a_path() -> None:
    pointer = ("Targets", "*", "Arn")
    assert matches(pointer, ("Targets", "0", "Arn"))
    assert not matches(pointer, ("Targets", "0", "Id"))
    assert not matches(pointer, ("Targets",))
    assert touches(pointer, ("Targets",))
    assert touches(pointer, ("Targets", "3"))
    assert touches(("Code",), ("Code", "ZipFile"))
    assert not touches(pointer, ("Targets", "0", "Id"))


def test_whether_a_tag_needs_a_value_is_the_types_own_rule() -> None:
    queue, function = (schema_for(TypeName(name)) for name in ("AWS::SQS::Queue", "AWS::Lambda::Function"))
    assert queue is not None
    assert queue.tags_need_value
    assert function is not None
    assert not function.tags_need_value
