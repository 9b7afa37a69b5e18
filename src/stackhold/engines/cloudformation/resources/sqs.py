"""SQS queues and their policies.

A queue's physical id is its URL. `CreateQueue` gives an existing queue of that name and those attributes as if it
had made it, so an explicit name is looked up before and after it. A name is blocked for a minute after its queue was
deleted; the caller waits for that.
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

_GONE: Final = frozenset(
    {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "com.amazonaws.sqs#QueueDoesNotExist"}
)
_EXISTS: Final = frozenset({"QueueAlreadyExists", "QueueNameExists", "com.amazonaws.sqs#QueueNameExists"})

_NUMBERS: Final = frozenset(
    {
        "DelaySeconds",
        "KmsDataKeyReusePeriodSeconds",
        "MaximumMessageSize",
        "MessageRetentionPeriod",
        "ReceiveMessageWaitTimeSeconds",
        "VisibilityTimeout",
    }
)
_BOOLEANS: Final = frozenset({"ContentBasedDeduplication", "FifoQueue", "SqsManagedSseEnabled"})
_TEXTS: Final = frozenset({"DeduplicationScope", "FifoThroughputLimit", "KmsMasterKeyId"})
_DOCUMENTS: Final = frozenset({"RedriveAllowPolicy", "RedrivePolicy"})
_ATTRIBUTES: Final = _NUMBERS | _BOOLEANS | _TEXTS | _DOCUMENTS


class Queue(Handler):
    """`AWS::SQS::Queue`."""

    type: ClassVar[TypeName] = TypeName("AWS::SQS::Queue")
    properties: ClassVar[frozenset[str]] = _ATTRIBUTES | {"QueueName", "Tags"}
    name_rule: ClassVar[NameRule | None] = NameRule(
        property="QueueName", limit=80, suffix=lambda properties: ".fifo" if properties.get("FifoQueue") else ""
    )
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    takes_over: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "ContentBasedDeduplication": False,
        "DeduplicationScope": "queue",
        "DelaySeconds": 0,
        "FifoQueue": False,
        "FifoThroughputLimit": "perQueue",
        "KmsDataKeyReusePeriodSeconds": 300,
        "KmsMasterKeyId": "",
        "MaximumMessageSize": 1_048_576,
        "MessageRetentionPeriod": 345_600,
        "ReceiveMessageWaitTimeSeconds": 0,
        "RedriveAllowPolicy": {},
        "RedrivePolicy": {},
        "SqsManagedSseEnabled": True,
        "Tags": [],
        "VisibilityTimeout": 30,
    }
    moves: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "DeduplicationScope": ("FifoThroughputLimit",),
        "FifoThroughputLimit": ("DeduplicationScope",),
        "KmsMasterKeyId": ("KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"),
        "SqsManagedSseEnabled": ("KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId"),
    }
    is_stateful: ClassVar[bool] = True

    def create(self, ctx: Context, want: Want) -> Made:
        """One call; one more before it and two after it when the template chose the name."""
        claim = claims.Claim(
            ctx,
            want,
            kind="queue",
            service="sqs",
            operation="CreateQueue",
            is_chosen=claims.is_chosen(self, want),
            tags_there=lambda: self._tags_of_name(ctx, want.name),
            code="QueueNameExists",
        )
        if claim.is_there() and (there := self._url_of(ctx, want.name)) is not None:
            return self._take_on(ctx, there, want)
        try:
            answer = claim.send(_create_params(want))
        except (AwsError, OutcomeUnknown) as problem:
            if isinstance(problem, AwsError) and problem.code not in _EXISTS:
                raise
            url = self._url_of(ctx, want.name)
            if url is None:
                raise
            return self._take_on(ctx, url, want)
        url = str(answer["QueueUrl"])
        claim.confirm()
        return Made(PhysicalId(url), _queue_attributes(ctx, url))

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """Attributes; tags when they are declared."""
        try:
            answer = ctx.aws.call("sqs", "GetQueueAttributes", {"QueueUrl": physical_id, "AttributeNames": ["All"]})
            seen = _from_attributes(answer.get("Attributes", {}))
            if "Tags" in properties:
                there = ctx.aws.call("sqs", "ListQueueTags", {"QueueUrl": physical_id}).get("Tags")
                seen["Tags"] = tags.visible_list(there)
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise
        seen["QueueName"] = _name_in(physical_id)
        return Seen(seen, _queue_attributes(ctx, physical_id))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """There is no call for many queues."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """At most one call for attributes, one for new tags, one for tags to take off."""
        names = differing(old, want.properties, _ATTRIBUTES - {"FifoQueue"})
        if want.properties.get("KmsMasterKeyId") and want.properties.get("SqsManagedSseEnabled") is None:
            # A queue with a key of its own cannot have the service's at the same time.
            names = [name for name in names if name != "SqsManagedSseEnabled"]
        if names:
            attributes = {name: _attribute(name, want.properties.get(name, self.defaults[name])) for name in names}
            ctx.aws.call("sqs", "SetQueueAttributes", {"QueueUrl": physical_id, "Attributes": attributes})
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if change.put:
            ctx.aws.call("sqs", "TagQueue", {"QueueUrl": physical_id, "Tags": dict(change.put)})
        if change.remove:
            ctx.aws.call("sqs", "UntagQueue", {"QueueUrl": physical_id, "TagKeys": list(change.remove)})
        return Made(physical_id, _queue_attributes(ctx, physical_id))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call."""
        try:
            ctx.aws.call("sqs", "DeleteQueue", {"QueueUrl": physical_id})
        except AwsError as refused:
            if refused.code not in _GONE:
                raise

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The queue of that name."""
        url = self._url_of(ctx, lost.name)
        return finding.named(lost, url, _tags_of(ctx, url)) if url is not None else None

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        """One call."""
        return _tags_of(ctx, physical_id)

    def _tags_of_name(self, ctx: Context, name: str) -> Any:
        url = self._url_of(ctx, name)
        return _tags_of(ctx, url) if url is not None else None

    def _take_on(self, ctx: Context, url: str, want: Want) -> Made:
        there = _tags_of(ctx, url)
        if not tags.are_ours(there, want):
            raise tags.foreign(
                "queue", want.name, service="sqs", operation="CreateQueue", code="QueueNameExists", there=there
            )
        ctx.note(PhysicalId(url))
        return self.update(ctx, PhysicalId(url), {}, want)

    def _url_of(self, ctx: Context, name: str) -> str | None:
        try:
            return str(ctx.aws.call("sqs", "GetQueueUrl", {"QueueName": name})["QueueUrl"])
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise


class QueuePolicy(Handler):
    """`AWS::SQS::QueuePolicy`: one policy on one or more queues. Its physical id is the first queue's URL."""

    type: ClassVar[TypeName] = TypeName("AWS::SQS::QueuePolicy")
    properties: ClassVar[frozenset[str]] = frozenset({"PolicyDocument", "Queues"})
    found_by: ClassVar[FoundBy] = FoundBy.CHILD
    where: ClassVar[tuple[str, ...]] = ("Queues",)

    def create(self, ctx: Context, want: Want) -> Made:
        """One call per queue; it overwrites whatever policy is there."""
        queues = _queues(want.properties)
        ctx.note(PhysicalId(queues[0]))
        self._put(ctx, queues, want.properties["PolicyDocument"])
        return _policy_made(PhysicalId(queues[0]), want.properties)

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """The policy of every queue; queues without one are left out, and one that differs is the one shown."""
        declared = document(properties.get("PolicyDocument"))
        found = {url: self._policy_of(ctx, url) for url in (_queues(properties) or [physical_id])}
        held = {url: policy for url, policy in found.items() if policy is not None}
        if not held:
            return None
        shown = next((policy for policy in held.values() if policy != declared), declared)
        return Seen({"Queues": list(held), "PolicyDocument": shown}, {"Id": physical_id})

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """There is no call for many queues."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """The new policy on every queue; taken off those that left the list."""
        queues = _queues(want.properties)
        if old != want.properties:
            self._put(ctx, queues, want.properties["PolicyDocument"])
        self._clear(ctx, [url for url in _queues(old) if url not in queues])
        return _policy_made(physical_id, want.properties)

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """An empty policy on each queue that still exists."""
        self._clear(ctx, _queues(properties) or [physical_id])

    def place(self, properties: Props) -> Props:
        """The queues, and what the policy says as far as that is known."""
        return {**super().place(properties), **finding.content(properties, "PolicyDocument")}

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """The policy on one of the queues. On a queue of somebody else only one that says just this is ours."""
        queues = _queues(lost.place)
        for url in queues:
            policy = self._policy_of(ctx, url)
            is_ours = url in lost.stack or finding.says(lost.place, "PolicyDocument", policy)
            if policy is not None and is_ours and PhysicalId(queues[0]) not in lost.known:
                return PhysicalId(queues[0])
        return None

    def _put(self, ctx: Context, queues: list[str], policy: Any) -> None:
        for url in queues:
            attributes = {"Policy": as_text(policy)}
            ctx.aws.call("sqs", "SetQueueAttributes", {"QueueUrl": url, "Attributes": attributes})

    def _clear(self, ctx: Context, queues: list[str]) -> None:
        for url in queues:
            try:
                ctx.aws.call("sqs", "SetQueueAttributes", {"QueueUrl": url, "Attributes": {"Policy": ""}})
            except AwsError as refused:
                if refused.code not in _GONE:
                    raise

    def _policy_of(self, ctx: Context, url: str) -> Any:
        try:
            answer = ctx.aws.call("sqs", "GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["Policy"]})
        except AwsError as refused:
            if refused.code in _GONE:
                return None
            raise
        return document(answer.get("Attributes", {}).get("Policy", ""))


def _tags_of(ctx: Context, url: str) -> Any:
    """All tags of a queue; None when it does not exist."""
    try:
        return ctx.aws.call("sqs", "ListQueueTags", {"QueueUrl": url}).get("Tags") or {}
    except AwsError as refused:
        if refused.code in _GONE:
            return None
        raise


def _create_params(want: Want) -> dict[str, Any]:
    new = want.properties
    attributes = {
        name: _attribute(name, new[name])
        for name in sorted(_ATTRIBUTES)
        if new.get(name) is not None and (name != "FifoQueue" or new[name])
    }
    params: dict[str, Any] = {"QueueName": want.name, "tags": tags.for_create(want)}
    return {**params, "Attributes": attributes} if attributes else params


def _attribute(name: str, value: Any) -> str:
    if name in _DOCUMENTS:
        return as_text(value) if value else ""
    return text(value)


def _from_attributes(attributes: Mapping[str, str]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name in _ATTRIBUTES & attributes.keys():
        value = attributes[name]
        if name in _NUMBERS:
            seen[name] = int(value)
        elif name in _BOOLEANS:
            seen[name] = value.lower() == "true"
        elif name in _DOCUMENTS:
            seen[name] = document(value) or {}
        else:
            seen[name] = value
    return seen


def _name_in(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def _queue_attributes(ctx: Context, url: str) -> dict[str, str]:
    name = _name_in(url)
    return {
        "Arn": f"arn:{ctx.partition}:sqs:{ctx.region}:{ctx.account}:{name}",
        "QueueUrl": url,
        "QueueName": name,
    }


def _queues(properties: Mapping[str, Any]) -> list[str]:
    return [str(url) for url in properties.get("Queues") or []]


def _policy_made(physical_id: PhysicalId, properties: Props) -> Made:
    observed = {"Queues": _queues(properties), "PolicyDocument": document(properties["PolicyDocument"])}
    return Made(physical_id, {"Id": physical_id}, observed=observed)
