"""SNS topics and subscriptions.

A topic's physical id is its ARN, which follows from its name. `CreateTopic` gives an existing topic as if it had
made it, so an explicit name is looked up before and after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import claims, finding, tags
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.documents import as_text
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.engines.cloudformation.resources.shapes import differing, document, text
from stackhold.errors import AwsError, OutcomeUnknown
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = frozenset({"NotFound", "NotFoundException", "ResourceNotFound", "ResourceNotFoundException"})
_DIFFERENT: Final = frozenset({"InvalidParameter", "InvalidParameterException"})

_TOPIC_BOOLEANS: Final = frozenset({"ContentBasedDeduplication", "FifoTopic"})
_TOPIC_TEXTS: Final = frozenset(
    {"DisplayName", "FifoThroughputScope", "KmsMasterKeyId", "SignatureVersion", "TracingConfig"}
)
_TOPIC_ATTRIBUTES: Final = _TOPIC_BOOLEANS | _TOPIC_TEXTS | {"ArchivePolicy"}
_FEEDBACK_PREFIX: Final = {
    "http/s": "HTTP",
    "sqs": "SQS",
    "lambda": "Lambda",
    "firehose": "Firehose",
    "application": "Application",
}
_FEEDBACK_FIELDS: Final = ("SuccessFeedbackRoleArn", "SuccessFeedbackSampleRate", "FailureFeedbackRoleArn")


class Topic(Handler):
    """`AWS::SNS::Topic`, but for subscriptions written inside of it."""

    type: ClassVar[TypeName] = TypeName("AWS::SNS::Topic")
    properties: ClassVar[frozenset[str]] = _TOPIC_ATTRIBUTES | {
        "DataProtectionPolicy",
        "DeliveryStatusLogging",
        "Tags",
        "TopicName",
    }
    name_rule: ClassVar[NameRule | None] = NameRule(
        property="TopicName", limit=256, suffix=lambda properties: ".fifo" if properties.get("FifoTopic") else ""
    )
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    takes_over: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "ArchivePolicy": {},
        "ContentBasedDeduplication": False,
        "DataProtectionPolicy": {},
        "DeliveryStatusLogging": [],
        "DisplayName": "",
        "FifoThroughputScope": "Topic",
        "FifoTopic": False,
        "KmsMasterKeyId": "",
        "SignatureVersion": "1",
        "Tags": [],
        "TracingConfig": "PassThrough",
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call; one more before it and one after it when the template chose the name."""
        arn = f"arn:{ctx.partition}:sns:{ctx.region}:{ctx.account}:{want.name}"
        claim = claims.Claim(
            ctx,
            want,
            kind="topic",
            service="sns",
            operation="CreateTopic",
            is_chosen=claims.is_chosen(self, want),
            tags_there=lambda: _tags_of(ctx, arn),
        )
        if claim.is_there():
            return self._take_on(ctx, arn, want)
        try:
            arn = str(claim.send(_create_params(want))["TopicArn"])
        except (AwsError, OutcomeUnknown) as problem:
            if isinstance(problem, AwsError) and problem.code not in _DIFFERENT:
                raise
            there = _tags_of(ctx, arn)
            if there is None:
                raise
            if not tags.are_ours(there, want):
                raise tags.foreign("topic", want.name, service="sns", operation="CreateTopic", there=there) from problem
            return self._take_on(ctx, arn, want)
        claim.confirm()
        return Made(PhysicalId(arn), _topic_attributes(arn))

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """Attributes; tags and the data protection policy when they are declared."""
        try:
            answer = ctx.aws.call("sns", "GetTopicAttributes", {"TopicArn": physical_id})
            seen = _topic_seen(answer.get("Attributes", {}))
            if "Tags" in properties:
                seen["Tags"] = tags.visible_list(_tags_of(ctx, physical_id))
            if "DataProtectionPolicy" in properties:
                policy = ctx.aws.call("sns", "GetDataProtectionPolicy", {"ResourceArn": physical_id})
                seen["DataProtectionPolicy"] = document(policy.get("DataProtectionPolicy", "")) or {}
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise
        return Seen({**seen, "TopicName": _name_in(physical_id)}, _topic_attributes(physical_id))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """There is no call for many topics."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """A call per attribute, since the service takes one at a time."""
        new = want.properties
        for name in differing(old, new, _TOPIC_ATTRIBUTES - {"FifoTopic"}):
            value = new.get(name, self.defaults[name])
            params = {"TopicArn": physical_id, "AttributeName": name, "AttributeValue": _topic_attribute(name, value)}
            ctx.aws.call("sns", "SetTopicAttributes", params)
        before, after = _feedback(old), _feedback(new)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                params = {"TopicArn": physical_id, "AttributeName": name, "AttributeValue": after.get(name, "")}
                ctx.aws.call("sns", "SetTopicAttributes", params)
        if old.get("DataProtectionPolicy") != new.get("DataProtectionPolicy"):
            policy = new.get("DataProtectionPolicy")
            params = {
                "ResourceArn": physical_id,
                "DataProtectionPolicy": as_text(policy) if policy else "",
            }
            ctx.aws.call("sns", "PutDataProtectionPolicy", params)
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            ctx.aws.call("sns", "TagResource", {"ResourceArn": physical_id, "Tags": tags.as_list(change.put)})
        if change.remove:
            ctx.aws.call("sns", "UntagResource", {"ResourceArn": physical_id, "TagKeys": list(change.remove)})
        return Made(physical_id, _topic_attributes(physical_id))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call; subscriptions go with the topic."""
        try:
            ctx.aws.call("sns", "DeleteTopic", {"TopicArn": physical_id})
        except AwsError as refused:
            if refused.code not in _GONE:
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The topic of that name."""
        arn = f"arn:{ctx.partition}:sns:{ctx.region}:{ctx.account}:{lost.name}"
        return finding.named(lost, arn, _tags_of(ctx, arn))

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        """One call."""
        return _tags_of(ctx, physical_id)

    def _take_on(self, ctx: Context, arn: str, want: Want) -> Made:
        ctx.note(PhysicalId(arn))
        return self.update(ctx, PhysicalId(arn), {}, want)


_SUBSCRIPTION_DOCUMENTS: Final = frozenset({"DeliveryPolicy", "FilterPolicy", "RedrivePolicy", "ReplayPolicy"})
_SUBSCRIPTION_ATTRIBUTES: Final = _SUBSCRIPTION_DOCUMENTS | {
    "FilterPolicyScope",
    "RawMessageDelivery",
    "SubscriptionRoleArn",
}


class Subscription(Handler):
    """`AWS::SNS::Subscription` to a topic of this region."""

    type: ClassVar[TypeName] = TypeName("AWS::SNS::Subscription")
    properties: ClassVar[frozenset[str]] = _SUBSCRIPTION_ATTRIBUTES | {"Endpoint", "Protocol", "TopicArn"}
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("TopicArn", "Protocol")
    defaults: ClassVar[Mapping[str, Any]] = {
        "DeliveryPolicy": {},
        "FilterPolicy": {},
        "FilterPolicyScope": "MessageAttributes",
        "RawMessageDelivery": False,
        "RedrivePolicy": {},
        "ReplayPolicy": {},
        "SubscriptionRoleArn": "",
    }

    def create(self, ctx: Context, want: Want) -> Made:
        """One call. The same topic, protocol and endpoint give the same subscription, so it may be sent again."""
        new = want.properties
        params: dict[str, Any] = {
            "TopicArn": new["TopicArn"],
            "Protocol": new["Protocol"],
            "ReturnSubscriptionArn": True,
        }
        if new.get("Endpoint"):
            params["Endpoint"] = new["Endpoint"]
        attributes = {
            name: _subscription_attribute(name, new[name])
            for name in sorted(_SUBSCRIPTION_ATTRIBUTES)
            if new.get(name) is not None
        }
        if attributes:
            params["Attributes"] = attributes
        arn = str(ctx.aws.call("sns", "Subscribe", params)["SubscriptionArn"])
        return Made(PhysicalId(arn), {"Arn": arn})

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """One call."""
        try:
            answer = ctx.aws.call("sns", "GetSubscriptionAttributes", {"SubscriptionArn": physical_id})
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise
        return Seen(_subscription_seen(answer.get("Attributes", {})), {"Arn": physical_id})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """The list of a topic's subscriptions has no attributes, so each is read."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """A call per attribute. The scope goes before the policy that it is to read."""
        names = differing(old, want.properties, _SUBSCRIPTION_ATTRIBUTES)
        for name in sorted(names, key=lambda name: (name != "FilterPolicyScope", name)):
            value = want.properties.get(name, self.defaults[name])
            params = {
                "SubscriptionArn": physical_id,
                "AttributeName": name,
                "AttributeValue": _subscription_attribute(name, value),
            }
            ctx.aws.call("sns", "SetSubscriptionAttributes", params)
        return Made(physical_id, {"Arn": physical_id})

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call. A subscription that nobody confirmed cannot be taken back and lapses by itself."""
        try:
            ctx.aws.call("sns", "Unsubscribe", {"SubscriptionArn": physical_id})
        except AwsError as refused:
            if refused.code in _GONE or (refused.code in _DIFFERENT and self._is_pending(ctx, physical_id)):
                return
            raise

    def place(self, properties: Props) -> Props:
        """Topic, protocol and endpoint: a subscription is one of these three."""
        return {**super().place(properties), **finding.discreet(properties, "Endpoint")}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The topic's subscription of that protocol and endpoint. One that nobody has confirmed has no id yet."""
        try:
            pages = list(ctx.aws.pages("sns", "ListSubscriptionsByTopic", {"TopicArn": lost.place["TopicArn"]}))
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise
        for item in (item for page in pages for item in page.get("Subscriptions", [])):
            arn = PhysicalId(item["SubscriptionArn"])
            is_it = item["Protocol"] == lost.place["Protocol"] and finding.fits(
                lost.place, "Endpoint", item.get("Endpoint")
            )
            if is_it and arn.startswith("arn:") and arn not in lost.known:
                return arn
        return None

    def _is_pending(self, ctx: Context, arn: str) -> bool:
        try:
            answer = ctx.aws.call("sns", "GetSubscriptionAttributes", {"SubscriptionArn": arn})
        except AwsError as refused:
            return refused.code in _GONE
        return str(answer.get("Attributes", {}).get("PendingConfirmation", "")).lower() == "true"


