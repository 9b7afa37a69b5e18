"""Which `UpdateTable` comes next, given a table as it is and its properties as they should be (pure).

The service changes one thing at a time: throughput, or the stream, or one index. Asking for what is so already
is an error there, so every step compares first; when nothing differs there is no next step. Before an index
goes or comes, throughput and billing are as wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Table = dict[str, Any]
Targets = dict[str, Any]


def next_update(table: Table, targets: Targets) -> dict[str, Any] | None:
    """Parameters of the next call beside the name, or None when the table is as it should be.

    `targets` has every property that is or was declared; None where there is no default to go back to.
    """
    for step in _STEPS:
        params = step(table, targets)
        if params is not None:
            return params
    return None


def _protection(table: Table, targets: Targets) -> dict[str, Any] | None:
    wanted = targets.get("DeletionProtectionEnabled")
    if wanted is None or bool(wanted) == bool(table.get("DeletionProtectionEnabled", False)):
        return None
    return {"DeletionProtectionEnabled": bool(wanted)}


def _billing(table: Table, targets: Targets) -> dict[str, Any] | None:
    """Mode and throughput together, of the table and of the indexes that stay."""
    mode_now = (table.get("BillingModeSummary") or {}).get("BillingMode") or "PROVISIONED"
    mode = targets.get("BillingMode") or mode_now
    params: dict[str, Any] = {}
    if mode != mode_now:
        params["BillingMode"] = mode
    if mode == "PROVISIONED":
        wanted = targets.get("ProvisionedThroughput")
        if wanted and ("BillingMode" in params or not _same_throughput(wanted, table.get("ProvisionedThroughput"))):
            params["ProvisionedThroughput"] = wanted
        updates = _index_throughput(table, targets, is_switch="BillingMode" in params)
        if updates:
            params["GlobalSecondaryIndexUpdates"] = updates
    return params or None


def _index_throughput(table: Table, targets: Targets, *, is_switch: bool) -> list[dict[str, Any]]:
    wanted = _by_name(targets.get("GlobalSecondaryIndexes"))
    updates = []
    for name, index in _by_name(table.get("GlobalSecondaryIndexes")).items():
        throughput = wanted.get(name, {}).get("ProvisionedThroughput")
        if throughput and (is_switch or not _same_throughput(throughput, index.get("ProvisionedThroughput"))):
            updates.append({"Update": {"IndexName": name, "ProvisionedThroughput": throughput}})
    return updates


def _on_demand(table: Table, targets: Targets) -> dict[str, Any] | None:
    if "OnDemandThroughput" not in targets:
        return None
    unlimited = {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}
    wanted = {**unlimited, **(targets["OnDemandThroughput"] or {})}
    now = {**unlimited, **(table.get("OnDemandThroughput") or {})}
    return None if wanted == now else {"OnDemandThroughput": wanted}


def _stream(table: Table, targets: Targets) -> dict[str, Any] | None:
    """A stream of another kind is a new stream: the old one is turned off first."""
    if "StreamSpecification" not in targets:
        return None
    wanted = (targets["StreamSpecification"] or {}).get("StreamViewType")
    now = table.get("StreamSpecification") or {}
    kind_now = now.get("StreamViewType") if now.get("StreamEnabled") else None
    if wanted == kind_now:
        return None
    if kind_now is not None:
        return {"StreamSpecification": {"StreamEnabled": False}}
    return {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": wanted}}


def _encryption(table: Table, targets: Targets) -> dict[str, Any] | None:
    wanted = targets.get("SSESpecification")
    if wanted is None:
        return None
    now = table.get("SSEDescription") or {}
    is_on = now.get("Status") in {"ENABLED", "ENABLING", "UPDATING"}
    if not wanted.get("SSEEnabled"):
        return {"SSESpecification": {"Enabled": False}} if is_on else None
    key = wanted.get("KMSMasterKeyId")
    if is_on and (key is None or _is_same_key(str(key), now.get("KMSMasterKeyArn"))):
        return None
    fields = {"Enabled": True, "SSEType": wanted.get("SSEType"), "KMSMasterKeyId": key}
    return {"SSESpecification": {name: value for name, value in fields.items() if value is not None}}


def _is_same_key(wanted: str, arn: str | None) -> bool:
    return arn is not None and (arn == wanted or arn.rpartition("/")[2] == wanted)


def _table_class(table: Table, targets: Targets) -> dict[str, Any] | None:
    wanted = targets.get("TableClass")
    now = (table.get("TableClassSummary") or {}).get("TableClass") or "STANDARD"
    return None if wanted is None or wanted == now else {"TableClass": wanted}


def _drop_index(table: Table, targets: Targets) -> dict[str, Any] | None:
    """An index that is wanted no longer, or with other keys or another projection, goes."""
    if "GlobalSecondaryIndexes" not in targets:
        return None
    wanted = _by_name(targets["GlobalSecondaryIndexes"])
    for name, index in _by_name(table.get("GlobalSecondaryIndexes")).items():
        if name not in wanted or not _same_index(wanted[name], index):
            return {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]}
    return None


def _add_index(table: Table, targets: Targets) -> dict[str, Any] | None:
    there = _by_name(table.get("GlobalSecondaryIndexes"))
    for name, index in _by_name(targets.get("GlobalSecondaryIndexes")).items():
        if name not in there:
            return {
                "AttributeDefinitions": _definitions(table, targets, index),
                "GlobalSecondaryIndexUpdates": [{"Create": dict(index)}],
            }
    return None


def _definitions(table: Table, targets: Targets, new_index: Mapping[str, Any]) -> list[dict[str, str]]:
    """Those of the keys that there will be: the service refuses one that no key uses."""
    known = {
        entry["AttributeName"]: entry
        for entry in [*(table.get("AttributeDefinitions") or []), *(targets.get("AttributeDefinitions") or [])]
    }
    holders: list[Mapping[str, Any]] = [
        table,
        *(table.get("LocalSecondaryIndexes") or []),
        *(table.get("GlobalSecondaryIndexes") or []),
        new_index,
    ]
    used = {key["AttributeName"] for holder in holders for key in holder.get("KeySchema") or []}
    return [known[name] for name in sorted(used) if name in known]


def _same_index(wanted: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return wanted.get("KeySchema") == now.get("KeySchema") and _projection(wanted) == _projection(now)


def _projection(index: Mapping[str, Any]) -> tuple[Any, list[str]]:
    projection = index.get("Projection") or {}
    return projection.get("ProjectionType", "ALL"), sorted(projection.get("NonKeyAttributes") or [])


def _same_throughput(wanted: Mapping[str, Any], now: Mapping[str, Any] | None) -> bool:
    return all((now or {}).get(name) == wanted.get(name) for name in ("ReadCapacityUnits", "WriteCapacityUnits"))


def _by_name(indexes: Sequence[Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]]:
    return {index["IndexName"]: index for index in indexes or []}


_STEPS: tuple[Callable[[Table, Targets], dict[str, Any] | None], ...] = (
    _protection,
    _billing,
    _on_demand,
    _stream,
    _encryption,
    _table_class,
    _drop_index,
    _add_index,
)
