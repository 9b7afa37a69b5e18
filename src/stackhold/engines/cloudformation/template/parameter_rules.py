"""What a template declares about one parameter, and what is wrong with a value for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stackhold.engines.cloudformation.template.bounded_match import BoundedPattern, TooMuchWork
from stackhold.engines.cloudformation.template.java_pattern import java_pattern
from stackhold.engines.cloudformation.template.nodes import ListNode, MapNode, Place, ScalarNode, kind
from stackhold.engines.cloudformation.template.structure import body, label, text_of

if TYPE_CHECKING:
    from stackhold.engines.cloudformation.template.template import Template

_NUMBER: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_SSM: Final = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
_LIST: Final = re.compile(r"List<(.+)>")
_AWS_TYPES: Final = frozenset(
    (
        "AWS::EC2::AvailabilityZone::Name",
        "AWS::EC2::Image::Id",
        "AWS::EC2::Instance::Id",
        "AWS::EC2::KeyPair::KeyName",
        "AWS::EC2::SecurityGroup::GroupName",
        "AWS::EC2::SecurityGroup::Id",
        "AWS::EC2::Subnet::Id",
        "AWS::EC2::VPC::Id",
        "AWS::EC2::Volume::Id",
        "AWS::Route53::HostedZone::Id",
        "AWS::SSM::Parameter::Name",
    )
)
_NO_LISTS: Final = frozenset(("AWS::EC2::KeyPair::KeyName", "AWS::SSM::Parameter::Name"))


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter's declaration."""

    name: str
    place: Place
    default: str | None
    is_ssm: bool
    """The value is the name of an SSM parameter, whose value is meant."""
    is_list: bool
    is_number: bool
    """Each value, or each item of a list, must be a number."""
    allowed: tuple[str, ...] | None
    pattern: BoundedPattern | None
    lengths: tuple[int | None, int | None]
    bounds: tuple[float | None, float | None]
    complaint: str
    """ConstraintDescription."""
    aws_type: str = ""
    """The AWS-specific type of each value, which must then exist in the account; empty for others."""

    def items(self, text: str) -> list[str]:
        """A list's items: split at commas, blanks around them trimmed."""
        return [item.strip() for item in text.split(",")]


def declare(template: Template, name: str) -> Declared:
    """Read a declaration. Raises `TemplateError`."""
    node = body(template, "Parameters", name)
    place = template.section("Parameters").keys[name]
    logical_id = label("Parameters", name)
    if "Type" not in node.entries:
        raise template.error("Type is missing", place, logical_id=logical_id)
    type_name = text_of(template, node.entries["Type"], what="Type", logical_id=logical_id)
    shape = _shape(type_name)
    if shape is None:
        raise template.error(f"unknown parameter type {type_name!r}", node.keys["Type"], logical_id=logical_id)
    is_ssm, is_list, is_number = shape
    reader = _Reader(template, node, logical_id)
    return Declared(
        name=name,
        place=place,
        default=reader.text("Default"),
        is_ssm=is_ssm,
        is_list=is_list,
        is_number=is_number,
        allowed=reader.allowed(),
        pattern=reader.pattern(),
        lengths=(reader.length("MinLength"), reader.length("MaxLength")),
        bounds=(reader.bound("MinValue"), reader.bound("MaxValue")),
        complaint=reader.text("ConstraintDescription") or "",
        aws_type=_aws_type(type_name),
    )


def problems(entry: Declared, text: str) -> list[str]:
    """Everything that is wrong with a value, each as a message; empty when nothing is."""
    values = entry.items(text) if entry.is_list and not entry.is_ssm else [text]
    found = []
    for value in values:
        reason = _problem(entry, value)
        if reason:
            found.append(f"{value!r} {reason}" + (f" ({entry.complaint})" if entry.complaint else ""))
    return found