def _create_params(want: Want) -> dict[str, Any]:
    new = want.properties
    attributes = {
        name: _topic_attribute(name, new[name])
        for name in sorted(_TOPIC_ATTRIBUTES)
        if new.get(name) is not None and (name != "FifoTopic" or new[name])
    }
    attributes.update(_feedback(new))
    params: dict[str, Any] = {"Name": want.name, "Tags": tags.as_list(tags.for_create(want))}
    if attributes:
        params["Attributes"] = attributes
    if new.get("DataProtectionPolicy"):
        params["DataProtectionPolicy"] = as_text(new["DataProtectionPolicy"])
    return params


def _topic_attribute(name: str, value: Any) -> str:
    return as_text(value) if name == "ArchivePolicy" else text(value)


def _topic_seen(attributes: Mapping[str, str]) -> dict[str, Any]:
    seen: dict[str, Any] = {name: attributes[name] for name in _TOPIC_TEXTS & attributes.keys()}
    seen.update({name: attributes[name].lower() == "true" for name in _TOPIC_BOOLEANS & attributes.keys()})
    if attributes.get("ArchivePolicy"):
        seen["ArchivePolicy"] = document(attributes["ArchivePolicy"])
    seen["DeliveryStatusLogging"] = _feedback_seen(attributes)
    return seen


