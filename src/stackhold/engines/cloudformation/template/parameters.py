"""What each parameter's value is: given, else recorded, else the default; and whether it may be that.

All that is missing or unknown is one error, and all values that break their rules another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.engines.cloudformation.template.account_values import check_exist, ssm_value
from stackhold.engines.cloudformation.template.language import (
    BOOTSTRAP_PARAMETER,
    DYNAMIC_REFERENCE,
    MAX_VALUE_BYTES,
)
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import MapNode, Place, ScalarNode
from stackhold.engines.cloudformation.template.parameter_rules import Declared, declare, problems
from stackhold.engines.cloudformation.template.structure import body, label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.template.desired import Inputs
    from stackhold.engines.cloudformation.template.template import Template


@dataclass(frozen=True, slots=True)
class Parameters:
    """The effective parameters."""

    values: Mapping[str, str | list[str]] = field(default_factory=dict)
    """What `Ref` gives."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """What the record keeps: the text that was given. Of an SSM parameter that is its name."""
    reused: tuple[str, ...] = ()
    """Those that come from the record."""


def effective_parameters(template: Template, inputs: Inputs) -> Parameters:
    """Work out every parameter. Raises `TemplateError`, or what `inputs.facts` raises."""
    declared = {
        name: declare(template, name)
        for name in template.section("Parameters").entries
        if not _is_bootstrap(body(template, "Parameters", name), name)
    }
    chosen = {name: _chosen(entry, inputs) for name, entry in declared.items()}
    _check_complete(template, inputs, chosen)
    texts = {name: text for name, text in chosen.items() if text is not None}
    _check_values(template, declared, texts)
    values = {name: _value(template, declared[name], text, inputs) for name, text in texts.items()}
    check_exist(template, declared, values, inputs)
    return Parameters(
        values=values,
        recorded=texts,
        reused=tuple(
            name
            for name in declared
            if name not in inputs.parameters and inputs.recorded_parameters.get(name) is not None
        ),
    )


def check_given(template: Template, given: Mapping[str, str]) -> None:
    """Raise `TemplateError` for what is wrong with the parameters that are given, whatever a record says of others."""
    unknown = _unknown(template, given)
    if unknown:
        raise template.error(
            f"parameters that the template does not have: {', '.join(unknown)}",
            template.section("Parameters").place,
            hint=_those_there_are(template, unknown[0]),
        )
    declared = {name: declare(template, name) for name in given}
    _check_values(template, declared, given)


def _is_bootstrap(node: MapNode, name: str) -> bool:
    """The parameter that CDK puts into every template, read by a rule that is CloudFormation's own business."""
    default = node.entries.get("Default")
    return (
        name == BOOTSTRAP_PARAMETER and isinstance(default, ScalarNode) and default.text.startswith("/cdk-bootstrap/")
    )


def _chosen(entry: Declared, inputs: Inputs) -> str | None:
    if entry.name in inputs.parameters:
        return inputs.parameters[entry.name]
    recorded = inputs.recorded_parameters.get(entry.name)
    if recorded is None:
        return entry.default
    if isinstance(recorded, list | tuple):
        return ",".join(str(item) for item in recorded)
    if isinstance(recorded, bool):
        return "true" if recorded else "false"
    return str(recorded)


def _check_complete(template: Template, inputs: Inputs, chosen: Mapping[str, str | None]) -> None:
    parameters = template.section("Parameters")
    missing = [name for name, text in chosen.items() if text is None]
    unknown = _unknown(template, inputs.parameters)
    complaints = []
    if missing:
        complaints.append(f"parameters without a value: {', '.join(missing)}")
    if unknown:
        complaints.append(f"parameters that the template does not have: {', '.join(unknown)}")
    if complaints:
        place = parameters.keys[missing[0]] if missing else parameters.place
        give = f"Give each with --parameter, such as --parameter {missing[0]}=VALUE." if missing else ""
        hints = [give, _those_there_are(template, unknown[0]) if unknown else ""]
        raise template.error("; ".join(complaints), place, hint=" ".join(hint for hint in hints if hint))


def _unknown(template: Template, given: Mapping[str, str]) -> list[str]:
    return [name for name in given if name not in template.section("Parameters").entries]


def _those_there_are(template: Template, unknown: str) -> str:
    names = list(template.section("Parameters").entries)
    if not names:
        return "It has no parameters."
    return did_you_mean(unknown, names) or f"It has: {', '.join(names)}."


def _check_values(template: Template, declared: Mapping[str, Declared], texts: Mapping[str, str]) -> None:
    found: list[tuple[str, str]] = []
    for name, text in texts.items():
        if len(text.encode(errors="surrogatepass")) > MAX_VALUE_BYTES:
            found.append((name, f"has more than {MAX_VALUE_BYTES:,} bytes"))
        elif DYNAMIC_REFERENCE in text:
            found.append((name, "dynamic references ({{resolve:…}}) are not supported"))
        else:
            found += [(name, problem) for problem in problems(declared[name], text)]
    if found:
        place: Place = template.section("Parameters").keys[found[0][0]]
        reasons = "; ".join(f"{label('Parameters', name)}: {problem}" for name, problem in found)
        raise template.error(reasons, place)


def _value(template: Template, entry: Declared, text: str, inputs: Inputs) -> str | list[str]:
    if entry.is_ssm:
        text = ssm_value(template, entry, text, inputs)
    return entry.items(text) if entry.is_list else text
