"""Whether keys and values are labels or annotations, and whether a selector can be read, by Kubernetes' own rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackhold.model.values import JsonMap

_NAME = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,61})?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LONGEST_PREFIX = 253
_LONGEST_ANNOTATIONS = 256 * 1024
_WITH_VALUES = frozenset({"In", "NotIn"})
_WITHOUT_VALUES = frozenset({"Exists", "DoesNotExist"})


def key_refusal(key: str) -> str | None:
    """Why a text is no key of a label or an annotation."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return "what stands before the / is no DNS subdomain"
    if not _NAME.fullmatch(name):
        return "is no name of at most 63 letters, digits and _ . - between them"
    return None


def value_refusal(value: str) -> str | None:
    """Why a text is no value of a label; it may be empty."""
    return None if not value or _NAME.fullmatch(value) else "is not at most 63 letters, digits and _ . - between them"


def label_problems(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every label that is none, by its key, with the reason."""
    for key, value in labels.items():
        if said := key_refusal(key):
            yield key, f"the key {said}"
        if said := value_refusal(value):
            yield key, f"the value {said}"


def annotation_problems(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every annotation that is none, by its key; keys may have capitals in front of the slash."""
    for key in annotations:
        if said := key_refusal(key.lower()):
            yield key, f"the key {said}"
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _LONGEST_ANNOTATIONS:
        yield "", f"together they are larger than {_LONGEST_ANNOTATIONS} bytes"


def selector_problems(selector: JsonMap) -> Iterator[tuple[str, str]]:
    """Everything that makes a selector unreadable, by the place in it."""
    labels = cast("Mapping[str, str]", selector.get("matchLabels") or {})
    for key, said in label_problems(labels):
        yield f"matchLabels[{key}]", said
    requirements = cast("Sequence[JsonMap]", selector.get("matchExpressions") or ())
    for position, requirement in enumerate(requirements):
        for said in _requirement_problems(requirement):
            yield f"matchExpressions[{position}]", said


def _requirement_problems(requirement: JsonMap) -> Iterator[str]:
    operator, values = requirement.get("operator"), cast("Sequence[str]", requirement.get("values") or ())
    if said := key_refusal(str(requirement.get("key", ""))):
        yield f"the key {said}"
    if operator not in _WITH_VALUES | _WITHOUT_VALUES:
        yield "the operator must be In, NotIn, Exists or DoesNotExist"
    if operator in _WITH_VALUES and not values:
        yield f"{operator} needs values"
    if operator in _WITHOUT_VALUES and values:
        yield f"{operator} takes no values"
    yield from (f"the value {value!r} {said}" for value in values if (said := value_refusal(value)))