def _problem(entry: Declared, value: str) -> str:
    checks_number = entry.is_number and not entry.is_ssm
    if checks_number and not _NUMBER.fullmatch(value):
        return "is no number"
    if entry.allowed is not None and not _is_allowed(value, entry.allowed, numeric=checks_number):
        return f"is not one of the allowed values {', '.join(entry.allowed)}"
    if entry.pattern is not None and (mismatch := _mismatch(entry.pattern, value)):
        return mismatch
    if not _within(len(value), entry.lengths):
        return f"has {len(value)} characters; allowed are {_range(entry.lengths)}"
    if checks_number and not _within(float(value), entry.bounds):
        return f"is out of range; allowed are {_range(entry.bounds)}"
    return ""


def _mismatch(pattern: BoundedPattern, value: str) -> str:
    try:
        return "" if pattern.fullmatch(value) else "does not match the allowed pattern"
    except TooMuchWork:
        return "takes too long to hold against the allowed pattern, which has too many repetitions in one another"


def _is_allowed(value: str, allowed: tuple[str, ...], *, numeric: bool) -> bool:
    if value in allowed:
        return True
    return numeric and any(_NUMBER.fullmatch(item) and float(item) == float(value) for item in allowed)


def _within(value: float, limits: tuple[float | None, float | None]) -> bool:
    low, high = limits
    return (low is None or value >= low) and (high is None or value <= high)


def _range(limits: tuple[float | None, float | None]) -> str:
    low, high = (None if limit is None else f"{limit:g}" for limit in limits)
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def _shape(type_name: str) -> tuple[bool, bool, bool] | None:
    """Whether a type is read from SSM, is a list, is of numbers; None for a type that does not exist."""
    ssm = _SSM.fullmatch(type_name)
    inner = ssm[1] if ssm else type_name
    is_ssm = ssm is not None
    if inner == "CommaDelimitedList":
        return is_ssm, True, False
    of_list = _LIST.fullmatch(inner)
    if of_list:
        item = of_list[1]
        is_known = (item == "Number") or (is_ssm and item == "String") or (item in _AWS_TYPES - _NO_LISTS)
        return (is_ssm, True, item == "Number") if is_known else None
    if inner in ("String", "Number") or inner in _AWS_TYPES:
        return is_ssm, False, inner == "Number"
    return None


def _aws_type(type_name: str) -> str:
    """What a value must be the name of; empty for what is not looked for, such as a name in SSM."""
    of_list = _LIST.fullmatch(type_name)
    item = of_list[1] if of_list else type_name
    return item if item in _AWS_TYPES and item != "AWS::SSM::Parameter::Name" else ""


class _Reader:
    """The optional keys of one declaration."""

    def __init__(self, template: Template, node: MapNode, logical_id: str) -> None:
        self._template = template
        self._node = node
        self._logical_id = logical_id

    def text(self, key: str) -> str | None:
        node = self._node.entries.get(key)
        if node is None:
            return None
        if not isinstance(node, ScalarNode):
            raise self._error(f"{key} must be text or a number, not {kind(node)}", node.place)
        return node.text

    def allowed(self) -> tuple[str, ...] | None:
        node = self._node.entries.get("AllowedValues")
        if node is None:
            return None
        if not isinstance(node, ListNode) or not node.items:
            raise self._error("AllowedValues must be a list with at least one value", node.place)
        texts = [item.text for item in node.items if isinstance(item, ScalarNode)]
        if len(texts) < len(node.items):
            raise self._error("AllowedValues must be a list of texts or numbers", node.place)
        return tuple(texts)

    def pattern(self) -> BoundedPattern | None:
        text = self.text("AllowedPattern")
        if text is None:
            return None
        try:
            return BoundedPattern(java_pattern(text))
        except ValueError as error:
            raise self._error(f"AllowedPattern cannot be used: {error}", self._node.keys["AllowedPattern"]) from None

    def length(self, key: str) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self._error(f"{key} must be a whole number, not {text!r}", self._node.keys[key])
        return int(text)

    def bound(self, key: str) -> float | None:
        text = self.text(key)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text):
            raise self._error(f"{key} must be a number, not {text!r}", self._node.keys[key])
        return float(text)

    def _error(self, message: str, place: Place) -> Exception:
        return self._template.error(message, place, logical_id=self._logical_id)
