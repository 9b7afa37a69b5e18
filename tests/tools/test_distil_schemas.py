from __future__ import annotations

import importlib.util
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackhold.engines.cloudformation import schema
from stackhold.model.ids import TypeName

if TYPE_CHECKING:
    from types import ModuleType

TOOL = Path(__file__).parents[2] / "tools" / "distil_schemas.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("distil_schemas", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["distil_schemas"] = module
    spec.loader.exec_module(module)
    return module


def test_the_packaged_schemas_are_what_cfn_lint_says_today(tool: ModuleType) -> None:
    fresh = tool.distil_all()
    assert schema.schema_version() == metadata.version("cfn-lint"), "run `make schemas`"
    assert list(schema.schema_types()) == list(fresh)
    differing = [name for name in fresh if schema.raw_entry(TypeName(name)) != fresh[name]]
    assert differing == [], "run `make schemas`"


def test_the_same_schemas_give_the_same_bytes(tool: ModuleType) -> None:
    few = {name: schema.raw_entry(TypeName(name)) for name in ("AWS::S3::Bucket", "AWS::SNS::Topic")}
    assert tool.encode(few, "1.0") == tool.encode(few, "1.0")


def test_the_packaged_file_is_small(tool: ModuleType) -> None:
    assert tool.TARGET.stat().st_size < 600_000


def test_alternatives_of_an_object_are_its_members(tool: ModuleType) -> None:
    made = tool.distil(
        {
            "typeName": "A::B::C",
            "additionalProperties": False,
            "properties": {
                "Source": {
                    "type": "object",
                    "oneOf": [
                        {"properties": {"Bucket": {"type": "string"}}, "additionalProperties": False},
                        {"properties": {"Port": {"type": "integer"}}, "additionalProperties": False},
                    ],
                }
            },
        }
    )
    assert made["properties"] == {"Source": {"p": {"Bucket": "s", "Port": "i"}}}


def test_a_definition_that_contains_itself_ends(tool: ModuleType) -> None:
    made = tool.distil(
        {
            "typeName": "A::B::C",
            "additionalProperties": False,
            "properties": {"Rule": {"$ref": "#/definitions/Rule"}},
            "definitions": {
                "Rule": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"Not": {"$ref": "#/definitions/Rule"}, "Count": {"type": "integer", "default": 3}},
                }
            },
        }
    )
    assert made["definitions"] == {"Rule": {"p": {"Count": "i", "Not": "#Rule"}}}
    assert made["defaults"] == {"Rule/Count": 3}
