"""DynamoDB tables.

A create sends everything that `CreateTable` takes; time to live and backups need a table that is active, so only
a table that declares them is waited for. An update compares with the table as it is, one kind of change at a
time, since `UpdateTable` refuses what would change nothing and more than one index at once. A delete returns when
AWS has accepted it; a create that meets the dying table of its name waits for its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import finding, tags
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.dynamodb_updates import next_update
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen, Settle
from stackhold.engines.cloudformation.resources.shapes import chosen, like, renamed
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_BUSY: Final = "ResourceInUseException"
_POLL_MS: Final = 1_000
_POLL_LIMIT_MS: Final = 5_000
_AS_IT_IS: Final = frozenset(
    {
        "AttributeDefinitions",
        "BillingMode",
        "DeletionProtectionEnabled",
        "GlobalSecondaryIndexes",
        "KeySchema",
        "LocalSecondaryIndexes",
        "OnDemandThroughput",
        "ProvisionedThroughput",
        "TableClass",
    }
)
_INDEX_FIELDS: Final = ("IndexName", "KeySchema", "Projection")


class Table(Handler):
    """`AWS::DynamoDB::Table`."""

    type: ClassVar[TypeName] = TypeName("AWS::DynamoDB::Table")
    properties: ClassVar[frozenset[str]] = _AS_IT_IS | {
        "PointInTimeRecoverySpecification",
        "SSESpecification",
        "StreamSpecification",
        "TableName",
        "Tags",
        "TimeToLiveSpecification",
    }
    name_rule: ClassVar[NameRule | None] = NameRule(property="TableName", limit=255)
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    defaults: ClassVar[Mapping[str, Any]] = {
        "BillingMode": "PROVISIONED",
        "DeletionProtectionEnabled": False,
        "GlobalSecondaryIndexes": [],
        "LocalSecondaryIndexes": [],
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
        "SSESpecification": {"SSEEnabled": False},
        "TableClass": "STANDARD",
        "Tags": [],
        "TimeToLiveSpecification": {"Enabled": False},
    }
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "BillingMode": ("GlobalSecondaryIndexes", "OnDemandThroughput", "ProvisionedThroughput", "WarmThroughput"),
        "ProvisionedThroughput": ("WarmThroughput",),
    }
    volatile_attributes: ClassVar[frozenset[str]] = frozenset({"StreamArn"})
    is_stateful: ClassVar[bool] = True

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, whose answer is the baseline; with time to live or backups, a wait and a call for each."""
        params = {"TableName": want.name, "Tags": tags.as_list(tags.for_create(want)), **_sent(want.properties)}
        table = self._create(ctx, params, want)
        ctx.note(PhysicalId(want.name))
        if table is None:
            return self.update(ctx, PhysicalId(want.name), {}, want)
        later = chosen(want.properties, ("PointInTimeRecoverySpecification", "TimeToLiveSpecification"))
        if later:
            table = self._wait_active(ctx, want.name)
            _time_to_live(ctx, want.name, {}, want.properties)
            _backups(ctx, want.name, {}, want.properties)
        observed = {
            **chosen(self.defaults, ("PointInTimeRecoverySpecification", "TimeToLiveSpecification")),
            **later,
            **_seen(table, want.properties),
            "Tags": tags.visible_list(tags.of_template(want)),
        }
        return Made(PhysicalId(want.name), _attributes(table), is_settled=_is_active(table), observed=observed)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The table; time to live, backups and tags when they are declared. A dying one does not exist."""
        table = _describe(ctx, physical_id)
        if table is None or table.get("TableStatus") == "DELETING":
            return None
        seen = _seen(table, properties)
        try:
            if "TimeToLiveSpecification" in properties:
                declared = properties["TimeToLiveSpecification"]
                seen["TimeToLiveSpecification"] = _as_declared_when_off(declared, _time_to_live_seen(ctx, physical_id))
            if "PointInTimeRecoverySpecification" in properties:
                declared = properties["PointInTimeRecoverySpecification"]
                seen["PointInTimeRecoverySpecification"] = like(declared, _backups_seen(ctx, physical_id, declared))
            if "Tags" in properties:
                seen["Tags"] = tags.visible_list(_tags_of(ctx, table["TableArn"]))
        except AwsError as refused:
            if refused.code in {_GONE, "TableNotFoundException"}:
                return None
            raise
        return Seen(seen, _attributes(table))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """There is no call for many tables."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """As many `UpdateTable` as it takes, with a wait after each; then what has calls of its own."""
        new = want.properties
        self._refuse_fixed(physical_id, old, new)
        table = self._wait_active(ctx, physical_id)
        table = self._update_table(ctx, physical_id, table, self._targets(old, new))
        _time_to_live(ctx, physical_id, old, new)
        _backups(ctx, physical_id, old, new)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            params = {"ResourceArn": table["TableArn"], "Tags": tags.as_list(change.put)}
            ctx.aws.call("dynamodb", "TagResource", params)
        if change.remove:
            params = {"ResourceArn": table["TableArn"], "TagKeys": list(change.remove)}
            ctx.aws.call("dynamodb", "UntagResource", params)
        return Made(physical_id, _attributes(table))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call, which AWS carries out later."""
        try:
            ctx.aws.call("dynamodb", "DeleteTable", {"TableName": physical_id})
        except AwsError as refused:
            if refused.code != _GONE:
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The table of that name, unless it is dying."""
        table = _describe(ctx, lost.name)
        if table is None or table.get("TableStatus") == "DELETING":
            return None
        return finding.named(lost, lost.name, _tags_of(ctx, table["TableArn"]))

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Active, and so are its indexes."""
        table = _describe(ctx, physical_id)
        if table is None:
            raise ResourceFailed(f"table {physical_id} vanished while it was being made")
        if not _is_active(table):
            return Settle.PENDING, None
        return Settle.DONE, Made(physical_id, _attributes(table))

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """Keys and local indexes are fixed when a table is made."""
        return True if changed & {"KeySchema", "LocalSecondaryIndexes"} else None

    def _create(self, ctx: Context, params: dict[str, Any], want: Want) -> dict[str, Any] | None:
        """The new table; None when our own is there already."""
        for wait_ms in _pauses(self.settle_timeout_ms):
            try:
                made: dict[str, Any] = ctx.aws.call("dynamodb", "CreateTable", params)["TableDescription"]
            except AwsError as refused:
                if refused.code != _BUSY:
                    raise
                there = _describe(ctx, want.name)
                if there is not None and there.get("TableStatus") != "DELETING":
                    if tags.are_ours(_tags_of(ctx, there["TableArn"]), want):
                        return None
                    raise tags.foreign(
                        "table", want.name, service="dynamodb", operation="CreateTable", code=_BUSY
                    ) from refused
                ctx.wait(wait_ms)
            else:
                return made
        raise ResourceFailed(f"the former table {want.name} is still being deleted")

    def _wait_active(self, ctx: Context, name: str) -> dict[str, Any]:
        for wait_ms in _pauses(self.settle_timeout_ms):
            table = _describe(ctx, name)
            if table is None:
                raise ResourceFailed(f"table {name} does not exist any more")
            if _is_active(table):
                return table
            ctx.wait(wait_ms)
        raise ResourceFailed(f"table {name} did not become active")

    def _update_table(self, ctx: Context, name: str, table: dict[str, Any], targets: Props) -> dict[str, Any]:
        sent: dict[str, Any] | None = None
        for wait_ms in _pauses(self.settle_timeout_ms):
            params = next_update(table, targets)
            if params is None:
                return table
            if params == sent:
                ctx.wait(wait_ms)
            else:
                ctx.aws.call("dynamodb", "UpdateTable", {"TableName": name, **params})
                sent = params
            table = self._wait_active(ctx, name)
        raise ResourceFailed(f"table {name} does not show what was set: {', '.join(sorted(sent or {}))}")

    def _targets(self, old: Props, new: Props) -> dict[str, Any]:
        """What each property that is or was declared should be now."""
        names = (old.keys() | new.keys()) & self.properties
        return {name: new.get(name, self.defaults.get(name)) for name in names}

    def _refuse_fixed(self, physical_id: PhysicalId, old: Props, new: Props) -> None:
        for name in ("KeySchema", "LocalSecondaryIndexes"):
            if old and (old.get(name) or []) != (new.get(name) or []):
                raise ResourceFailed(
                    f"table {physical_id} cannot change its {name}: they are fixed when a table is made",
                    hint="Give it another logical id or name, so that a new table is made; data does not move along.",
                )


