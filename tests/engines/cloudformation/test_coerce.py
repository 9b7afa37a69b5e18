from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.engines.cloudformation.coerce import coerce, coerce_recorded
from stackhold.engines.cloudformation.schema import schema_types
from stackhold.engines.cloudformation.values import UNKNOWN, AttrOf, RefTo
from stackhold.errors import InputError
from stackhold.model.ids import LogicalId, TypeName

QUEUE = TypeName("AWS::SQS::Queue")
FUNCTION = TypeName("AWS::Lambda::Function")
ID = LogicalId("Thing")


def coerced(type_name: TypeName, **properties: Any) -> dict[str, Any]:
    return coerce(type_name, properties, logical_id=ID)


def test_text_becomes_what_the_schema_asks_for() -> None:
    assert coerced(QUEUE, VisibilityTimeout="60", FifoQueue="true", QueueName=7) == {
        "VisibilityTimeout": 60,
        "FifoQueue": True,
        "QueueName": "7",
    }


def test_booleans_become_lower_case_text() -> None:
    assert coerced(QUEUE, QueueName=True) == {"QueueName": "true"}


def test_a_whole_float_is_an_integer() -> None:
    assert coerced(QUEUE, VisibilityTimeout=60.0) == {"VisibilityTimeout": 60}


def test_coercion_reaches_into_objects_lists_and_maps() -> None:
    made = coerced(
        FUNCTION,
        Code={"ZipFile": 1},
        Role="r",
        Environment={"Variables": {"PORT": 80, "ON": True}},
        FileSystemConfigs=[],
        EphemeralStorage={"Size": "512"},
    )
    assert made["Environment"] == {"Variables": {"PORT": "80", "ON": "true"}}
    assert made["Code"] == {"ZipFile": "1"}
    assert made["EphemeralStorage"] == {"Size": 512}
    assert made["FileSystemConfigs"] == []


def test_what_is_not_known_yet_passes_through() -> None:
    table = LogicalId("Table")
    properties = {
        "Code": {"ZipFile": RefTo(table)},
        "Role": AttrOf(table, "Arn"),
        "MemorySize": UNKNOWN,
        "Layers": RefTo(table),
        "Environment": {"Variables": UNKNOWN},
    }
    assert coerce(FUNCTION, properties, logical_id=ID) == properties


def test_documents_are_left_alone() -> None:
    document = {"Statement": [{"Sid": 1}]}
    properties = {"PolicyDocument": document, "Queues": ["q"]}
    assert coerce(TypeName("AWS::SQS::QueuePolicy"), properties, logical_id=ID) == properties


@pytest.mark.parametrize(
    ("type_name", "properties", "part"),
    [
        (QUEUE, {"VisibilityTimeOut": 3}, "VisibilityTimeOut is no property of it; did you mean VisibilityTimeout?"),
        (QUEUE, {"VisibilityTimeout": "soon"}, "VisibilityTimeout must be an integer"),
        (QUEUE, {"VisibilityTimeout": True}, "VisibilityTimeout must be an integer"),
        (QUEUE, {"VisibilityTimeout": 1.5}, "VisibilityTimeout must be an integer"),
        (QUEUE, {"FifoQueue": "maybe"}, "FifoQueue must be true or false"),
        (QUEUE, {"QueueName": ["a"]}, "QueueName must be text"),
        (QUEUE, {"Tags": {"Key": "a"}}, "Tags must be a list"),
        (QUEUE, {"Tags": [{"Key": "a", "Value": "b", "Extra": 1}]}, "Tags.0.Extra is no property of it"),
        (QUEUE, {"Arn": "arn:x"}, "Arn is set by AWS and cannot be given"),
        (FUNCTION, {"Code": {}}, "Role is required and missing"),
        (FUNCTION, {"Code": "zip", "Role": "r"}, "Code must be a map"),
    ],
)
def test_what_the_schema_refuses_names_resource_type_and_property(
    type_name: TypeName, properties: dict[str, Any], part: str
) -> None:
    with pytest.raises(InputError) as caught:
        coerce(type_name, properties, logical_id=ID)
    assert caught.value.message.startswith(f"Thing ({type_name}): ")
    assert part in caught.value.message


def test_everything_wrong_with_one_resource_is_one_error() -> None:
    with pytest.raises(InputError, match=r"Nothing is no property.*Code is required.*Role is required.*Arn is set"):
        coerced(FUNCTION, Nothing=1, Arn="x")


def test_a_record_is_coerced_without_complaint() -> None:
    recorded = {"VisibilityTimeout": "60", "Gone": 1, "FifoQueue": "maybe"}
    assert coerce_recorded(QUEUE, recorded) == {"VisibilityTimeout": 60, "Gone": 1, "FifoQueue": "maybe"}


def test_a_type_without_a_schema_is_taken_as_it_is() -> None:
    properties = {"ServiceToken": "arn", "Count": "5"}
    assert coerce(TypeName("Custom::Thing"), properties, logical_id=ID) == properties


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(type_name=st.sampled_from(schema_types()), value=values, data=st.data())
def test_coercing_twice_is_coercing_once(type_name: TypeName, value: Any, data: st.DataObject) -> None:
    from stackhold.engines.cloudformation.schema import schema_for

    schema = schema_for(type_name)
    assert schema is not None
    name = data.draw(st.sampled_from(schema.properties.names))
    once = coerce_recorded(type_name, {name: value})
    assert coerce_recorded(type_name, once) == once


@pytest.mark.parametrize("text", ["٣", "1" * 5000, "9" * 301, "1e999", "٣.5"])
def test_what_only_looks_like_a_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError, match="VisibilityTimeout must be an integer"):
        coerced(QUEUE, VisibilityTimeout=text)
    assert coerce_recorded(QUEUE, {"VisibilityTimeout": text}) == {"VisibilityTimeout": text}
