"""S3 buckets.

A bucket is one create call, which takes tags, ownership and object lock, and one call per further configuration.
`_PARTS` says for each how it is put, read and taken away; all of these calls overwrite, so they can be made again.
Names are shared by the whole world: every call but the create names the account that must own the bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stackhold.engines.cloudformation.resources import claims, finding, tags
from stackhold.engines.cloudformation.resources import s3_forms as forms
from stackhold.engines.cloudformation.resources.bulk import read_side_by_side
from stackhold.engines.cloudformation.resources.handler import FoundBy, Handler, Made, NameRule, Seen
from stackhold.engines.cloudformation.resources.shapes import differing, like
from stackhold.errors import AwsError, ResourceFailed
from stackhold.model.ids import PhysicalId, TypeName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.engines.cloudformation.resources.handler import Context, Lost, Want
    from stackhold.engines.cloudformation.values import Props

_GONE: Final = frozenset({"NoSuchBucket", "404"})
_EXISTS: Final = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists"})
_NO_TAGS: Final = frozenset({"NoSuchTagSet", "NoSuchTagSetError"})
_CREATE_TAKES: Final = frozenset({"AccessControl", "ObjectLockEnabled", "OwnershipControls"})
_DASHED_WEBSITES: Final = frozenset(
    {
        "ap-northeast-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "eu-west-1",
        "sa-east-1",
        "us-east-1",
        "us-gov-west-1",
        "us-west-1",
        "us-west-2",
    }
)
_URL_SUFFIXES: Final = {"aws-cn": "amazonaws.com.cn", "aws-iso": "c2s.ic.gov", "aws-iso-b": "sc2s.sgov.gov"}
_CANNED: Final = {
    "AuthenticatedRead": "authenticated-read",
    "AwsExecRead": "aws-exec-read",
    "BucketOwnerFullControl": "bucket-owner-full-control",
    "BucketOwnerRead": "bucket-owner-read",
    "LogDeliveryWrite": "log-delivery-write",
    "Private": "private",
    "PublicRead": "public-read",
    "PublicReadWrite": "public-read-write",
}

Form = Callable[[Any, str], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Part:
    """One configuration of a bucket."""

    put: str
    get: str
    sent: Form
    """Property and bucket to the parameters of `put`."""
    seen: Callable[[Mapping[str, Any], Any], Any]
    """Answer of `get` and what is declared to the property; None when it is not set."""
    absent: str = ""
    """The code of `get` when it is not set."""
    take_away: str = ""
    """The call that unsets it; without one, `put` with the handler's default or `reset`."""
    reset: Mapping[str, Any] | None = None