def _sent(properties: Props) -> dict[str, Any]:
    sent = chosen(properties, sorted(_AS_IT_IS))
    for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        if not sent.get(name, True):
            del sent[name]
    stream = properties.get("StreamSpecification")
    if stream:
        sent["StreamSpecification"] = {"StreamEnabled": True, **stream}
    encryption = properties.get("SSESpecification")
    if encryption:
        sent["SSESpecification"] = renamed(encryption, {"SSEEnabled": "Enabled"})
    return sent


def _describe(ctx: Context, name: str) -> dict[str, Any] | None:
    try:
        table: dict[str, Any] = ctx.aws.call("dynamodb", "DescribeTable", {"TableName": name})["Table"]
    except AwsError as refused:
        if refused.code == _GONE:
            return None
        raise
    return table


def _is_active(table: Mapping[str, Any]) -> bool:
    indexes = table.get("GlobalSecondaryIndexes") or []
    return table.get("TableStatus") == "ACTIVE" and all(
        index.get("IndexStatus", "ACTIVE") == "ACTIVE" for index in indexes
    )


def _seen(table: Mapping[str, Any], declared: Props) -> Props:
    billing = (table.get("BillingModeSummary") or {}).get("BillingMode") or "PROVISIONED"
    seen: Props = {
        "TableName": table["TableName"],
        "AttributeDefinitions": table.get("AttributeDefinitions", []),
        "KeySchema": table.get("KeySchema", []),
        "BillingMode": billing,
        "DeletionProtectionEnabled": bool(table.get("DeletionProtectionEnabled", False)),
        "TableClass": (table.get("TableClassSummary") or {}).get("TableClass") or "STANDARD",
        "SSESpecification": like(declared.get("SSESpecification"), _encryption_seen(table.get("SSEDescription"))),
    }
    if billing == "PROVISIONED":
        seen["ProvisionedThroughput"] = _throughput_seen(table.get("ProvisionedThroughput"))
    if table.get("OnDemandThroughput"):
        seen["OnDemandThroughput"] = _limits_seen(table["OnDemandThroughput"])
    if (table.get("StreamSpecification") or {}).get("StreamEnabled"):
        seen["StreamSpecification"] = {"StreamViewType": table["StreamSpecification"]["StreamViewType"]}
    for name in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        indexes = [_index_seen(index, billing) for index in table.get(name) or []]
        seen[name] = _in_order_of(declared.get(name) or [], indexes)
    return seen


