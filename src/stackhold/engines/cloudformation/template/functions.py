"""The intrinsic functions: a node of the template in, data out, with expressions where a resource is named.

In functions everything is text, numbers as written and booleans in lower case; elsewhere a literal keeps its
kind. What needs no resource is worked out at once, so that a text made of known parts is a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

from stackhold.engines.cloudformation.schema import schema_for
from stackhold.engines.cloudformation.template.language import VALUE_FUNCTIONS
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, Place, ScalarNode, kind
from stackhold.engines.cloudformation.template.resolve import encode, is_expression, whole_number
from stackhold.engines.cloudformation.template.sub_text import sub_parts
from stackhold.engines.cloudformation.template.template import Template, single_key
from stackhold.engines.cloudformation.values import AttrOf, Base64Of, JoinOf, RefTo, SelectOf, SplitOf
from stackhold.model.ids import LogicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackhold.engines.cloudformation.template.desired import Check
    from stackhold.engines.cloudformation.template.mappings import Table

NO_VALUE: Final = type("NoValue", (), {"__repr__": lambda self: "AWS::NoValue"})()
"""What `AWS::NoValue` gives: its key or list item is left out. Compare with `is`."""


@dataclass(frozen=True, slots=True)
class Names:
    """What the names in a template mean."""

    template: Template
    parameters: Mapping[str, str | list[str]]
    pseudo: Mapping[str, Any]
    mappings: Mapping[str, Table]
    resources: Mapping[str, TypeName]
    """Those that exist."""
    zones: Callable[[str], list[str]]
    """The availability zones of the stack's own region."""
    holds: Callable[[str], bool]
    """Whether a condition is true."""
    check: Check | None = None


