"""The `Conditions` section: true or false for each name, from parameters and mappings alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.template.functions import Evaluator, Names
from stackhold.engines.cloudformation.template.language import CONDITION_FUNCTIONS, METADATA_CONDITION
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, kind
from stackhold.engines.cloudformation.template.structure import label
from stackhold.engines.cloudformation.template.template import single_key

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.template import Template

_MOST: Final = 10


class Conditions:
    """Works out each condition once, when it is first asked for."""

    def __init__(self, template: Template, names: Names) -> None:
        self._template = template
        self._nodes = template.section("Conditions").entries
        self._names = replace(names, resources={})
        self._known: dict[str, bool] = {}
        self._asking: list[str] = []

    def check_all(self) -> None:
        """Work out every condition, used or not. Raises `TemplateError`. That of CDK's own metadata only on demand."""
        for name in self._nodes:
            if name != METADATA_CONDITION:
                self.holds(name)

    def holds(self, name: str, *, asked_by: str = "", node: Node | None = None) -> bool:
        """Whether a condition is true. Raises `TemplateError`, also when there is none of that name, or a cycle."""
        if name in self._known:
            return self._known[name]
        if name not in self._nodes:
            place = (node or self._template.root).place
            hint = did_you_mean(name, self._nodes)
            raise self._template.error(f"there is no condition {name!r}", place, logical_id=asked_by, hint=hint)
        if name in self._asking:
            way = " -> ".join([*self._asking[self._asking.index(name) :], name])
            place = self._template.section("Conditions").keys[name]
            raise self._template.error(
                f"conditions depend on each other in a circle: {way}", place, logical_id=label("Conditions", name)
            )
        self._asking.append(name)
        self._known[name] = self._holds(self._nodes[name], Evaluator(self._names, label("Conditions", name)))
        self._asking.pop()
        return self._known[name]

    def _holds(self, node: Node, evaluator: Evaluator) -> bool:
        name = single_key(node, CONDITION_FUNCTIONS)
        if name is None or not isinstance(node, MapNode):
            evaluator.fail(
                f"a condition is Fn::And, Fn::Or, Fn::Not, Fn::Equals or Condition, not {kind(node)}", node.place
            )
        argument = node.entries[name]
        if name == "Condition":
            other = evaluator.name(argument, what="Condition")
            return self.holds(other, asked_by=label("Conditions", self._asking[-1]), node=argument)
        if name == "Fn::Equals":
            left, right = evaluator.arguments(argument, 2, what=name)
            return evaluator.known_text(left, what=name) == evaluator.known_text(right, what=name)
        if name == "Fn::Not":
            (operand,) = evaluator.arguments(argument, 1, what=name)
            return not self._holds(operand, evaluator)
        return self._several(name, argument, evaluator)

    def _several(self, name: str, argument: Node, evaluator: Evaluator) -> bool:
        if not isinstance(argument, ListNode) or not 2 <= len(argument.items) <= _MOST:
            evaluator.fail(f"{name} takes a list of 2 to {_MOST} conditions", argument.place)
        held = [self._holds(operand, evaluator) for operand in argument.items]
        return all(held) if name == "Fn::And" else any(held)