def _index_seen(index: Mapping[str, Any], billing: str) -> dict[str, Any]:
    shown = chosen(index, _INDEX_FIELDS)
    if billing == "PROVISIONED" and index.get("ProvisionedThroughput"):
        shown["ProvisionedThroughput"] = _throughput_seen(index["ProvisionedThroughput"])
    if index.get("OnDemandThroughput"):
        shown["OnDemandThroughput"] = _limits_seen(index["OnDemandThroughput"])
    return shown


def _in_order_of(declared: list[dict[str, Any]], indexes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """AWS gives indexes in any order."""
    places = {index.get("IndexName"): place for place, index in enumerate(declared)}
    return sorted(indexes, key=lambda index: (places.get(index["IndexName"], len(places)), index["IndexName"]))


def _throughput_seen(throughput: Mapping[str, Any] | None) -> dict[str, int]:
    return chosen(throughput or {}, ("ReadCapacityUnits", "WriteCapacityUnits"))


def _limits_seen(limits: Mapping[str, Any]) -> dict[str, int]:
    """-1 is how the service says that there is no limit."""
    return {name: value for name, value in limits.items() if value != -1}


def _encryption_seen(described: Mapping[str, Any] | None) -> dict[str, Any]:
    if not described or described.get("Status") not in {"ENABLED", "ENABLING", "UPDATING"}:
        return {"SSEEnabled": False}
    shown = {"SSEEnabled": True, "SSEType": described.get("SSEType")}
    key = described.get("KMSMasterKeyArn")
    return {name: value for name, value in {**shown, "KMSMasterKeyId": key}.items() if value is not None}


def _attributes(table: Mapping[str, Any]) -> dict[str, str]:
    attributes = {"Arn": table["TableArn"], "TableName": table["TableName"]}
    if table.get("TableId"):
        attributes["TableId"] = table["TableId"]
    if table.get("LatestStreamArn"):
        attributes["StreamArn"] = table["LatestStreamArn"]
    return attributes


def _time_to_live(ctx: Context, name: str, old: Props, new: Props) -> None:
    """Turn it on or off. The service refuses what is so already, so a second time looks first."""
    before, after = old.get("TimeToLiveSpecification"), new.get("TimeToLiveSpecification")
    if before == after:
        return
    now = _time_to_live_seen(ctx, name)
    is_wanted = bool(after and after.get("Enabled"))
    attribute = (after or {}).get("AttributeName")
    if now["Enabled"] and (not is_wanted or now.get("AttributeName") != attribute):
        _set_time_to_live(ctx, name, is_on=False, attribute=now["AttributeName"])
        now = {"Enabled": False}
    if is_wanted and not now["Enabled"]:
        _set_time_to_live(ctx, name, is_on=True, attribute=attribute)


def _set_time_to_live(ctx: Context, name: str, *, is_on: bool, attribute: Any) -> None:
    specification = {"Enabled": is_on, "AttributeName": attribute}
    ctx.aws.call("dynamodb", "UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": specification})


