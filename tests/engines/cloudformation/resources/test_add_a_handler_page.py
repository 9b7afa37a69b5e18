"""The handler that the how-to page shows is a working one."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from stackhold.engines.cloudformation.resources.handler import Handler, Lost
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.engines.cloudformation.resources.conftest import World

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "add-a-handler.md"


@pytest.fixture
def shown() -> Iterator[Handler]:
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    module = ModuleType("shown_on_the_page")
    sys.modules[module.__name__] = module
    exec(compile(source, str(PAGE), "exec"), module.__dict__)
    handler = module.EventBus()
    assert isinstance(handler, Handler)
    yield handler
    del sys.modules[module.__name__]


@pytest.mark.emulator
def test_the_handler_on_the_page_makes_reads_changes_and_deletes(world: World, shown: Handler) -> None:
    declared = {"Name": "shop", "Description": "Orders", "Tags": [{"Key": "a", "Value": "b"}]}
    made = shown.create(world.context, world.want(declared, name="shop"))
    seen = shown.read(world.context, made.physical_id, declared)
    assert seen is not None
    assert seen.properties == declared
    assert shown.create(world.context, world.want(declared, name="shop")) == made

    changed = {"Name": "shop", "Description": "All orders", "Tags": [{"Key": "c", "Value": "d"}]}
    shown.update(world.context, made.physical_id, declared, world.want(changed, name="shop"))
    seen = shown.read(world.context, made.physical_id, changed)
    assert seen is not None
    assert seen.properties == changed
    assert seen.attributes == made.attributes

    lost = Lost(LogicalId("Thing"), "shop", is_own_name=False, tags=world.want(declared, name="shop").tags, place={})
    assert shown.find(world.context, lost) == made.physical_id
    assert shown.find(world.context, dataclasses.replace(lost, tags={"stackhold:run": "another"})) is None

    shown.delete(world.context, made.physical_id, changed)
    assert shown.find(world.context, lost) is None
    assert shown.read(world.context, made.physical_id, changed) is None
    shown.delete(world.context, made.physical_id, changed)
