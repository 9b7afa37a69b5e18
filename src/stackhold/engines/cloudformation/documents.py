"""JSON documents in properties, above all policies: what two of them say, whichever way each is written.

A document is an object or its JSON text. In a policy one value and a list of that one mean the same for actions,
resources and principals, and the order of those lists and of the statements means nothing. `canonical` gives one
form for all that mean the same; it is for comparing and showing, never for sending.
"""

from __future__ import annotations

import json
import re
from enum import Enum, auto
from typing import Any, Final

from stackhold.engines.cloudformation.values import UNKNOWN

_SETS: Final = frozenset({"Action", "NotAction", "Resource", "NotResource"})
_PRINCIPALS: Final = frozenset({"Principal", "NotPrincipal"})
_ROOT: Final = re.compile(r"arn:[a-z-]+:iam::(\d{12}):root")
_UNIQUE_ID: Final = re.compile(r"A(?:ROA|IDA|GPA)[A-Z0-9]{12,}")
_ROLE_OR_USER: Final = re.compile(r"arn:[a-z-]+:iam::\d{12}:(?:role|user)/.+")
_SOMEBODY: Final = "a principal that is gone"


class _Reading(Enum):
    """How closely a document is read."""

    AS_WRITTEN = auto()
    AS_AWS_SHOWS_IT = auto()
    WITHOUT_THE_GONE = auto()


def parsed(document: Any) -> Any:
    """The document as data. Text that is no JSON object or list stays text."""
    if not isinstance(document, str):
        return document
    try:
        data = json.loads(document)
    except (ValueError, RecursionError):
        return document
    return data if isinstance(data, dict | list) else document


def canonical(document: Any) -> Any:
    """One form for all documents that mean the same."""
    return _canonical(parsed(document), _Reading.AS_WRITTEN)


def means_the_same_to_aws(recorded: Any, observed: Any) -> bool:
    """Whether AWS may show `recorded` as `observed` though nobody changed it.

    An account's id comes back as the ARN of its root. When a role or user is deleted, a policy that names it shows
    the unique id that it had.
    """
    if _same(recorded, observed, _Reading.AS_AWS_SHOWS_IT):
        return True
    is_gone = _UNIQUE_ID.search(sort_key(parsed(observed))) is not None
    return is_gone and _same(recorded, observed, _Reading.WITHOUT_THE_GONE)


def sort_key(value: Any) -> str:
    """Text that is equal for equal data and orders lists; a whole number is the same with and without a point."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def _canonical(value: Any, reading: _Reading) -> Any:
    if isinstance(value, list):
        return [_canonical(inner, reading) for inner in value]
    if not isinstance(value, dict):
        return value
    made = {name: _canonical(inner, reading) for name, inner in value.items()}
    if "Statement" in made:
        made["Statement"] = as_set([_statement(one, reading) for one in _listed(made["Statement"])])
    return made


def _statement(statement: Any, reading: _Reading) -> Any:
    if not isinstance(statement, dict):
        return statement
    made = {name: as_set(_listed(value)) if name in _SETS else value for name, value in statement.items()}
    for name in _PRINCIPALS & made.keys():
        if isinstance(made[name], dict):
            made[name] = {
                kind: _principals([_principal(one, reading) for one in _listed(who)])
                for kind, who in made[name].items()
            }
    return made


def _principal(principal: Any, reading: _Reading) -> Any:
    if not isinstance(principal, str) or reading is _Reading.AS_WRITTEN:
        return principal
    if root := _ROOT.fullmatch(principal):
        return root.group(1)
    if reading is _Reading.WITHOUT_THE_GONE and (_UNIQUE_ID.fullmatch(principal) or _ROLE_OR_USER.fullmatch(principal)):
        return _SOMEBODY
    return principal


def _principals(who: list[Any]) -> Any:
    """A set; but each of those that are gone counts."""
    gone = [one for one in who if one is _SOMEBODY]
    return [*gone, *as_set([one for one in who if one is not _SOMEBODY])]


def _same(recorded: Any, observed: Any, reading: _Reading) -> bool:
    one, other = _canonical(parsed(recorded), reading), _canonical(parsed(observed), reading)
    return sort_key(one) == sort_key(other)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def as_set(items: list[Any]) -> Any:
    """A list in an order of its own, without repeats; kept as it is while an item is not known."""
    if any(item is UNKNOWN for item in items):
        return items
    return [item for _, item in sorted({sort_key(item): item for item in items}.items())]