def _time_to_live_seen(ctx: Context, name: str) -> dict[str, Any]:
    answer = ctx.aws.call("dynamodb", "DescribeTimeToLive", {"TableName": name})
    described = answer.get("TimeToLiveDescription") or {}
    if described.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}:
        return {"Enabled": True, "AttributeName": described["AttributeName"]}
    return {"Enabled": False}


def _as_declared_when_off(declared: Mapping[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The service forgets the attribute of what is off; a template may still name it."""
    return now if now["Enabled"] or declared.get("Enabled") or not declared else dict(declared)


def _backups(ctx: Context, name: str, old: Props, new: Props) -> None:
    """Set them. Right after a table was made they are not to be had for a moment: the caller waits for that."""
    after = new.get("PointInTimeRecoverySpecification")
    if old.get("PointInTimeRecoverySpecification") == after:
        return
    specification = {"PointInTimeRecoveryEnabled": False, **(after or {})}
    params = {"TableName": name, "PointInTimeRecoverySpecification": specification}
    ctx.aws.call("dynamodb", "UpdateContinuousBackups", params)


def _backups_seen(ctx: Context, name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    answer = ctx.aws.call("dynamodb", "DescribeContinuousBackups", {"TableName": name})
    described = (answer.get("ContinuousBackupsDescription") or {}).get("PointInTimeRecoveryDescription") or {}
    shown: dict[str, Any] = {"PointInTimeRecoveryEnabled": described.get("PointInTimeRecoveryStatus") == "ENABLED"}
    if described.get("RecoveryPeriodInDays") is not None and "RecoveryPeriodInDays" in declared:
        shown["RecoveryPeriodInDays"] = described["RecoveryPeriodInDays"]
    return shown


def _tags_of(ctx: Context, arn: str) -> list[dict[str, str]]:
    pages = ctx.aws.pages("dynamodb", "ListTagsOfResource", {"ResourceArn": arn})
    return [tag for page in pages for tag in page.get("Tags", [])]


def _pauses(limit_ms: int) -> list[int]:
    """Waits that grow, until their sum reaches the limit."""
    pauses: list[int] = []
    total = 0
    while total < limit_ms:
        pauses.append(min(_POLL_LIMIT_MS, _POLL_MS + 500 * len(pauses)))
        total += pauses[-1]
    return pauses
