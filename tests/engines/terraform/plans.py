"""Plans as `show -json` prints them, made by a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stackhold.engines.terraform.planfile import summarize

if TYPE_CHECKING:
    from stackhold.engines.terraform.planfile import PlanSummary

KEY = b"a key of the test"


def change(address: str, *actions: str, **fields: Any) -> dict[str, Any]:
    """A change of one resource."""
    inner = {key: fields.pop(key) for key in ("before", "after", "importing", "replace_paths") if key in fields}
    return {"address": address, "mode": "managed", "change": {"actions": list(actions), **inner}, **fields}


def plan(*changes: dict[str, Any], **fields: Any) -> bytes:
    """A plan of these changes."""
    return json.dumps({"format_version": "1.2", "resource_changes": list(changes), **fields}).encode()


def summed(*changes: dict[str, Any], **fields: Any) -> PlanSummary:
    """Such a plan in short."""
    return summarize(plan(*changes, **fields), key=KEY)
