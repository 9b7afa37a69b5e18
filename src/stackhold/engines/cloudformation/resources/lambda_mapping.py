"""Event source mappings of Lambda functions.

A mapping has no name and no token, but there is one per function and source: it is looked for before it is made,
and one that is still being deleted is waited out. Changes are refused while a mapping is in transition; whoever
calls AWS for us waits for that.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import lambda_names, tags
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, Seen, Settle
from stackhold.engines.cloudformation.resources.polling import wait_for
from stackhold.errors import AwsError, InputError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName
from stackhold.ports.aws import Resend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = "ResourceNotFoundException"
_EXISTS: Final = "ResourceConflictException"
_DELETING_BUDGET_MS: Final = 10 * 60_000
_ONCE: Final = (
    "EventSourceArn",
    "Queues",
    "SelfManagedEventSource",
    "StartingPosition",
    "StartingPositionTimestamp",
    "Topics",
)
"""Taken by the create call only."""
_SOURCES: Final = ("EventSourceArn", "Topics", "Queues", "SelfManagedEventSource")
"""What a mapping consumes: with its function, what makes it the one that it is."""
_CHANGEABLE: Final = (
    "AmazonManagedKafkaEventSourceConfig",
    "BatchSize",
    "BisectBatchOnFunctionError",
    "DestinationConfig",
    "DocumentDBEventSourceConfig",
    "Enabled",
    "FilterCriteria",
    "FunctionName",
    "FunctionResponseTypes",
    "KmsKeyArn",
    "LoggingConfig",
    "MaximumBatchingWindowInSeconds",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "MetricsConfig",
    "ParallelizationFactor",
    "ProvisionedPollerConfig",
    "ScalingConfig",
    "SelfManagedKafkaEventSourceConfig",
    "SourceAccessConfigurations",
    "TumblingWindowInSeconds",
)
_API_NAMES: Final = {"KmsKeyArn": "KMSKeyArn"}
_KAFKA_CONFIGS: Final = ("AmazonManagedKafkaEventSourceConfig", "SelfManagedKafkaEventSourceConfig")


class EventSourceMapping(Handler):
    """AWS::Lambda::EventSourceMapping. The physical id is its UUID."""

    type: ClassVar[TypeName] = TypeName("AWS::Lambda::EventSourceMapping")
    properties: ClassVar[frozenset[str]] = frozenset({*_ONCE, *_CHANGEABLE, "Tags"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("FunctionName", *_SOURCES)
    defaults: ClassVar[Mapping[str, Any]] = {
        "BisectBatchOnFunctionError": False,
        "DestinationConfig": {},
        "Enabled": True,
        "FilterCriteria": {},
        "FunctionResponseTypes": [],
        "KmsKeyArn": "",
        "LoggingConfig": {},
        "MaximumBatchingWindowInSeconds": 0,
        "MaximumRecordAgeInSeconds": -1,
        "MaximumRetryAttempts": -1,
        "MetricsConfig": {"Metrics": []},
        "ParallelizationFactor": 1,
        "ProvisionedPollerConfig": {},
        "ScalingConfig": {},
        "SourceAccessConfigurations": [],
        "Tags": [],
        "TumblingWindowInSeconds": 0,
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """Look for one of the same function and source, then create."""
        found = self._find(ctx, want)
        if found is None:
            params = {
                _API_NAMES.get(name, name): want.properties[name]
                for name in (*_ONCE, *_CHANGEABLE)
                if want.properties.get(name) is not None
            }
            params["Tags"] = tags.for_create(want)
            try:
                found = ctx.aws.call("lambda", "CreateEventSourceMapping", params, resend=Resend.NEVER)
            except AwsError as error:
                if error.code != _EXISTS:
                    raise
                found = self._find(ctx, want)
                if found is None:
                    raise
        observed = self._shape(found, want.properties)
        observed["Tags"] = tags.visible_list(tags.of_template(want))
        return Made(
            PhysicalId(found["UUID"]), _attributes(ctx, found), is_settled=_is_settled(found), observed=observed
        )

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The mapping of this function and source with our tags, unless it is being deleted."""
        for mapping in self._of_same_source(ctx, lost.place):
            uuid = PhysicalId(mapping["UUID"])
            is_there = mapping.get("State") != "Deleting" and uuid not in lost.known
            if is_there and tags.are_ours(_tags(ctx, mapping), lost):
                return uuid
        return None

    def _find(self, ctx: Context, want: Want) -> dict[str, Any] | None:
        """Our own mapping of this function and source; None when there is none. A foreign one is refused."""

        def look() -> list[dict[str, Any]] | None:
            there = self._of_same_source(ctx, want.properties)
            return None if any(item.get("State") == "Deleting" for item in there) else there

        there = wait_for(ctx, look, budget_ms=_DELETING_BUDGET_MS, what="the deletion of an older event source mapping")
        for mapping in there:
            if tags.are_ours(_tags(ctx, mapping), want):
                return mapping
        if there:
            raise tags.foreign(
                "event source mapping",
                f"{there[0]['UUID']} of {want.properties['FunctionName']}",
                service="lambda",
                operation="CreateEventSourceMapping",
                code=_EXISTS,
            )
        return None

    def _of_same_source(self, ctx: Context, properties: Props) -> list[dict[str, Any]]:
        params = {"FunctionName": properties["FunctionName"]}
        if properties.get("EventSourceArn"):
            params["EventSourceArn"] = properties["EventSourceArn"]
        try:
            listed = [
                mapping
                for page in ctx.aws.pages("lambda", "ListEventSourceMappings", params)
                for mapping in page.get("EventSourceMappings", [])
            ]
        except AwsError as error:
            if error.code == _GONE:
                return []
            raise
        return [
            mapping
            for mapping in listed
            if lambda_names.parse(mapping["FunctionArn"]) == lambda_names.parse(properties["FunctionName"])
            and all((mapping.get(name) or None) == (properties.get(name) or None) for name in _SOURCES)
        ]

    def settled(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> tuple[Settle, Made | None]:
        """Enabled or Disabled."""
        mapping = _get(ctx, physical_id)
        if mapping is None:
            raise ResourceFailed(f"event source mapping {physical_id} is gone before it became active")
        return (Settle.DONE if _is_settled(mapping) else Settle.PENDING), None

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The mapping and its tags; one that is being deleted is gone."""
        mapping = _get(ctx, physical_id)
        if mapping is None or mapping.get("State") == "Deleting":
            return None
        seen = self._shape(mapping, properties)
        seen["Tags"] = tags.visible_list(_tags(ctx, mapping))
        return Seen(seen, _attributes(ctx, mapping))

    def _shape(self, mapping: Mapping[str, Any], properties: Props) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name in (*_ONCE, *_CHANGEABLE):
            value = mapping.get(_API_NAMES.get(name, name))
            if value is not None:
                seen[name] = value
            elif name in properties and name in self.defaults:
                seen[name] = self.defaults[name]
        seen["FunctionName"] = lambda_names.as_declared(
            mapping.get("FunctionArn", ""), properties.get("FunctionName") or ""
        )
        seen["Enabled"] = mapping.get("State") not in ("Disabled", "Disabling")
        if properties.get("Enabled") is False and mapping.get("State") == "Creating":
            seen["Enabled"] = False
        started = seen.get("StartingPositionTimestamp")
        if isinstance(started, datetime):
            seen["StartingPositionTimestamp"] = started.timestamp()
        if seen.get("DestinationConfig") == {"OnFailure": {}}:
            seen["DestinationConfig"] = {}
        return seen

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """One call for everything that changed; a removed property is sent with its default."""
        new = want.properties
        for name in _ONCE:
            if old and old.get(name) != new.get(name):
                raise InputError(
                    f"{name} of an event source mapping cannot be changed in place",
                    hint="Replace the resource: give it another logical id, or use --replace.",
                )
        changes = self._changes(old, new)
        is_settled = True
        if changes:
            answer = ctx.aws.call("lambda", "UpdateEventSourceMapping", {"UUID": physical_id, **changes})
            is_settled = _is_settled(answer)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        arn = _arn(ctx, physical_id)
        if change.put:
            ctx.aws.call("lambda", "TagResource", {"Resource": arn, "Tags": dict(change.put)})
        if change.remove:
            ctx.aws.call("lambda", "UntagResource", {"Resource": arn, "TagKeys": list(change.remove)})
        return Made(physical_id, {"Id": str(physical_id), "EventSourceMappingArn": arn}, is_settled=is_settled)

    def _changes(self, old: Props, new: Props) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for name in _CHANGEABLE:
            if old.get(name) != new.get(name):
                value = new.get(name, self._default(name, new))
                if value is not None:
                    changes[_API_NAMES.get(name, name)] = value
        for name in _KAFKA_CONFIGS:
            # A consumer group is fixed at the create call, and refused when it is sent again.
            if name in changes and (old.get(name) or {}).get("ConsumerGroupId") == changes[name].get("ConsumerGroupId"):
                changes[name] = {key: value for key, value in changes[name].items() if key != "ConsumerGroupId"}
        return changes

    def _default(self, name: str, properties: Props) -> Any:
        if name == "BatchSize":
            return 10 if ":sqs:" in str(properties.get("EventSourceArn") or "") else 100
        return self.defaults.get(name)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """Delete; it stays listed as Deleting for a while, which a later create waits out."""
        try:
            ctx.aws.call("lambda", "DeleteEventSourceMapping", {"UUID": physical_id})
        except AwsError as error:
            if error.code != _GONE:
                raise

    def replaces(self, old: Props, new: Props, changed: frozenset[str]) -> bool | None:
        """No call changes what is consumed."""
        return True if changed & set(_ONCE) else None


def _get(ctx: Context, uuid: str) -> dict[str, Any] | None:
    try:
        return ctx.aws.call("lambda", "GetEventSourceMapping", {"UUID": uuid})
    except AwsError as error:
        if error.code == _GONE:
            return None
        raise


def _is_settled(mapping: Mapping[str, Any]) -> bool:
    return mapping.get("State", "Enabled") in ("Enabled", "Disabled")


def _arn(ctx: Context, uuid: str) -> str:
    return f"arn:{ctx.partition}:lambda:{ctx.region}:{ctx.account}:event-source-mapping:{uuid}"


def _tags(ctx: Context, mapping: Mapping[str, Any]) -> Any:
    arn = mapping.get("EventSourceMappingArn") or _arn(ctx, mapping["UUID"])
    try:
        return ctx.aws.call("lambda", "ListTags", {"Resource": arn}).get("Tags")
    except AwsError as error:
        if error.code == _GONE:
            return {}
        raise


def _attributes(ctx: Context, mapping: Mapping[str, Any]) -> dict[str, Any]:
    uuid = mapping["UUID"]
    return {"Id": uuid, "EventSourceMappingArn": mapping.get("EventSourceMappingArn") or _arn(ctx, uuid)}