_PARTS: Final[Mapping[str, _Part]] = {
    "OwnershipControls": _Part(
        put="PutBucketOwnershipControls",
        get="GetBucketOwnershipControls",
        sent=lambda value, _: {"OwnershipControls": value},
        seen=lambda answer, _: answer.get("OwnershipControls"),
        absent="OwnershipControlsNotFoundError",
        take_away="DeleteBucketOwnershipControls",
    ),
    "PublicAccessBlockConfiguration": _Part(
        put="PutPublicAccessBlock",
        get="GetPublicAccessBlock",
        sent=lambda value, _: {"PublicAccessBlockConfiguration": value},
        seen=lambda answer, _: answer.get("PublicAccessBlockConfiguration"),
        absent="NoSuchPublicAccessBlockConfiguration",
    ),
    "BucketEncryption": _Part(
        put="PutBucketEncryption",
        get="GetBucketEncryption",
        sent=lambda value, _: {"ServerSideEncryptionConfiguration": forms.encryption_to(value)},
        seen=lambda answer, declared: forms.encryption_from(
            answer.get("ServerSideEncryptionConfiguration") or {}, declared
        ),
        absent="ServerSideEncryptionConfigurationNotFoundError",
        take_away="DeleteBucketEncryption",
    ),
    "VersioningConfiguration": _Part(
        put="PutBucketVersioning",
        get="GetBucketVersioning",
        sent=lambda value, _: {"VersioningConfiguration": value},
        seen=lambda answer, _: {"Status": answer["Status"]} if answer.get("Status") else None,
    ),
    "LifecycleConfiguration": _Part(
        put="PutBucketLifecycleConfiguration",
        get="GetBucketLifecycleConfiguration",
        sent=lambda value, _: {
            "LifecycleConfiguration": forms.lifecycle_to(value),
            **{key: entry for key, entry in value.items() if key != "Rules"},
        },
        seen=forms.lifecycle_from,
        absent="NoSuchLifecycleConfiguration",
        take_away="DeleteBucketLifecycle",
    ),
    "CorsConfiguration": _Part(
        put="PutBucketCors",
        get="GetBucketCors",
        sent=lambda value, _: {"CORSConfiguration": forms.cors_to(value)},
        seen=lambda answer, _: forms.cors_from(answer),
        absent="NoSuchCORSConfiguration",
        take_away="DeleteBucketCors",
    ),
    "WebsiteConfiguration": _Part(
        put="PutBucketWebsite",
        get="GetBucketWebsite",
        sent=lambda value, _: {"WebsiteConfiguration": forms.website_to(value)},
        seen=lambda answer, _: forms.website_from(answer),
        absent="NoSuchWebsiteConfiguration",
        take_away="DeleteBucketWebsite",
    ),
    "LoggingConfiguration": _Part(
        put="PutBucketLogging",
        get="GetBucketLogging",
        sent=lambda value, bucket: {"BucketLoggingStatus": forms.logging_to(value, bucket=bucket)},
        seen=lambda answer, _: forms.logging_from(answer),
        reset={"BucketLoggingStatus": {}},
    ),
    "NotificationConfiguration": _Part(
        put="PutBucketNotificationConfiguration",
        get="GetBucketNotificationConfiguration",
        sent=lambda value, _: {"NotificationConfiguration": forms.notification_to(value)},
        seen=forms.notification_from,
        reset={"NotificationConfiguration": {}},
    ),
    "AccelerateConfiguration": _Part(
        put="PutBucketAccelerateConfiguration",
        get="GetBucketAccelerateConfiguration",
        sent=lambda value, _: {"AccelerateConfiguration": {"Status": value["AccelerationStatus"]}},
        seen=lambda answer, _: {"AccelerationStatus": answer["Status"]} if answer.get("Status") else None,
    ),
    "ObjectLockConfiguration": _Part(
        put="PutObjectLockConfiguration",
        get="GetObjectLockConfiguration",
        sent=lambda value, _: {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled", **value}},
        seen=lambda answer, _: answer.get("ObjectLockConfiguration"),
        absent="ObjectLockConfigurationNotFoundError",
        reset={"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}},
    ),
}
"""In the order in which they are put: who may set ACLs and policies comes before what would be refused by it."""

_ALWAYS_READ: Final = frozenset({"BucketEncryption", "PublicAccessBlockConfiguration", "VersioningConfiguration"})
"""What a baseline covers even when a template leaves it open, beside tags."""


class Bucket(Handler):
    """`AWS::S3::Bucket`, but for analytics, inventories, metrics, tiering, replication and metadata tables."""

    type: ClassVar[TypeName] = TypeName("AWS::S3::Bucket")
    properties: ClassVar[frozenset[str]] = frozenset(_PARTS) | {
        "AccessControl",
        "BucketName",
        "ObjectLockEnabled",
        "Tags",
    }
    name_rule: ClassVar[NameRule | None] = NameRule(
        property="BucketName",
        limit=63,
        lower=True,
        reserved=("xn--", "sthree-", "amzn-s3-demo-"),
        reserved_ends=("-s3alias", "--ol-s3", "--x-s3", "--table-s3", ".mrap"),
    )
    found_by: ClassVar[FoundBy] = FoundBy.NAME
    takes_over: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "AccelerateConfiguration": {"AccelerationStatus": "Suspended"},
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        },
        "ObjectLockEnabled": False,
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
        "Tags": [],
        "VersioningConfiguration": {"Status": "Suspended"},
    }
    write_only: ClassVar[frozenset[str]] = frozenset({"AccessControl"})
    is_stateful: ClassVar[bool] = True

    def create(self, ctx: Context, want: Want) -> Made:
        """One call, one more per configuration; one before and one after the first when the template chose the name.

        In us-east-1 a create of a bucket that we own succeeds, hence these looks. Some servers of the S3 interface keep
        no tags of a create: what carries none at all afterwards counts as made.
        """
        new = want.properties
        claim = claims.Claim(
            ctx,
            want,
            kind="bucket",
            service="s3",
            operation="CreateBucket",
            is_chosen=claims.is_chosen(self, want),
            tags_there=lambda: self._look(ctx, want.name),
            code="BucketAlreadyOwnedByYou",
            overwrites=True,
            keeps_tags=False,
        )
        if claim.is_there():
            return self._take_on(ctx, want)
        try:
            claim.send(_create_params(ctx, want))
        except AwsError as refused:
            if refused.code not in _EXISTS:
                raise
            there = self._owner_tags(ctx, want.name)
            if there is None or refused.code == "BucketAlreadyExists":
                raise tags.foreign(
                    "bucket", want.name, service="s3", operation="CreateBucket", code=refused.code
                ) from refused
            if not tags.are_ours(there, want):
                raise tags.foreign(
                    "bucket", want.name, service="s3", operation="CreateBucket", code=refused.code, there=there
                ) from refused
            return self._take_on(ctx, want)
        claim.confirm()
        ctx.note(PhysicalId(want.name))
        self._put_parts(ctx, want.name, {name: new[name] for name in _CREATE_TAKES if name in new}, new)
        return Made(PhysicalId(want.name), _attributes(ctx, want.name))

    def read(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Seen | None:
        """A call for the tags and one per configuration that is declared or that a baseline covers."""
        there = self._owner_tags(ctx, physical_id)
        if there is None:
            return None
        seen: Props = {"BucketName": physical_id, "Tags": tags.visible_list(there)}
        for name, part in _PARTS.items():
            if name in properties or name in _ALWAYS_READ:
                value = self._part_of(ctx, physical_id, part, properties.get(name))
                if value is not None:
                    seen[name] = value
        if "ObjectLockEnabled" in properties:
            lock = self._part_of(ctx, physical_id, _PARTS["ObjectLockConfiguration"], None) or {}
            seen["ObjectLockEnabled"] = lock.get("ObjectLockEnabled") == "Enabled"
        return Seen(seen, _attributes(ctx, physical_id))

    def read_many(self, ctx: Context, wanted: Mapping[PhysicalId, Props]) -> dict[PhysicalId, Seen]:
        """There is no call for many buckets."""
        return read_side_by_side(self, ctx, wanted)

    def update(self, ctx: Context, physical_id: PhysicalId, old: Props, want: Want) -> Made:
        """A call per configuration; two when tags change, since S3 replaces all of them at once."""
        self._object_lock(ctx, physical_id, old, want.properties)
        self._put_parts(ctx, physical_id, old, want.properties)
        if old.get("AccessControl") != want.properties.get("AccessControl"):
            acl = _CANNED[want.properties.get("AccessControl") or "Private"]
            ctx.aws.call("s3", "PutBucketAcl", {**_bucket(ctx, physical_id), "ACL": acl})
        self._retag(ctx, physical_id, old, want)
        return Made(physical_id, _attributes(ctx, physical_id))

    def delete(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> None:
        """One call. A bucket with objects stays: its data is not ours to throw away."""
        try:
            ctx.aws.call("s3", "DeleteBucket", _bucket(ctx, physical_id))
        except AwsError as refused:
            if refused.code in _GONE:
                return
            if refused.code != "BucketNotEmpty":
                raise
            raise AwsError(
                service=refused.service,
                operation=refused.operation,
                code=refused.code,
                reason=f"bucket {physical_id} still holds objects or old versions",
                status=refused.status,
                request_id=refused.request_id,
                hint=f"Empty it (aws s3 rm s3://{physical_id} --recursive; old versions too) and run again, "
                "or keep it with DeletionPolicy: Retain.",
            ) from refused

    def find(self, ctx: Context, lost: Lost) -> PhysicalId | None:
        """Our account's bucket of that name; one that we may not look at is somebody else's."""
        try:
            return finding.named(lost, lost.name, self._owner_tags(ctx, lost.name))
        except AwsError as refused:
            if refused.status == 403:
                return None
            raise

    def tags_there(self, ctx: Context, physical_id: PhysicalId, properties: Props) -> Any:
        """One call."""
        return self._owner_tags(ctx, physical_id)

    def _put_parts(self, ctx: Context, name: str, old: Props, new: Props) -> None:
        changed = set(differing(old, new, _PARTS))
        for property_name, part in _PARTS.items():
            if property_name not in changed:
                continue
            value = new.get(property_name)
            if value is None and part.take_away:
                ctx.aws.call("s3", part.take_away, _bucket(ctx, name))
            elif value is None and part.reset is not None:
                ctx.aws.call("s3", part.put, {**_bucket(ctx, name), **part.reset})
            else:
                sent = part.sent(value if value is not None else self.defaults[property_name], name)
                ctx.aws.call("s3", part.put, {**_bucket(ctx, name), **sent})

    def _part_of(self, ctx: Context, name: str, part: _Part, declared: Any) -> Any:
        try:
            answer = ctx.aws.call("s3", part.get, _bucket(ctx, name))
        except AwsError as refused:
            if refused.code == part.absent or refused.code in _GONE:
                return None
            raise
        value = part.seen(answer, declared)
        return value if declared is None else like(declared, value)

    def _object_lock(self, ctx: Context, name: str, old: Props, new: Props) -> None:
        if bool(old.get("ObjectLockEnabled")) == bool(new.get("ObjectLockEnabled")):
            return
        if not new.get("ObjectLockEnabled"):
            raise ResourceFailed(
                f"object lock of bucket {name} cannot be turned off",
                hint="Leave ObjectLockEnabled as it was, or give the bucket another logical id or name.",
            )
        if "ObjectLockConfiguration" not in new:
            lock = {"ObjectLockConfiguration": {"ObjectLockEnabled": "Enabled"}}
            ctx.aws.call("s3", "PutObjectLockConfiguration", {**_bucket(ctx, name), **lock})

    def _retag(self, ctx: Context, name: str, old: Props, want: Want) -> None:
        change = tags.change(old.get("Tags"), tags.of_template(want))
        if not change.put and not change.remove:
            return
        there = tags.as_map(self._owner_tags(ctx, name) or [])
        kept = {key: value for key, value in there.items() if key not in change.remove}
        after = {**kept, **change.put}
        if after == there:
            return
        if after:
            ctx.aws.call("s3", "PutBucketTagging", {**_bucket(ctx, name), "Tagging": {"TagSet": tags.as_list(after)}})
        else:
            ctx.aws.call("s3", "DeleteBucketTagging", _bucket(ctx, name))

    def _owner_tags(self, ctx: Context, name: str) -> Any:
        """All tags of our account's bucket of this name; None when we have none."""
        try:
            return ctx.aws.call("s3", "GetBucketTagging", _bucket(ctx, name)).get("TagSet", [])
        except AwsError as refused:
            if refused.code in _NO_TAGS:
                return []
            if refused.code in _GONE:
                return None
            raise

    def _look(self, ctx: Context, name: str) -> Any:
        """`_owner_tags` before a create: a refusal means that the name is taken, most often."""
        try:
            return self._owner_tags(ctx, name)
        except AwsError as refused:
            if refused.status != 403:
                raise
            raise AwsError(
                service=refused.service,
                operation=refused.operation,
                code=refused.code,
                reason=f"bucket {name} exists and is not ours to look at",
                status=refused.status,
                request_id=refused.request_id,
                hint="Bucket names are shared by all accounts: choose another. If it is this account's own, "
                "allow s3:GetBucketTagging.",
            ) from refused

    def _take_on(self, ctx: Context, want: Want) -> Made:
        ctx.note(PhysicalId(want.name))
        return self.update(ctx, PhysicalId(want.name), {}, want)


def _bucket(ctx: Context, name: str) -> dict[str, Any]:
    return {"Bucket": name, "ExpectedBucketOwner": ctx.account}


def _create_params(ctx: Context, want: Want) -> dict[str, Any]:
    new = want.properties
    config: dict[str, Any] = {"Tags": tags.as_list(tags.for_create(want))}
    if ctx.region != "us-east-1":
        config["LocationConstraint"] = ctx.region
    params: dict[str, Any] = {"Bucket": want.name, "CreateBucketConfiguration": config}
    if new.get("OwnershipControls"):
        params["ObjectOwnership"] = new["OwnershipControls"]["Rules"][0]["ObjectOwnership"]
    if new.get("AccessControl"):
        params["ACL"] = _CANNED[new["AccessControl"]]
    if new.get("ObjectLockEnabled"):
        params["ObjectLockEnabledForBucket"] = True
    return params


def _attributes(ctx: Context, name: str) -> dict[str, str]:
    suffix = _URL_SUFFIXES.get(ctx.partition, "amazonaws.com")
    dash = "-" if ctx.region in _DASHED_WEBSITES else "."
    return {
        "Arn": f"arn:{ctx.partition}:s3:::{name}",
        "DomainName": f"{name}.s3.{suffix}",
        "DualStackDomainName": f"{name}.s3.dualstack.{ctx.region}.{suffix}",
        "RegionalDomainName": f"{name}.s3.{ctx.region}.{suffix}",
        "WebsiteURL": f"http://{name}.s3-website{dash}{ctx.region}.{suffix}",
    }
