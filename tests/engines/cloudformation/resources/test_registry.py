"""The table of native handlers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stackhold.engines.cloudformation.resources.handler import Handler
from stackhold.engines.cloudformation.resources.registry import handler_for, native_types
from stackhold.engines.cloudformation.schema import schema_for
from stackhold.model.ids import TypeName


@pytest.mark.parametrize("type_name", native_types())
def test_a_handler_serves_the_type_it_is_named_for(type_name: TypeName) -> None:
    handler = handler_for(type_name)
    assert handler is not None
    assert handler.type == type_name
    assert handler_for(type_name) is handler


@pytest.mark.parametrize("type_name", native_types())
def test_a_handler_carries_out_all_four_operations_itself(type_name: TypeName) -> None:
    handler = handler_for(type_name)
    assert handler is not None
    for operation in ("create", "read", "update", "delete"):
        assert getattr(type(handler), operation) is not getattr(Handler, operation), operation


@pytest.mark.parametrize("type_name", native_types())
def test_a_handler_sends_only_properties_that_the_schema_has(type_name: TypeName) -> None:
    handler, schema = handler_for(type_name), schema_for(type_name)
    assert handler is not None
    assert schema is not None
    known = set(schema.properties.names)
    assert handler.properties <= known
    assert set(handler.defaults) <= handler.properties
    assert handler.write_only <= handler.properties
    if handler.name_rule is not None:
        assert handler.name_rule.property in known


def test_a_type_without_a_handler_gives_none() -> None:
    assert handler_for(TypeName("AWS::Glue::Crawler")) is None


def test_one_handler_is_loaded_without_the_other_services_files() -> None:
    script = (
        "import sys\n"
        "from stackhold.engines.cloudformation.resources.registry import handler_for\n"
        "handler_for('AWS::SQS::Queue')\n"
        "print(sorted(name for name in sys.modules if name.endswith(('.s3', '.iam', '.dynamodb', 'botocore'))))\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
