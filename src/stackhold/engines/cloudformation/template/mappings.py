"""The `Mappings` section as plain tables: text, or lists of text, under two keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from stackhold.engines.cloudformation.template.language import DYNAMIC_REFERENCE
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, Place, ScalarNode, kind
from stackhold.engines.cloudformation.template.structure import body, label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.template import Template

Table = dict[str, dict[str, str | list[str]]]
_TOP_KEY: Final = re.compile(r"[A-Za-z0-9.-]+")
_SECOND_KEY: Final = re.compile(r"[A-Za-z0-9]+")


def read_mappings(template: Template) -> Mapping[str, Table]:
    """Every mapping by its name. Raises `TemplateError`."""
    return {name: _table(template, name) for name in template.section("Mappings").entries}


def _table(template: Template, name: str) -> Table:
    node = body(template, "Mappings", name)
    table: Table = {}
    for key, row in node.entries.items():
        if not _TOP_KEY.fullmatch(key):
            _fail(template, name, f"{key!r} is no valid key: letters, digits, '.' and '-'", node.keys[key])
        if not isinstance(row, MapNode):
            _fail(template, name, f"{key} must be a map, not {kind(row)}", row.place)
        table[key] = {}
        for second, value in row.entries.items():
            if not _SECOND_KEY.fullmatch(second):
                _fail(template, name, f"{second!r} is no valid key: letters and digits", row.keys[second])
            table[key][second] = _value(template, name, value)
    return table


def _value(template: Template, name: str, node: Node) -> str | list[str]:
    if isinstance(node, ScalarNode):
        return _text(template, name, node)
    if isinstance(node, ListNode):
        return [_text(template, name, item) for item in node.items]
    _fail(template, name, "a value must be text or a list of texts, without functions", node.place)


def _text(template: Template, name: str, node: Node) -> str:
    if not isinstance(node, ScalarNode):
        _fail(template, name, f"a list may hold only texts, not {kind(node)}", node.place)
    if DYNAMIC_REFERENCE in node.text:
        _fail(template, name, "dynamic references ({{resolve:…}}) are not supported", node.place)
    return node.text


def _fail(template: Template, name: str, message: str, place: Place) -> NoReturn:
    raise template.error(message, place, logical_id=label("Mappings", name))
