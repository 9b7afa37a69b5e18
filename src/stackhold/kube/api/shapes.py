"""What the types of the API are made of: the base class, rules in CEL, and bounded text, numbers and maps.

Every list and every text has a bound, because the API server estimates what a rule may cost from the bounds of what
it reads and refuses a definition whose rules could cost too much.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in CEL about the object that it stands at, with what to say when it is broken.

    A rule that names `oldSelf` compares with the stored object. One that does not is forgiven on an object that broke
    it before, as long as the part that it stands at is not changed: policy rules must be of that sort, and stand at
    the policy itself, or they could keep a finalizer from being removed.
    """

    rule: str
    message: str
    message_expression: str = ""
    field: str = ""
    """Where in the object the mistake is, such as `.lockTimeoutSeconds`."""

    def document(self) -> dict[str, str]:
        """As an entry of `x-kubernetes-validations`."""
        found = {"rule": _one_line(self.rule), "message": _one_line(self.message)}
        if self.message_expression:
            found["messageExpression"] = _one_line(self.message_expression)
        if self.field:
            found["fieldPath"] = self.field
        return found


class Shape(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An object of the API. Its docstring describes it there; `rules` and `at_least` end up in its schema."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    at_least: ClassVar[int] = 0
    """How many of its properties must be set."""


def unchanged(field: str, message: str) -> Rule:
    """A rule for the root of a kind: what its `spec` says, or does not say, in a field is said for good.

    At the root, because a rule at the field itself is not asked when the field is set or removed.
    """
    now, before = f"self.spec.{field}", f"oldSelf.spec.{field}"
    rule = f"has({now}) == has({before}) && (!has({now}) || {now} == {before})"
    return Rule(rule, f"spec.{field} {message}", field=f".spec.{field}")


def rules_here(*rules: Rule) -> Meta:
    """Rules for one place where a type is used, and not for the type."""
    return Meta(extra_json_schema={"x-kubernetes-validations": [rule.document() for rule in rules]})


def text(description: str, *, longest: int, shortest: int = 1, pattern: str | None = None, form: str = "") -> Meta:
    """Bounded text."""
    extra = {"format": form} if form else None
    return Meta(
        description=description, min_length=shortest, max_length=longest, pattern=pattern, extra_json_schema=extra
    )


def number(description: str, lowest: int, highest: int | None = None) -> Meta:
    """A whole number in a range; one without an upper bound has 64 bits."""
    return Meta(description=description, ge=lowest, le=highest)


def says(description: str) -> Meta:
    """A description alone."""
    return Meta(description=description)


def at_most(longest: int, description: str, *, shortest: int = 1, keyed_by: str = "", as_set: bool = False) -> Meta:
    """A bounded list: replaced as a whole, or with one entry for each value of a key, or without repetition."""
    extra: dict[str, Any] = {"x-kubernetes-list-type": "map" if keyed_by else "set" if as_set else "atomic"}
    if keyed_by:
        extra["x-kubernetes-list-map-keys"] = [keyed_by]
    return Meta(description=description, min_length=shortest, max_length=longest, extra_json_schema=extra)


def at_most_entries(description: str, *, most: int = 64, fewest: int = 0) -> Meta:
    """A bounded map."""
    return Meta(description=description, min_length=fewest, max_length=most)


DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
INT32 = 2**31 - 1

_DECIMAL = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
_QUANTITY = {
    "pattern": rf"^(\+|-)?{_DECIMAL}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DECIMAL}))?$",
    "x-kubernetes-int-or-string": True,
}
Quantity = Annotated[int | str, Meta(extra_json_schema=_QUANTITY)]
"""An amount as Kubernetes writes it: `250m`, `2Gi`, `4`."""
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
JobName = Annotated[str, Meta(min_length=1, max_length=63)]
Count = Annotated[int, Meta(ge=0)]


def _one_line(words: str) -> str:
    return re.sub(r"\s+", " ", words).strip()
