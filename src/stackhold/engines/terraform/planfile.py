"""A saved plan in short: counts, addresses, and a keyed digest that names exactly one plan without revealing values.

Reads what `show -json` prints, which holds every input value: nothing of that goes into the summary. The digest
covers what the plan would do and from where, and nothing that differs between two plans of the same changes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import Bug, InputError

if TYPE_CHECKING:
    from stackhold.engines.terraform.stream_summary import StreamSummary

DRIFT_LISTED: Final = 20
_DOMAIN: Final = b"stackhold plan 1\n"
_HASHED: Final = ("address", "previous_address", "deposed", "mode", "type", "provider_name", "change")
_ORDER: Final = ("delete", "replace", "forget", "update", "create", "import", "move", "read")
_COUNTED: Final = {
    ("create",): ("create", ("create",)),
    ("update",): ("update", ("update",)),
    ("delete",): ("delete", ("delete",)),
    ("create", "delete"): ("replace", ("replace",)),
    ("forget",): ("forget", ("forget",)),
    ("create", "forget"): ("create", ("create", "forget")),
    ("read",): ("read", ()),
    ("no-op",): ("", ()),
    (): ("", ()),
}
"""What the runtimes call an action, in any order: what it is called here, and the counts that it adds to."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a plan would do to one resource."""

    address: str
    action: str
    """`create`, `update`, `replace`, `delete`, `import`, `move`, `forget` or `read`."""


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in short. `resources` are those that something happens to, what destroys first."""

    hash: str
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    import_: int = 0
    move: int = 0
    forget: int = 0
    output_changes: int = 0
    resources: tuple[PlannedChange, ...] = ()

    @property
    def is_destructive(self) -> bool:
        """Whether anything that exists would be destroyed."""
        return self.delete > 0 or self.replace > 0

    @property
    def has_changes(self) -> bool:
        """Whether applying it would do anything."""
        counts = (self.create, self.update, self.replace, self.delete, self.import_, self.move, self.forget)
        return any(counts) or self.output_changes > 0 or bool(self.resources)


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """What changed behind the state's back: what it takes to set it right, or where nothing does, what was seen."""

    detected: bool = False
    create: int = 0
    update: int = 0
    replace: int = 0
    delete: int = 0
    resources: tuple[PlannedChange, ...] = ()


def summarize(document: bytes, *, key: bytes) -> PlanSummary:
    """The plan that `show -json` printed.

    Raises InputError for anything else, for a format that is not 1.x, for a plan that is not whole and for an action
    that is not known: what it might destroy could not be told.
    """
    if not key:
        raise Bug("a plan's digest needs a key")
    plan = _plan(document)
    changes = [each for each in _entries(plan, "resource_changes") if _happens(each)]
    outputs = {name: each for name, each in _part(plan, "output_changes").items() if _actions(each)}
    counts: dict[str, int] = {}
    rows: list[PlannedChange] = []
    for each in changes:
        action, counted = _named(each)
        for name in counted:
            counts[name] = counts.get(name, 0) + 1
        rows.append(PlannedChange(_address(each), action))
    rows.sort(key=lambda row: _ORDER.index(row.action))
    return PlanSummary(
        hash=_digest(plan, changes, outputs, key),
        output_changes=len(outputs),
        resources=tuple(rows),
        **counts,
    )


def drift_summary(refresh: StreamSummary, plan: PlanSummary | None) -> DriftSummary:
    """What a drift operation found: its refresh, and the plan after it (None when that found nothing to do)."""
    drifted = [PlannedChange(address, action) for address, action in refresh.drifted if action != "move"]
    if plan is not None and plan.has_changes:
        planned = {row.address for row in plan.resources}
        rows = (*plan.resources, *(row for row in drifted if row.address not in planned))
        return DriftSummary(
            detected=True,
            create=plan.create,
            update=plan.update,
            replace=plan.replace,
            delete=plan.delete,
            resources=rows[:DRIFT_LISTED],
        )
    return DriftSummary(
        detected=bool(drifted),
        update=sum(row.action == "update" for row in drifted),
        delete=sum(row.action == "delete" for row in drifted),
        resources=tuple(drifted[:DRIFT_LISTED]),
    )