class Evaluator:
    """Works out values of one entry of the template, which errors name."""

    def __init__(self, names: Names, logical_id: str) -> None:
        self._names = names
        self._logical_id = logical_id

    def value(self, node: Node) -> Any:
        """What a node comes out as; may be `NO_VALUE`."""
        node = self._chosen(node)
        if isinstance(node, ScalarNode):
            return node.value
        if isinstance(node, ListNode):
            return self._kept(self.value(item) for item in node.items)
        name = single_key(node, VALUE_FUNCTIONS)
        if name is not None:
            return self._call(name, node.entries[name])
        values = {key: self.value(item) for key, item in node.entries.items()}
        return {key: value for key, value in values.items() if value is not NO_VALUE}

    def text(self, node: Node, *, what: str) -> Any:
        """Text, or an expression that gives one."""
        value = self._item(node)
        if value is NO_VALUE:
            self.fail(f"{what}: AWS::NoValue cannot stand here", node.place)
        if isinstance(value, list | dict):
            self.fail(f"{what} must be text, not a {'list' if isinstance(value, list) else 'map'}", node.place)
        return value

    def known_text(self, node: Node, *, what: str) -> str:
        """Text that no resource has part in."""
        value = self.text(node, what=what)
        if not isinstance(value, str):
            self.fail(f"{what} cannot depend on a resource", node.place)
        return value

    def literal(self, node: Node, *, what: str) -> str:
        """Literal text: no function."""
        if not isinstance(node, ScalarNode):
            self.fail(f"{what} must be literal text, not {kind(node)}", node.place)
        return node.text

    def name(self, node: Node, *, what: str) -> str:
        """The literal name of something in the template."""
        if not isinstance(node, ScalarNode):
            self.fail(f"{what} must be a literal name, not {kind(node)}", node.place)
        return node.name

    def arguments(self, node: Node, count: int, *, what: str) -> tuple[Node, ...]:
        """The items of a function's list."""
        if not isinstance(node, ListNode) or len(node.items) != count:
            self.fail(f"{what} takes a list of {count}, not {_count(node)}", node.place)
        return node.items

    def fail(self, message: str, place: Place, *, hint: str = "") -> NoReturn:
        """Raise the `TemplateError` for this entry."""
        raise self._names.template.error(message, place, logical_id=self._logical_id, hint=hint)

    def _chosen(self, node: Node) -> Node:
        """The branch of an `Fn::If` that is taken, however deep they are nested; any other node itself."""
        while isinstance(node, MapNode) and single_key(node, _IF):
            name, then, otherwise = self.arguments(node.entries["Fn::If"], 3, what="Fn::If")
            node = then if self._names.holds(self.name(name, what="Fn::If: the condition")) else otherwise
        return node

    def _item(self, node: Node) -> Any:
        """A value as functions take it: scalars as text."""
        node = self._chosen(node)
        return node.text if isinstance(node, ScalarNode) else self.value(node)

    def _items(self, node: Node, *, what: str) -> Any:
        """A list's items as functions take them, or an expression that gives a list."""
        node = self._chosen(node)
        if isinstance(node, ListNode):
            return self._kept(self._item(item) for item in node.items)
        value = self._item(node)
        if isinstance(value, list) or is_expression(value):
            return value
        self.fail(f"{what} needs a list, not {kind(node)}", node.place)

    @staticmethod
    def _kept(values: Any) -> list[Any]:
        return [value for value in values if value is not NO_VALUE]

    def _call(self, name: str, argument: Node) -> Any:
        match name:
            case "Ref":
                return self._ref(self.name(argument, what="Ref"), argument.place)
            case "Fn::GetAtt":
                return self._get_att(argument)
            case "Fn::Sub":
                return self._sub(argument)
            case "Fn::Join":
                return self._join(argument)
            case "Fn::Select":
                return self._select(argument)
            case "Fn::Split":
                return self._split(argument)
            case _:
                return self._call_rarer(name, argument)

    def _call_rarer(self, name: str, argument: Node) -> Any:
        match name:
            case "Fn::GetAZs":
                return self._get_azs(argument)
            case "Fn::Base64":
                text = self.text(argument, what=name)
                return encode(text) if isinstance(text, str) else Base64Of(text)
            case "Fn::FindInMap":
                return self._find_in_map(argument)
            case _:
                self.fail(f"unknown intrinsic function {name}", argument.place)

    def _ref(self, name: str, place: Place) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in self._names.pseudo:
            return self._names.pseudo[name]
        if name in self._names.parameters:
            value = self._names.parameters[name]
            return list(value) if isinstance(value, list) else value
        return RefTo(self._present(name, place))

    def _get_att(self, argument: Node) -> Any:
        if isinstance(argument, ScalarNode):
            return self._attribute(argument.text, argument.place)
        target, attribute = self.arguments(argument, 2, what="Fn::GetAtt")
        name = self.name(target, what="Fn::GetAtt: the logical id")
        wanted = self.known_text(attribute, what="Fn::GetAtt: the attribute")
        return self._attribute(f"{name}.{wanted}", argument.place)

    def _attribute(self, dotted: str, place: Place) -> AttrOf:
        name, _, attribute = dotted.partition(".")
        if not attribute:
            self.fail(f"Fn::GetAtt takes a logical id and an attribute, not {dotted!r}", place)
        target = self._present(name, place)
        type_name = self._names.resources[target]
        if self._names.check is not None and not self._names.check(type_name, attribute):
            schema = schema_for(type_name)
            hint = did_you_mean(attribute, schema.attributes if schema else ())
            self.fail(f"{type_name} ({target}) has no attribute {attribute!r}", place, hint=hint)
        return AttrOf(target, attribute)

    def _present(self, name: str, place: Place) -> LogicalId:
        if name in self._names.resources:
            return LogicalId(name)
        if name in self._names.template.section("Resources").entries:
            self.fail(f"{name} does not exist under these conditions, and is named here", place)
        self.fail(f"there is no value for {name!r} here", place)

    def _sub(self, argument: Node) -> Any:
        own: dict[str, Any] = {}
        text = argument
        if isinstance(argument, ListNode):
            text, names = self.arguments(argument, 2, what="Fn::Sub")
            if not isinstance(names, MapNode) or single_key(names, VALUE_FUNCTIONS):
                self.fail("Fn::Sub takes a map of names as its second item", names.place)
            own = {name: self.text(item, what=f"Fn::Sub: {name}") for name, item in names.entries.items()}
        literal = self.literal(text, what="Fn::Sub: the text")
        parts = [
            part if isinstance(part, str) else self._substitute(part.name, own, text.place)
            for part in sub_parts(literal)
        ]
        return fold_join("", parts)

    def _substitute(self, name: str, own: Mapping[str, Any], place: Place) -> Any:
        if name in own:
            return own[name]
        value = self._attribute(name, place) if "." in name else self._ref(name, place)
        if value is NO_VALUE:
            self.fail("Fn::Sub: AWS::NoValue cannot stand in text", place)
        if isinstance(value, list):
            self.fail(f"Fn::Sub: {name} is a list, and only text can be inserted", place)
        return value

    def _join(self, argument: Node) -> Any:
        delimiter, items = self.arguments(argument, 2, what="Fn::Join")
        mark = self.literal(delimiter, what="Fn::Join: the delimiter")
        parts = self._items(items, what="Fn::Join")
        if not isinstance(parts, list):
            return JoinOf(mark, parts)
        if any(isinstance(part, list | dict) for part in parts):
            self.fail("Fn::Join: every item must be text, not a list or map", items.place)
        return fold_join(mark, parts)

    def _select(self, argument: Node) -> Any:
        index_node, items_node = self.arguments(argument, 2, what="Fn::Select")
        index = self.text(index_node, what="Fn::Select: the index")
        items = self._items(items_node, what="Fn::Select")
        if is_expression(index):
            return SelectOf(index, items)
        place = whole_number(index)
        if place is None:
            self.fail(f"Fn::Select: the index must be a whole number, not {index!r}", index_node.place)
        if not isinstance(items, list):
            return SelectOf(place, items)
        if place >= len(items):
            self.fail(f"Fn::Select: index {place} is past the end of a list of {len(items)}", argument.place)
        return items[place]

    def _split(self, argument: Node) -> Any:
        delimiter, source = self.arguments(argument, 2, what="Fn::Split")
        mark = self.literal(delimiter, what="Fn::Split: the delimiter")
        if not mark:
            self.fail("Fn::Split: the delimiter is empty", delimiter.place)
        text = self.text(source, what="Fn::Split: the source")
        return text.split(mark) if isinstance(text, str) else SplitOf(mark, text)

    def _get_azs(self, argument: Node) -> list[str]:
        region = self.known_text(argument, what="Fn::GetAZs")
        own = self._names.pseudo["AWS::Region"]
        return self._names.zones(own) if region in ("", own) else []

    def _find_in_map(self, argument: Node) -> Any:
        if isinstance(argument, ListNode) and len(argument.items) == 4:
            self.fail("Fn::FindInMap with DefaultValue is not supported", argument.items[3].place)
        keys = [self._map_key(node) for node in self.arguments(argument, 3, what="Fn::FindInMap")]
        table = self._names.mappings.get(keys[0])
        if table is None:
            hint = did_you_mean(keys[0], self._names.mappings)
            self.fail(f"Fn::FindInMap: there is no mapping {keys[0]!r}", argument.place, hint=hint)
        for known, key in ((table, keys[1]), (table.get(keys[1], {}), keys[2])):
            if key not in known:
                hint = did_you_mean(key, known)
                self.fail(f"Fn::FindInMap: the mapping {keys[0]} has no key {key!r}", argument.place, hint=hint)
        found = table[keys[1]][keys[2]]
        return list(found) if isinstance(found, list) else found

    def _map_key(self, node: Node) -> str:
        if not isinstance(node, ScalarNode) and single_key(node, _MAP_KEY_FUNCTIONS) is None:
            self.fail("Fn::FindInMap: only literals, Ref and Fn::FindInMap can be keys", node.place)
        return self.known_text(node, what="Fn::FindInMap: a key")


_IF: Final = frozenset(("Fn::If",))
_MAP_KEY_FUNCTIONS: Final = frozenset(("Ref", "Fn::FindInMap"))


def fold_join(delimiter: str, parts: list[Any]) -> Any:
    """A join with its known neighbours put together; plain text when everything is known."""
    folded: list[Any] = []
    for part in parts:
        if folded and isinstance(part, str) and isinstance(folded[-1], str):
            folded[-1] = folded[-1] + delimiter + part
        else:
            folded.append(part)
    if not folded:
        return ""
    if len(folded) == 1 and isinstance(folded[0], str):
        return folded[0]
    return JoinOf(delimiter, folded)


def _count(node: Node) -> str:
    return f"one of {len(node.items)}" if isinstance(node, ListNode) else kind(node)
