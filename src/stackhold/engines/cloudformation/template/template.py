"""A template as it was read, before anything is worked out: its file, its tree, its sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackhold.engines.cloudformation.template.nodes import EMPTY, MapNode, Node, Place
from stackhold.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Template:
    """One template whose every part is supported; made by `parse_text` and `parse_template` only."""

    file: str
    root: MapNode
    warnings: tuple[str, ...] = ()

    def section(self, name: str) -> MapNode:
        """A top-level section, empty when absent. Raises `TemplateError` when it is no map."""
        node = self.root.entries.get(name, EMPTY)
        if not isinstance(node, MapNode):
            raise self.error(f"{name} must be a map", node.place)
        return node

    def error(self, reason: str, place: Place, *, logical_id: str = "", hint: str = "") -> TemplateError:
        """What is wrong, with where."""
        return TemplateError(
            reason, file=self.file, line=place.line, column=place.column, logical_id=logical_id, hint=hint
        )


def single_key(node: Node, keys: Mapping[str, object] | frozenset[str]) -> str | None:
    """The function that a map stands for, if its only key is one of `keys`."""
    if isinstance(node, MapNode) and len(node.entries) == 1:
        (key,) = node.entries
        return key if key in keys else None
    return None
