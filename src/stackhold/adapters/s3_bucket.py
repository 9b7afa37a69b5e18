"""Makes a bucket fit to hold records and locks: ours alone, versioned, encrypted, closed.

Every step looks first and changes only what is missing, so it can be repeated, and says what it did. The policy
denies and never allows: other accounts, and requests without TLS. A server that ignores conditions in policies
would shut its owner out with it, so on anything but AWS the effect is tried and the policy taken back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackhold.errors import AwsError, StoreRefused

if TYPE_CHECKING:
    from stackhold.ports.aws import Aws

_OTHERS = "StackholdDenyOtherAccounts"
_PLAIN = "StackholdDenyInsecureTransport"
_DENIED = frozenset({"AccessDenied", "403", "Forbidden", "AllAccessDisabled"})
_CLOSED = {"BlockPublicAcls": True, "IgnorePublicAcls": True, "BlockPublicPolicy": True, "RestrictPublicBuckets": True}


@dataclass(frozen=True, slots=True)
class BucketReport:
    """What was found and done. `created` is whether the bucket is new; `steps` are lines for people."""

    bucket: str
    region: str
    created: bool
    steps: tuple[str, ...] = ()

    def with_step(self, line: str) -> BucketReport:
        """The same with one more line."""
        return replace(self, steps=(*self.steps, line))


def default_bucket_name(account: str, region: str) -> str:
    """The state bucket's name unless another is given."""
    return f"stackhold-state-{account}-{region}"


def set_up_bucket(aws: Aws, bucket: str, *, account: str, trusts_policies: bool, is_tls: bool) -> BucketReport:
    """Make or complete the bucket. `trusts_policies`: the server is AWS, whose policies work as documented."""
    created = _make(aws, bucket, account)
    report = BucketReport(bucket, aws.region, created, ("created" if created else "exists already",))
    report = report.with_step(_version(aws, bucket))
    report = report.with_step(_encrypt(aws, bucket))
    report = report.with_step(_close(aws, bucket))
    return report.with_step(_restrict(aws, bucket, account, trusts_policies=trusts_policies, is_tls=is_tls))


def _make(aws: Aws, bucket: str, account: str) -> bool:
    if _exists(aws, bucket, account):
        return False
    params: dict[str, Any] = {"Bucket": bucket}
    if aws.region != "us-east-1":
        params["CreateBucketConfiguration"] = {"LocationConstraint": aws.region}
    try:
        aws.call("s3", "CreateBucket", params)
    except AwsError as error:
        if error.code == "BucketAlreadyOwnedByYou":
            return error.sent_before
        if error.code in {"BucketAlreadyExists", "OperationAborted"}:
            raise StoreRefused(
                f"bucket {bucket!r} cannot be made: {error.code}: {error.reason}",
                hint="Bucket names are shared by all accounts. Choose another with --state s3://NAME.",
            ) from error
        raise StoreRefused(f"bucket {bucket!r} cannot be made: {error.code}: {error.reason}") from error
    return True


def _exists(aws: Aws, bucket: str, account: str) -> bool:
    try:
        head = aws.call("s3", "HeadBucket", {"Bucket": bucket, "ExpectedBucketOwner": account})
    except AwsError as error:
        if error.status == 404:
            return False
        if error.code in _DENIED or error.status == 403:
            raise StoreRefused(
                f"bucket {bucket!r} exists and access is denied, or it belongs to another account",
                hint="Choose another with --state s3://NAME, or use credentials of its account.",
            ) from error
        if error.status in {301, 307, 400}:
            raise _elsewhere(bucket, "another region", aws.region) from error
        raise
    where = head.get("BucketRegion")
    if where and where != aws.region:
        raise _elsewhere(bucket, str(where), aws.region)
    return True


def _elsewhere(bucket: str, where: str, region: str) -> StoreRefused:
    return StoreRefused(
        f"bucket {bucket!r} exists in {where}, not in {region}",
        hint="Name its region with --region, or choose another with --state s3://NAME.",
    )


def _version(aws: Aws, bucket: str) -> str:
    if aws.call("s3", "GetBucketVersioning", {"Bucket": bucket}).get("Status") == "Enabled":
        return "versioning is on"
    params = {"Bucket": bucket, "VersioningConfiguration": {"Status": "Enabled"}}
    aws.call("s3", "PutBucketVersioning", params)
    return "versioning turned on"


