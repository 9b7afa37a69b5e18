"""What handlers are given when AWS's answers are written down by the test."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.conftest import context_of

from stackhold.engines.cloudformation.resources.handler import Context, Want
from stackhold.model.ids import LogicalId

if TYPE_CHECKING:
    from stackhold.testing.scripted_aws import ScriptedAws


def scripted(aws: ScriptedAws) -> Context:
    """A context whose waits pass at once."""
    return dataclasses.replace(context_of(aws), wait=lambda _: None)


def wanted(properties: dict[str, Any], *, name: str = "fn") -> Want:
    """What the engine would hand to a handler."""
    return Want(
        logical_id=LogicalId("Thing"),
        properties=properties,
        name=name,
        token="0" * 32,
        tags={"stackhold:run": "run-1", "stackhold:logical-id": "Thing"},
    )