def _feedback(properties: Mapping[str, Any]) -> dict[str, str]:
    """`DeliveryStatusLogging` as topic attributes."""
    return {
        f"{_FEEDBACK_PREFIX[str(entry['Protocol']).lower()]}{field}": text(entry[field])
        for entry in properties.get("DeliveryStatusLogging") or []
        for field in _FEEDBACK_FIELDS
        if entry.get(field) is not None
    }


def _feedback_seen(attributes: Mapping[str, str]) -> list[dict[str, str]]:
    entries = []
    for protocol, prefix in _FEEDBACK_PREFIX.items():
        fields = {field: attributes.get(prefix + field, "") for field in _FEEDBACK_FIELDS}
        if any(fields.values()):
            entries.append({"Protocol": protocol, **{key: value for key, value in fields.items() if value}})
    return entries


def _tags_of(ctx: Context, arn: str) -> Any:
    """A topic's tags; None when there is no such topic."""
    try:
        return ctx.aws.call("sns", "ListTagsForResource", {"ResourceArn": arn}).get("Tags", [])
    except AwsError as refused:
        if refused.code in _GONE:
            return None
        raise


def _name_in(arn: str) -> str:
    return arn.rpartition(":")[2]


def _topic_attributes(arn: str) -> dict[str, str]:
    return {"TopicArn": arn, "TopicName": _name_in(arn)}


def _subscription_attribute(name: str, value: Any) -> str:
    if name in _SUBSCRIPTION_DOCUMENTS:
        if value:
            return as_text(value)
        return "{}" if name in {"FilterPolicy", "DeliveryPolicy"} else ""
    return text(value)


def _subscription_seen(attributes: Mapping[str, str]) -> dict[str, Any]:
    seen: dict[str, Any] = {
        name: attributes[name] for name in ("Endpoint", "Protocol", "TopicArn") if name in attributes
    }
    for name in sorted(_SUBSCRIPTION_ATTRIBUTES & attributes.keys()):
        value = attributes[name]
        if name in _SUBSCRIPTION_DOCUMENTS:
            seen[name] = document(value) or {}
        elif name == "RawMessageDelivery":
            seen[name] = str(value).lower() == "true"
        else:
            seen[name] = value
    return seen