def _plan(document: bytes) -> dict[str, Any]:
    try:
        plan = json.loads(document, parse_float=_exact)
    except (ValueError, RecursionError) as error:
        raise InputError("the runtime's account of the plan is not JSON") from error
    version = plan.get("format_version") if isinstance(plan, dict) else None
    if not isinstance(version, str):
        raise InputError("the runtime's account of the plan names no format version")
    if version.partition(".")[0] != "1":
        raise InputError(f"the plan is of format {version}; this release reads 1.x")
    if plan.get("errored") is True:
        raise InputError("the plan is not whole: making it ended in an error", hint="Plan again.")
    found: dict[str, Any] = plan
    return found


def _exact(text: str) -> dict[str, str]:
    """A number that is not whole, as it is written: as a float, two numbers could become one."""
    return {"\0number": text}


def _part(of: dict[str, Any], key: str) -> dict[str, Any]:
    found = of.get(key, {})
    if not isinstance(found, dict):
        raise InputError(f"the runtime's account of the plan has no usable {key!r}")
    return found


def _entries(plan: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = plan.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"the runtime's account of the plan has no usable {key!r}")
    return found


def _actions(change: object) -> tuple[str, ...]:
    """The actions of one change in one order, without `no-op`."""
    found = change.get("actions") if isinstance(change, dict) else None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InputError("the runtime's account of the plan has a change without actions")
    return tuple(sorted(each for each in found if each != "no-op"))


def _is_imported(each: dict[str, Any]) -> bool:
    return bool(_part(each, "change").get("importing"))


def _is_moved(each: dict[str, Any]) -> bool:
    return each.get("previous_address") not in (None, "", each.get("address"))


def _happens(each: dict[str, Any]) -> bool:
    return bool(_actions(each.get("change"))) or _is_imported(each) or _is_moved(each)


def _address(each: dict[str, Any]) -> str:
    address, deposed = each.get("address"), each.get("deposed")
    if not isinstance(address, str):
        raise InputError("the runtime's account of the plan has a change without an address")
    return f"{address} (deposed {deposed})" if deposed else address


def _named(each: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    actions = _actions(each.get("change"))
    if actions not in _COUNTED:
        raise InputError(f"the plan would do to {_address(each)} what this release does not know: {', '.join(actions)}")
    action, counted = _COUNTED[actions]
    also = ("import_",) * _is_imported(each) + ("move",) * _is_moved(each)
    return action or also[0].rstrip("_"), (*counted, *also)


def _digest(plan: dict[str, Any], changes: list[dict[str, Any]], outputs: dict[str, Any], key: bytes) -> str:
    """The keyed digest of every change, whatever order the runtime gave them."""
    parts = [_hashed(["resource", {name: _sorted_paths(name, each.get(name)) for name in _HASHED}]) for each in changes]
    parts += [_hashed(["output", name, each]) for name, each in outputs.items()]
    parts += [_hashed(["action", each]) for each in _entries(plan, "action_invocations")]
    return hmac.new(key, _DOMAIN + b"".join(sorted(parts)), hashlib.sha256).hexdigest()


def _sorted_paths(key: str, found: Any) -> Any:  # noqa: ANN401
    """The paths that force a replacement are a set, given in any order."""
    if key != "change" or not isinstance(found.get("replace_paths"), list):
        return found
    return {**found, "replace_paths": sorted(found["replace_paths"], key=_canonical)}


def _canonical(found: object) -> bytes:
    return json.dumps(found, sort_keys=True, separators=(",", ":")).encode()


def _hashed(found: object) -> bytes:
    return hashlib.sha256(_canonical(found)).digest()
