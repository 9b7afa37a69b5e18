"""CloudWatch log groups.

A group's ARN attribute ends in `:*`; the calls that tag it want it without. Lambda makes `/aws/lambda/<function>`
by itself, so a group that exists proves nothing: its ownership tags are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import finding, tags
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.documents import as_text
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.engines.cloudformation.resources.shapes import document
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_EXISTS: Final = "ResourceAlreadyExistsException"
_PAGE: Final = 50


class LogGroup(Handler):
    """`AWS::Logs::LogGroup`."""

    type: ClassVar[TypeName] = TypeName("AWS::Logs::LogGroup")
    properties: ClassVar[frozenset[str]] = frozenset(
        {
            "DataProtectionPolicy",
            "DeletionProtectionEnabled",
            "KmsKeyId",
            "LogGroupClass",
            "LogGroupName",
            "RetentionInDays",
            "Tags",
        }
    )
    name_rule: ClassVar[NameRule | None] = NameRule(property="LogGroupName", limit=512, reserved=("aws/",))
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    defaults: ClassVar[Mapping[str, Any]] = {
        "DataProtectionPolicy": {},
        "DeletionProtectionEnabled": False,
        "KmsKeyId": "",
        "LogGroupClass": "STANDARD",
        "Tags": [],
    }
    is_stateful: ClassVar[bool] = True

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, one more for the retention, one more for a data protection policy."""
        new = want.properties
        params: dict[str, Any] = {"logGroupName": want.name, "tags": tags.for_create(want)}
        if new.get("KmsKeyId"):
            params["kmsKeyId"] = new["KmsKeyId"]
        if new.get("LogGroupClass"):
            params["logGroupClass"] = new["LogGroupClass"]
        if new.get("DeletionProtectionEnabled"):
            params["deletionProtectionEnabled"] = True
        physical_id = PhysicalId(want.name)
        try:
            ctx.aws.call("logs", "CreateLogGroup", params)
        except AwsError as refused:
            if refused.code != _EXISTS:
                raise
            if not tags.are_ours(_tags_of(ctx, want.name), want):
                raise tags.foreign("log group", want.name, service="logs", operation="CreateLogGroup") from refused
            ctx.note(physical_id)
            return self.update(ctx, physical_id, {}, want)
        ctx.note(physical_id)
        _retention(ctx, want.name, {}, new)
        _data_protection(ctx, want.name, {}, new)
        observed: Props = {
            **self.defaults,
            **new,
            "LogGroupName": want.name,
            "Tags": tags.visible_list(tags.of_template(want)),
        }
        return Made(physical_id, _attributes(ctx, want.name), observed=observed)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The group; tags and the data protection policy when they are declared."""
        for page in ctx.aws.pages("logs", "DescribeLogGroups", {"logGroupNamePrefix": physical_id}):
            for group in page.get("logGroups", []):
                if group["logGroupName"] == physical_id:
                    return self._seen(ctx, group, properties)
        return None

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """One list by the names' common beginning, given up when it turns out longer than reading each."""
        groups = _listed(ctx, sorted(wanted))
        if groups is None:
            return read_side_by_side(self, ctx, wanted)
        return {
            physical_id: self._seen(ctx, groups[physical_id], properties)
            for physical_id, properties in wanted.items()
            if physical_id in groups
        }

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """A call per property. A group's class is fixed when it is made."""
        new = want.properties
        if self._must_change_class(ctx, physical_id, old, new):
            raise ResourceFailed(
                f"log group {physical_id} cannot change its LogGroupClass",
                hint="Give it another LogGroupName or logical id, so that a new one is made.",
            )
        if old.get("KmsKeyId") != new.get("KmsKeyId"):
            if new.get("KmsKeyId"):
                params = {"logGroupName": physical_id, "kmsKeyId": new["KmsKeyId"]}
                ctx.aws.call("logs", "AssociateKmsKey", params)
            else:
                ctx.aws.call("logs", "DisassociateKmsKey", {"logGroupName": physical_id})
        _retention(ctx, physical_id, old, new)
        _data_protection(ctx, physical_id, old, new)
        if _value(self, old, "DeletionProtectionEnabled") != _value(self, new, "DeletionProtectionEnabled"):
            wanted = bool(new.get("DeletionProtectionEnabled"))
            params = {"logGroupIdentifier": physical_id, "deletionProtectionEnabled": wanted}
            ctx.aws.call("logs", "PutLogGroupDeletionProtection", params)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            params = {"resourceArn": _arn(ctx, physical_id), "tags": dict(change.put)}
            ctx.aws.call("logs", "TagResource", params)
        if change.remove:
            params = {"resourceArn": _arn(ctx, physical_id), "tagKeys": list(change.remove)}
            ctx.aws.call("logs", "UntagResource", params)
        return Made(physical_id, _attributes(ctx, physical_id))

    def _must_change_class(self, ctx: Context, physical_id: PhysicalId, old: Props, new: Props) -> bool:
        """Whether the group has another class than is wanted; asked of AWS where the record does not say."""
        wanted = _value(self, new, "LogGroupClass")
        if "LogGroupClass" in old or wanted == self.defaults["LogGroupClass"]:
            return bool(_value(self, old, "LogGroupClass") != wanted)
        seen = self.read(ctx, physical_id, {"LogGroupClass": wanted})
        return seen is not None and _value(self, seen.properties, "LogGroupClass") != wanted

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        try:
            ctx.aws.call("logs", "DeleteLogGroup", {"logGroupName": physical_id})
        except AwsError as refused:
            if refused.code != _GONE:
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The group of that name. Tags alone prove nothing: they may be listed for a while after it is gone."""
        if self.read(ctx, PhysicalId(lost.name), {}) is None:
            return None
        try:
            return finding.named(lost, lost.name, _tags_of(ctx, lost.name))
        except AwsError as refused:
            if refused.code != _GONE:
                raise
            return None

    def _seen(self, ctx: Context, group: Mapping[str, Any], properties: Props) -> Seen:
        name = group["logGroupName"]
        seen: Props = {
            "LogGroupName": name,
            "LogGroupClass": group.get("logGroupClass") or "STANDARD",
            "KmsKeyId": group.get("kmsKeyId", ""),
            "DeletionProtectionEnabled": bool(group.get("deletionProtectionEnabled", False)),
        }
        if group.get("retentionInDays") is not None:
            seen["RetentionInDays"] = group["retentionInDays"]
        if "Tags" in properties:
            seen["Tags"] = tags.visible_list(_tags_of(ctx, name))
        if "DataProtectionPolicy" in properties:
            answer = ctx.aws.call("logs", "GetDataProtectionPolicy", {"logGroupIdentifier": name})
            seen["DataProtectionPolicy"] = document(answer.get("policyDocument", "")) or {}
        return Seen(seen, _attributes(ctx, name))


def _retention(ctx: Context, name: str, old: Props, new: Props) -> None:
    days = new.get("RetentionInDays")
    if old.get("RetentionInDays") == days:
        return
    if days is None:
        ctx.aws.call("logs", "DeleteRetentionPolicy", {"logGroupName": name})
    else:
        ctx.aws.call("logs", "PutRetentionPolicy", {"logGroupName": name, "retentionInDays": days})


def _data_protection(ctx: Context, name: str, old: Props, new: Props) -> None:
    policy = new.get("DataProtectionPolicy")
    if old.get("DataProtectionPolicy") == policy:
        return
    if policy:
        params = {"logGroupIdentifier": name, "policyDocument": as_text(policy)}
        ctx.aws.call("logs", "PutDataProtectionPolicy", params)
    else:
        ctx.aws.call("logs", "DeleteDataProtectionPolicy", {"logGroupIdentifier": name})


def _listed(ctx: Context, names: Sequence[str]) -> dict[str, dict[str, Any]] | None:
    """All groups that begin as all of these do; None when single reads are cheaper."""
    prefix = _common_beginning(names)
    if len(names) < 2 or not prefix:
        return None
    groups: dict[str, dict[str, Any]] = {}
    params = {"logGroupNamePrefix": prefix, "limit": _PAGE}
    for read, page in enumerate(ctx.aws.pages("logs", "DescribeLogGroups", params)):
        if read >= len(names):
            return None
        groups.update({group["logGroupName"]: group for group in page.get("logGroups", [])})
        if all(name in groups for name in names):
            break
    return groups


def _common_beginning(names: Sequence[str]) -> str:
    first, last = min(names, default=""), max(names, default="")
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[:same]


def _value(handler: Handler, properties: Mapping[str, Any], name: str) -> Any:
    return properties.get(name, handler.defaults[name])


def _arn(ctx: Context, name: str) -> str:
    return f"arn:{ctx.partition}:logs:{ctx.region}:{ctx.account}:log-group:{name}"


def _attributes(ctx: Context, name: str) -> dict[str, str]:
    return {"Arn": f"{_arn(ctx, name)}:*"}


def _tags_of(ctx: Context, name: str) -> Any:
    return ctx.aws.call("logs", "ListTagsForResource", {"resourceArn": _arn(ctx, name)}).get("tags", {})
