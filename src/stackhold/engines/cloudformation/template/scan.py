"""Whether every function and every name in a template is one that we know, taken branch or not.

Nothing is worked out here: a template that uses a part of the language that is not supported, a dynamic
reference, or a name that stands nowhere is refused as a whole, before a parameter is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from stackhold.engines.cloudformation.template.language import (
    CONDITION_FUNCTIONS,
    DYNAMIC_REFERENCE,
    METADATA_CONDITION,
    METADATA_TYPE,
    NOT_IN_CONDITIONS,
    PSEUDO_PARAMETERS,
    REFUSED_FUNCTIONS,
    VALUE_FUNCTIONS,
    is_function,
)
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, Place, ScalarNode, kind
from stackhold.engines.cloudformation.template.structure import body, label
from stackhold.engines.cloudformation.template.sub_text import SubName, sub_parts

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.template import Template


def check_language(template: Template) -> None:
    """Raise `TemplateError` for the first function or name that cannot be used."""
    for name, node in template.section("Conditions").entries.items():
        if name != METADATA_CONDITION:
            _Scan(template, label("Conditions", name), in_condition=True).walk(node)
    for name in template.section("Resources").entries:
        resource = body(template, "Resources", name)
        kind_node = resource.entries["Type"]
        if isinstance(kind_node, ScalarNode) and kind_node.text == METADATA_TYPE:
            continue
        for part in ("Properties", "Metadata"):
            if part in resource.entries:
                _Scan(template, name).walk(resource.entries[part])
    for name in template.section("Outputs").entries:
        output = body(template, "Outputs", name)
        for part in ("Value", "Export"):
            if part in output.entries:
                _Scan(template, label("Outputs", name)).walk(output.entries[part])


class _Scan:
    """One entry of a section: its names are looked up in the template's sections."""

    def __init__(self, template: Template, logical_id: str, *, in_condition: bool = False) -> None:
        self._template = template
        self._logical_id = logical_id
        self._in_condition = in_condition
        self._parameters = template.section("Parameters").entries
        self._resources = template.section("Resources").entries

    def walk(self, node: Node) -> None:
        if isinstance(node, ScalarNode):
            if DYNAMIC_REFERENCE in node.text:
                self._fail("dynamic references ({{resolve:…}}) are not supported", node.place)
        elif isinstance(node, ListNode):
            for item in node.items:
                self.walk(item)
        else:
            self._map(node)

    def _map(self, node: MapNode) -> None:
        functions = [key for key in node.entries if is_function(key)]
        if self._in_condition and "Condition" in node.entries:
            functions.append("Condition")
        if functions:
            self._function(functions[0], node)
        for argument in node.entries.values():
            self.walk(argument)

    def _function(self, name: str, node: MapNode) -> None:
        place = node.keys.get(name, node.place)
        if name in REFUSED_FUNCTIONS or name.startswith("Fn::ForEach"):
            self._fail(f"{name} is not supported", place)
        if name not in VALUE_FUNCTIONS and name not in CONDITION_FUNCTIONS:
            known = VALUE_FUNCTIONS | CONDITION_FUNCTIONS
            self._fail(f"unknown intrinsic function {name}", place, hint=did_you_mean(name, known))
        if len(node.entries) > 1:
            self._fail(f"{name} must be the only key of its map", place)
        if not self._in_condition and name in CONDITION_FUNCTIONS:
            self._fail(f"{name} may stand only under Conditions", place)
        if self._in_condition and name in NOT_IN_CONDITIONS:
            self._fail(f"{name} may not stand under Conditions", place)
        argument = node.entries[name]
        if name == "Ref":
            self._ref(argument)
        elif name == "Fn::GetAtt":
            self._get_att(argument)
        elif name == "Fn::Sub":
            self._sub(argument)
        elif name == "Fn::If":
            self._if(argument)

    def _ref(self, argument: Node) -> None:
        if not isinstance(argument, ScalarNode):
            self._fail(f"Ref takes a literal name, not {kind(argument)}", argument.place)
        self._known(argument.name, argument.place, function="Ref")

    def _get_att(self, argument: Node) -> None:
        target = argument
        if isinstance(argument, ListNode) and argument.items:
            target = argument.items[0]
        if not isinstance(target, ScalarNode):
            self._fail(f"Fn::GetAtt takes a literal logical id, not {kind(target)}", target.place)
        name = target.name.split(".", 1)[0] if target is argument else target.name
        self._known_resource(name, target.place, function="Fn::GetAtt")

    def _sub(self, argument: Node) -> None:
        text, own = argument, frozenset[str]()
        if isinstance(argument, ListNode) and len(argument.items) == 2:
            text, names = argument.items
            own = frozenset(names.entries) if isinstance(names, MapNode) else own
        if not isinstance(text, ScalarNode):
            return
        try:
            parts = sub_parts(text.text)
        except ValueError as error:
            self._fail(
                f"Fn::Sub: {error} is no name: letters, digits, '_', '.' and ':' only; write ${{!…}} for a literal",
                text.place,
            )
        for part in parts:
            if not isinstance(part, SubName) or part.name in own:
                continue
            if "." in part.name:
                self._known_resource(part.name.split(".", 1)[0], text.place, function="Fn::Sub")
            else:
                self._known(part.name, text.place, function="Fn::Sub")

    def _if(self, argument: Node) -> None:
        if not isinstance(argument, ListNode) or len(argument.items) != 3:
            self._fail("Fn::If takes a condition's name and two values", argument.place)
        name = argument.items[0]
        if not isinstance(name, ScalarNode):
            self._fail(f"Fn::If takes the literal name of a condition, not {kind(name)}", name.place)
        conditions = self._template.section("Conditions").entries
        if name.name not in conditions:
            self._unknown("condition", name.name, list(conditions), name.place, function="Fn::If")

    def _known(self, name: str, place: Place, *, function: str) -> None:
        if name in PSEUDO_PARAMETERS or name in self._parameters:
            return
        if not self._in_condition:
            self._known_resource(name, place, function=function, is_attribute=False)
        elif name in self._resources:
            self._fail(f"{function}: a condition cannot depend on the resource {name}", place)
        else:
            self._unknown("parameter", name, [*self._parameters, *PSEUDO_PARAMETERS], place, function=function)

    def _known_resource(self, name: str, place: Place, *, function: str, is_attribute: bool = True) -> None:
        if self._in_condition:
            self._fail(f"{function}: a condition cannot depend on a resource", place)
        if name not in self._resources:
            known = [*self._resources] if is_attribute else [*self._resources, *self._parameters, *PSEUDO_PARAMETERS]
            noun = "resource" if is_attribute else "resource or parameter"
            self._unknown(noun, name, known, place, function=function)

    def _unknown(self, noun: str, name: str, known: list[str], place: Place, *, function: str) -> NoReturn:
        raise self._template.error(
            f"{function}: there is no {noun} {name!r}",
            place,
            logical_id=self._logical_id,
            hint=did_you_mean(name, known),
        )

    def _fail(self, message: str, place: Place, *, hint: str = "") -> NoReturn:
        raise self._template.error(message, place, logical_id=self._logical_id, hint=hint)
