"""What is seen of a stack: what exists against what is recorded, what a journal says against two records."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMELESS: Final = frozenset({"targets", "role policies"})
"""Kinds whose members are parts of other resources, or have ids that only their handler can make."""


def beyond(held: Mapping[str, list[str]], nothing: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What exists and did not when nothing was done."""
    found = {}
    for kind, names in held.items():
        more = Counter(names)
        more.subtract(nothing.get(kind, []))
        if rest := sorted(more.elements()):
            found[kind] = rest
    return found


def difference(held: Mapping[str, list[str]], want: Mapping[str, int]) -> list[str]:
    """Where there is more or less than wanted of a kind."""
    return [
        f"{len(held.get(kind, []))} instead of {want.get(kind, 0)} {kind}: {', '.join(held.get(kind, []))}"
        for kind in sorted({*held, *want})
        if len(held.get(kind, [])) != want.get(kind, 0)
    ]


def unrecorded(held: Mapping[str, list[str]], ids: Iterable[str]) -> list[str]:
    """What exists and has none of these physical ids."""
    known = {word for name in ids for word in _words(name)}
    return [
        f"not recorded: {name} ({kind})"
        for kind, names in held.items()
        if kind not in _NAMELESS
        for name in names
        if _words(name)[-1] not in known
    ]


def recorded_ids(record: Mapping[str, Any] | None) -> list[str]:
    """The physical ids of a record: of its resources, and of what it will delete."""
    if record is None:
        return []
    waiting = [item["resource"] for item in record.get("pendingDeletes", [])]
    return [item["physicalId"] for item in (*record["resources"].values(), *waiting)]


def misjournalled(
    journal: Mapping[str, Any] | None, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[str]:
    """Where the newest segment of a journal tells another story than the records before and after its run."""
    old, new = ((record or {}).get("resources", {}) for record in (before, after))
    want = {name: kind for name in sorted({*old, *new}) if (kind := _change(old.get(name), new.get(name)))}
    operations = journal["segments"][-1]["operations"] if journal else []
    done = [item for item in operations if not item.get("leftover")]
    told = {item["logicalId"]: item["changeType"] for item in done}
    problems = [
        f"the journal says {told.get(name, 'nothing')} of {name}, the records say {want.get(name, 'nothing')}"
        for name in sorted({*told, *want})
        if told.get(name) != want.get(name)
    ]
    if len(told) != len(done):
        problems.append("the journal tells of a resource twice")
    for item in done:
        problems += _misplaced(item, old.get(item["logicalId"]), new.get(item["logicalId"]))
    return problems


def _change(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    if old is None or new is None:
        return "CREATE" if new is not None else "DELETE" if old is not None else ""
    if old["physicalId"] != new["physicalId"]:
        return "REPLACE"
    return "UPDATE" if old["properties"] != new["properties"] else ""


def _misplaced(item: Mapping[str, Any], old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[str]:
    """An operation must name the resource as it is now, and hold it as it was."""
    problems = []
    if new is not None and item.get("physicalId") != new["physicalId"]:
        problems.append(f"the journal calls {item['logicalId']} {item.get('physicalId')}, not {new['physicalId']}")
    previous = item.get("previousState") or {}
    if old is not None and any(previous.get(name) != old[name] for name in ("physicalId", "properties")):
        problems.append(f"the journal does not hold {item['logicalId']} as it was")
    return problems


def _words(name: str) -> list[str]:
    """The parts of a name, an ARN or a URL."""
    return re.split(r"[/:| ]", name)
