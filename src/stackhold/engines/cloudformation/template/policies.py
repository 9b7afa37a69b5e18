"""What becomes of a resource when it is removed or replaced: the two policies of a template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.template.language import (
    DELETION_POLICIES,
    REPLACE_POLICIES,
    SNAPSHOT_TYPES,
)
from stackhold.engines.cloudformation.template.structure import text_of

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.nodes import MapNode
    from stackhold.engines.cloudformation.template.template import Template


def policy(template: Template, node: MapNode, key: str, logical_id: str, type_name: str) -> str | None:
    """`DeletionPolicy` or `UpdateReplacePolicy` of a resource, None when it has none. Raises `TemplateError`."""
    if key not in node.entries:
        return None
    value = text_of(template, node.entries[key], what=key, logical_id=logical_id)
    known = DELETION_POLICIES if key == "DeletionPolicy" else REPLACE_POLICIES
    if value not in known:
        raise template.error(
            f"{key} must be {', '.join(known[:-1])} or {known[-1]}, not {value!r}",
            node.entries[key].place,
            logical_id=logical_id,
        )
    if value == "Snapshot" and type_name not in SNAPSHOT_TYPES:
        raise template.error(
            f"{key}: there are no snapshots of {type_name}", node.entries[key].place, logical_id=logical_id
        )
    return value
