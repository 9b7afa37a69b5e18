"""Whether a template has the shape of one: its sections, names, limits, and nothing that is not supported.

Looks only at what stands where, never at what values come out as; the language inside values is `scan`'s part.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.template.language import (
    BOOTSTRAP_RULE,
    FORMAT_VERSION,
    LIMITS,
    METADATA_TYPE,
    OUTPUT_KEYS,
    PARAMETER_KEYS,
    PSEUDO_PARAMETERS,
    REFUSED_SECTIONS,
    RESOURCE_KEYS,
    SECTIONS,
)
from stackhold.engines.cloudformation.template.near import did_you_mean
from stackhold.engines.cloudformation.template.nodes import MapNode, Node, Place, ScalarNode, kind

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.template import Template

_ID: Final = re.compile(r"[A-Za-z0-9]{1,255}")


def check_structure(template: Template) -> None:
    """Raise `TemplateError` for the first thing that is not as it should be."""
    _check_sections(template)
    for section in ("Resources", "Parameters", "Outputs", "Mappings", "Conditions"):
        _check_names(template, section)
    _check_resources(template)
    _check_parameters(template)
    _check_outputs(template)
    _check_rules(template)


def body(template: Template, section: str, name: str) -> MapNode:
    """One entry of a section. Raises `TemplateError` when it is no map."""
    node = template.section(section).entries[name]
    if not isinstance(node, MapNode):
        raise template.error(f"must be a map, not {kind(node)}", node.place, logical_id=label(section, name))
    return node


def label(section: str, name: str) -> str:
    """How an entry is called in messages: a resource by its logical id alone."""
    return name if section == "Resources" else f"{section}.{name}"


def text_of(template: Template, node: Node, *, what: str, logical_id: str) -> str:
    """Literal text. Raises `TemplateError` for anything else."""
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return node.value
    raise template.error(f"{what} must be text, not {kind(node)}", node.place, logical_id=logical_id)


def name_of(template: Template, node: Node, *, what: str, logical_id: str) -> str:
    """The literal name of something. Raises `TemplateError` for anything else."""
    if isinstance(node, ScalarNode):
        return node.name
    raise template.error(f"{what} must be a name, not {kind(node)}", node.place, logical_id=logical_id)


def _check_sections(template: Template) -> None:
    root = template.root
    for name, place in root.keys.items():
        if name in REFUSED_SECTIONS:
            raise template.error(f"{name}: {REFUSED_SECTIONS[name]}", place)
        if name not in SECTIONS:
            raise template.error(f"unknown section {name!r}", place, hint=did_you_mean(name, SECTIONS))
    version = root.entries.get("AWSTemplateFormatVersion")
    if version is not None and not (isinstance(version, ScalarNode) and version.text == FORMAT_VERSION):
        raise template.error(f"AWSTemplateFormatVersion must be {FORMAT_VERSION!r}", version.place)
    if "Resources" not in root.entries:
        raise template.error("not a template: the section Resources is missing", root.place)
    if not template.section("Resources").entries:
        raise template.error("Resources holds no resource", root.entries["Resources"].place)
    description = root.entries.get("Description")
    if description is not None:
        text_of(template, description, what="Description", logical_id="")


def _check_names(template: Template, section: str) -> None:
    node = template.section(section)
    limit = LIMITS.get(section)
    if limit and len(node.entries) > limit:
        raise template.error(f"{section} has {len(node.entries)} entries; the limit is {limit}", node.place)
    for name, place in node.keys.items():
        if name.startswith("Fn::"):
            raise template.error(f"{name} is not supported", place, logical_id=section)
        if not _ID.fullmatch(name):
            raise template.error(
                f"{section}: {name!r} is no valid name: letters and digits, at most 255 of them", place
            )


def _check_resources(template: Template) -> None:
    parameters = template.section("Parameters").entries
    for name, place in template.section("Resources").keys.items():
        node = body(template, "Resources", name)
        if name in parameters:
            raise template.error("a parameter has the same name", place, logical_id=name)
        if "Type" not in node.entries:
            raise template.error("Type is missing", place, logical_id=name)
        type_name = text_of(template, node.entries["Type"], what="Type", logical_id=name)
        if type_name != METADATA_TYPE:
            _check_keys(template, node, "Resources", name, RESOURCE_KEYS)


def _check_parameters(template: Template) -> None:
    for name, place in template.section("Parameters").keys.items():
        node = body(template, "Parameters", name)
        if name in PSEUDO_PARAMETERS:
            raise template.error("is the name of a pseudo parameter", place, logical_id=label("Parameters", name))
        _check_keys(template, node, "Parameters", name, PARAMETER_KEYS)
        no_echo = node.entries.get("NoEcho")
        if no_echo is not None and not (isinstance(no_echo, ScalarNode) and no_echo.text.lower() == "false"):
            raise template.error(
                "NoEcho parameters are not supported", node.keys["NoEcho"], logical_id=label("Parameters", name)
            )


def _check_outputs(template: Template) -> None:
    for name, place in template.section("Outputs").keys.items():
        node = body(template, "Outputs", name)
        _check_keys(template, node, "Outputs", name, OUTPUT_KEYS)
        if "Value" not in node.entries:
            raise template.error("Value is missing", place, logical_id=label("Outputs", name))
        export = node.entries.get("Export")
        if export is not None and not (isinstance(export, MapNode) and set(export.entries) == {"Name"}):
            raise template.error("Export must be a map with Name", export.place, logical_id=label("Outputs", name))


def _check_rules(template: Template) -> None:
    for name, place in template.section("Rules").keys.items():
        if name != BOOTSTRAP_RULE:
            raise template.error("Rules are not supported", place, logical_id=label("Rules", name))


def _check_keys(template: Template, node: MapNode, section: str, name: str, known: frozenset[str]) -> None:
    for key, place in node.keys.items():
        if key not in known:
            hint = did_you_mean(key, known)
            raise template.error(_unknown_key(key), _at(node, place), logical_id=label(section, name), hint=hint)


def _unknown_key(key: str) -> str:
    if key == "CreationPolicy" or key.startswith("Fn::"):
        return f"{key} is not supported"
    return f"unknown key {key!r}"


def _at(node: MapNode, place: Place) -> Place:
    return place if place.line else node.place