def _encrypt(aws: Aws, bucket: str) -> str:
    try:
        found = aws.call("s3", "GetBucketEncryption", {"Bucket": bucket})
        rules = found["ServerSideEncryptionConfiguration"]["Rules"]
        return f"encryption is on ({rules[0]['ApplyServerSideEncryptionByDefault']['SSEAlgorithm']})"
    except AwsError as error:
        if error.code != "ServerSideEncryptionConfigurationNotFoundError":
            raise
    except (KeyError, IndexError):
        pass
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    aws.call("s3", "PutBucketEncryption", {"Bucket": bucket, "ServerSideEncryptionConfiguration": {"Rules": [rule]}})
    return "encryption turned on (AES256)"


def _close(aws: Aws, bucket: str) -> str:
    try:
        found = aws.call("s3", "GetPublicAccessBlock", {"Bucket": bucket})["PublicAccessBlockConfiguration"]
        if found == _CLOSED:
            return "public access is blocked"
    except AwsError as error:
        if error.code != "NoSuchPublicAccessBlockConfiguration":
            raise
    aws.call("s3", "PutPublicAccessBlock", {"Bucket": bucket, "PublicAccessBlockConfiguration": _CLOSED})
    return "public access blocked"


def _restrict(aws: Aws, bucket: str, account: str, *, trusts_policies: bool, is_tls: bool) -> str:
    """Set the account-only policy, keeping statements that are not ours."""
    found = _policy(aws, bucket)
    old = [statement for statement in found.get("Statement", []) if statement.get("Sid") not in {_OTHERS, _PLAIN}]
    wanted = {
        "Version": found.get("Version", "2012-10-17"),
        "Statement": old + statements(aws.partition, bucket, account, is_tls=is_tls),
    }
    said = "account-only" + (", TLS-only" if is_tls else "; TLS is not demanded, since this endpoint has none")
    if found == wanted and trusts_policies:
        return f"policy is set: {said}"
    aws.call("s3", "PutBucketPolicy", {"Bucket": bucket, "Policy": json.dumps(wanted)})
    if trusts_policies or _is_open(aws, bucket):
        return f"policy set: {said}"
    if found:
        aws.call("s3", "PutBucketPolicy", {"Bucket": bucket, "Policy": json.dumps(found)})
    else:
        aws.call("s3", "DeleteBucketPolicy", {"Bucket": bucket})
    return "policy NOT set: this server ignores conditions in policies, so it shut out the bucket's owner"


def statements(partition: str, bucket: str, account: str, *, is_tls: bool) -> list[dict[str, Any]]:
    """Two denials: everybody of another account (AWS services acting for us excepted), and everything without TLS."""
    resources = [f"arn:{partition}:s3:::{bucket}", f"arn:{partition}:s3:::{bucket}/*"]
    base = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resources}
    others = {
        "StringNotEquals": {"aws:PrincipalAccount": account},
        "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
    }
    found = [{"Sid": _OTHERS, **base, "Condition": others}]
    if is_tls:
        found.append({"Sid": _PLAIN, **base, "Condition": {"Bool": {"aws:SecureTransport": "false"}}})
    return found


def _policy(aws: Aws, bucket: str) -> dict[str, Any]:
    try:
        policy: dict[str, Any] = json.loads(aws.call("s3", "GetBucketPolicy", {"Bucket": bucket})["Policy"])
    except AwsError as error:
        if error.code == "NoSuchBucketPolicy":
            return {}
        raise
    return policy


def _is_open(aws: Aws, bucket: str) -> bool:
    """Whether the owner can still list, write, read and delete."""
    key = {"Bucket": bucket, "Key": "_stackhold/policy-probe"}
    try:
        aws.call("s3", "ListObjectsV2", {"Bucket": bucket, "MaxKeys": 1})
        aws.call("s3", "PutObject", {**key, "Body": b"probe"})
        aws.call("s3", "GetObject", key)
        aws.call("s3", "DeleteObject", key)
    except AwsError as error:
        if error.code in _DENIED or error.status == 403:
            return False
        raise
    return True
