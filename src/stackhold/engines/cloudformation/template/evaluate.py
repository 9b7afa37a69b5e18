"""What a template asks for under given inputs: parameters, conditions, resources and outputs, in that order.

Resources whose condition is false are absent; naming one is an error where the name counts. Reads nothing but
what `inputs.facts` tells, and that only where the template needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.template.conditions import Conditions
from stackhold.engines.cloudformation.template.desired import (
    Check,
    DesiredOutput,
    DesiredResource,
    DesiredStack,
    Inputs,
)
from stackhold.engines.cloudformation.template.functions import Evaluator, Names
from stackhold.engines.cloudformation.template.language import (
    DYNAMIC_REFERENCE,
    METADATA_TYPE,
    VALUE_FUNCTIONS,
    refused_type,
)
from stackhold.engines.cloudformation.template.mappings import read_mappings
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Node, kind
from stackhold.engines.cloudformation.template.parameters import effective_parameters
from stackhold.engines.cloudformation.template.policies import policy
from stackhold.engines.cloudformation.template.resolve import is_expression, reference_paths
from stackhold.engines.cloudformation.template.structure import body, label, name_of, text_of
from stackhold.engines.cloudformation.template.template import single_key
from stackhold.engines.cloudformation.values import JoinOf
from stackhold.errors import TemplateError
from stackhold.model.ids import LogicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.template import Template


def evaluate(template: Template, inputs: Inputs, *, check: Check | None = None) -> DesiredStack:
    """Work out a template. Raises `TemplateError`, or what `inputs.facts` raises.

    With `check`, attributes that a type does not have are errors with their line.
    """
    parameters = effective_parameters(template, inputs)
    names = Names(
        template=template,
        parameters=parameters.values,
        pseudo=_pseudo(inputs),
        mappings=read_mappings(template),
        resources={},
        zones=_Zones(template, inputs).of,
        holds=_no_condition,
    )
    conditions = Conditions(template, names)
    conditions.check_all()
    stack = _Stack(template, names, conditions, check)
    resources = {name: stack.resource(name) for name in stack.present}
    outputs = stack.outputs()
    return DesiredStack(
        stack=inputs.stack,
        region=inputs.region,
        resources=resources,
        outputs=outputs,
        parameters=parameters.recorded,
        warnings=(*template.warnings, *stack.warnings),
        file=template.file,
        reused_parameters=parameters.reused,
    )


def check_attributes(desired: DesiredStack, check: Check) -> None:
    """Raise `TemplateError` for the first attribute that its type does not have."""
    for resource in desired.resources.values():
        parts = (("Properties", resource.properties), ("Metadata", resource.metadata))
        for part, value in parts:
            _check_value(desired, check, value, part, line=resource.line, logical_id=resource.logical_id)
    for output in desired.outputs.values():
        _check_value(desired, check, [output.value, output.export], "", logical_id=label("Outputs", output.name))


def _check_value(desired: DesiredStack, check: Check, value: Any, path: str, *, logical_id: str, line: int = 0) -> None:
    for where, target, attribute in reference_paths(value, path):
        type_name = desired.resources[target].type
        if attribute is not None and not check(type_name, attribute):
            raise TemplateError(
                f"{where}: {type_name} ({target}) has no attribute {attribute!r}",
                file=desired.file,
                line=line,
                logical_id=logical_id,
            )


def _no_condition(name: str) -> bool:
    raise AssertionError(f"the condition {name} was asked for inside a condition")


def _pseudo(inputs: Inputs) -> Mapping[str, Any]:
    return {
        "AWS::AccountId": inputs.account,
        "AWS::NotificationARNs": [],
        "AWS::Partition": inputs.partition,
        "AWS::Region": str(inputs.region),
        "AWS::StackId": inputs.stack_id,
        "AWS::StackName": str(inputs.stack),
        "AWS::URLSuffix": inputs.url_suffix,
    }


class _Zones:
    """Availability zones, asked for once and only if a template needs them."""

    def __init__(self, template: Template, inputs: Inputs) -> None:
        self._template = template
        self._facts = inputs.facts
        self._known: dict[str, list[str]] = {}

    def of(self, region: str) -> list[str]:
        if self._facts is None:
            raise TemplateError("Fn::GetAZs: availability zones cannot be asked for here", file=self._template.file)
        if region not in self._known:
            self._known[region] = self._facts.availability_zones(region)
        return list(self._known[region])


class _Stack:
    """One evaluation of a template's resources and outputs; collects warnings."""

    def __init__(self, template: Template, names: Names, conditions: Conditions, check: Check | None) -> None:
        self._template = template
        self._conditions = conditions
        self.warnings: list[str] = []
        section = template.section("Resources")
        self._lines = {name: place.line for name, place in section.keys.items()}
        types = {name: self._type(name) for name in section.entries}
        self.present = [
            LogicalId(name) for name, type_name in types.items() if type_name != METADATA_TYPE and self._exists(name)
        ]
        self._names = Names(
            template=template,
            parameters=names.parameters,
            pseudo=names.pseudo,
            mappings=names.mappings,
            resources={name: types[name] for name in self.present},
            zones=names.zones,
            holds=conditions.holds,
            check=check,
        )

    def resource(self, name: LogicalId) -> DesiredResource:
        node = body(self._template, "Resources", name)
        type_name = self._names.resources[name]
        reason = refused_type(type_name)
        if reason:
            raise self._template.error(reason, node.keys["Type"], logical_id=name)
        if "UpdatePolicy" in node.entries:
            self._warn(name, "UpdatePolicy is ignored")
        evaluator = Evaluator(self._names, name)
        metadata = node.entries.get("Metadata")
        resource = DesiredResource(
            logical_id=name,
            type=type_name,
            properties=self._properties(name, node.entries.get("Properties"), evaluator),
            depends_on=self._depends_on(name, node.entries.get("DependsOn")),
            deletion_policy=policy(self._template, node, "DeletionPolicy", name, type_name),
            update_replace_policy=policy(self._template, node, "UpdateReplacePolicy", name, type_name),
            metadata=None if metadata is None else evaluator.value(metadata),
            line=self._lines[name],
            property_lines=_lines_of(node.entries.get("Properties")),
        )
        self._refuse_secrets([resource.properties, resource.metadata], node, name)
        return resource

    def outputs(self) -> dict[str, DesiredOutput]:
        found: dict[str, DesiredOutput] = {}
        exported: dict[str, str] = {}
        for name in self._template.section("Outputs").entries:
            node = body(self._template, "Outputs", name)
            logical_id = label("Outputs", name)
            if not self._holds(node, logical_id):
                continue
            evaluator = Evaluator(self._names, logical_id)
            value = _as_text(evaluator.text(node.entries["Value"], what="Value"))
            export = node.entries.get("Export")
            exported_as = None
            if isinstance(export, MapNode):
                exported_as = _as_text(evaluator.text(export.entries["Name"], what="Export"))
            if isinstance(exported_as, str):
                if not exported_as.strip():
                    evaluator.fail("the export name is empty", node.place)
                if exported_as in exported:
                    evaluator.fail(f"{exported[exported_as]} exports {exported_as!r} too", node.place)
                exported[exported_as] = name
            self._refuse_secrets([value, exported_as], node, logical_id)
            found[name] = DesiredOutput(name=name, value=value, export=exported_as)
        return found

    def _type(self, name: str) -> TypeName:
        node = body(self._template, "Resources", name)
        return TypeName(text_of(self._template, node.entries["Type"], what="Type", logical_id=name))

    def _exists(self, name: str) -> bool:
        return self._holds(body(self._template, "Resources", name), name)

    def _holds(self, node: MapNode, logical_id: str) -> bool:
        condition = node.entries.get("Condition")
        if condition is None:
            return True
        wanted = name_of(self._template, condition, what="Condition", logical_id=logical_id)
        return self._conditions.holds(wanted, asked_by=logical_id, node=condition)

    def _properties(self, name: str, node: Node | None, evaluator: Evaluator) -> dict[str, Any]:
        if node is None:
            return {}
        if not isinstance(node, MapNode) or single_key(node, VALUE_FUNCTIONS):
            shown = "a function" if isinstance(node, MapNode) else kind(node)
            raise self._template.error(f"Properties must be a map, not {shown}", node.place, logical_id=name)
        properties: dict[str, Any] = evaluator.value(node)
        return properties

    def _depends_on(self, name: str, node: Node | None) -> tuple[LogicalId, ...]:
        if node is None:
            return ()
        items = node.items if isinstance(node, ListNode) else (node,)
        wanted: dict[LogicalId, None] = {}
        for item in items:
            target = name_of(self._template, item, what="DependsOn", logical_id=name)
            known = self._template.section("Resources").entries
            if target not in known:
                reason, hint = f"DependsOn: there is no resource {target!r}", did_you_mean(target, known)
                raise self._template.error(reason, item.place, logical_id=name, hint=hint)
            if target in self._names.resources:
                wanted[LogicalId(target)] = None
            elif self._type(target) != METADATA_TYPE:
                self._warn(name, f"DependsOn {target} is ignored: its condition is false")
        return tuple(wanted)

    def _refuse_secrets(self, value: Any, node: MapNode, logical_id: str) -> None:
        """Dynamic references that only come about when texts are put together, or from a parameter."""
        if _mentions(value, DYNAMIC_REFERENCE):
            raise self._template.error(
                "dynamic references ({{resolve:…}}) are not supported", node.place, logical_id=logical_id
            )

    def _warn(self, name: str, message: str) -> None:
        self.warnings.append(f"{self._template.file}:{self._lines[name]}: {name}: {message}")


def _lines_of(node: Node | None) -> Mapping[str, int]:
    return {name: place.line for name, place in node.keys.items()} if isinstance(node, MapNode) else {}


def _as_text(value: Any) -> Any:
    """An output as text, also where a resource gives a number or a boolean."""
    return JoinOf("", [value]) if is_expression(value) and not isinstance(value, JoinOf) else value


def _mentions(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(_mentions(item, text) for item in value.values())
    if isinstance(value, list):
        return any(_mentions(item, text) for item in value)
    return any(_mentions(getattr(value, part), text) for part in ("parts", "items", "text") if hasattr(value, part))
