"""S3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engines.cloudformation.resources.sample import Client, Given, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def _buckets(client: Client, _: Given) -> int:
    return len(client("s3").list_buckets()["Buckets"])


def _tags(client: Client, name: str, _: Given) -> Mapping[str, str]:
    return {tag["Key"]: tag["Value"] for tag in client("s3").get_bucket_tagging(Bucket=name)["TagSet"]}


def _queue(client: Client) -> Given:
    sqs = client("sqs")
    url = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return {"queue": arn}


def _encryption(algorithm: str) -> dict[str, Any]:
    return {"ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": algorithm}}]}


def _access(*, is_closed: bool) -> dict[str, bool]:
    names = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    return dict.fromkeys(names, is_closed)


ATTRIBUTES = frozenset({"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL"})

SAMPLES = (
    Sample(
        type="AWS::S3::Bucket",
        properties=lambda _: {
            "BucketEncryption": _encryption("AES256"),
            "PublicAccessBlockConfiguration": _access(is_closed=True),
            "VersioningConfiguration": {"Status": "Enabled"},
            "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]},
            "Tags": [{"Key": "colour", "Value": "red"}, {"Key": "size", "Value": "l"}],
        },
        update=lambda _: {
            "BucketEncryption": _encryption("aws:kms"),
            "PublicAccessBlockConfiguration": _access(is_closed=False),
            "VersioningConfiguration": {"Status": "Suspended"},
            "Tags": [{"Key": "colour", "Value": "blue"}],
        },
        remove=(
            "BucketEncryption",
            "PublicAccessBlockConfiguration",
            "VersioningConfiguration",
            "OwnershipControls",
            "Tags",
        ),
        count=_buckets,
        attributes=ATTRIBUTES,
        tags=_tags,
        blind={"moto": frozenset({"Ownership", "Tags"})},
    ),
    Sample(
        type="AWS::S3::Bucket",
        name="site",
        properties=lambda given: {
            "BucketName": "the-shop-site",
            "WebsiteConfiguration": {"IndexDocument": "index.html", "ErrorDocument": "sorry.html"},
            "CorsConfiguration": {
                "CorsRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"], "MaxAge": 60, "Id": "all"}]
            },
            "LifecycleConfiguration": {
                "Rules": [
                    {
                        "Id": "old",
                        "Status": "Enabled",
                        "Prefix": "logs/",
                        "ExpirationInDays": 30,
                        "Transitions": [{"StorageClass": "STANDARD_IA", "TransitionInDays": 10}],
                        "NoncurrentVersionExpiration": {"NoncurrentDays": 5},
                        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
                    }
                ]
            },
            "NotificationConfiguration": {
                "QueueConfigurations": [
                    {
                        "Event": "s3:ObjectCreated:*",
                        "Queue": given["queue"],
                        "Filter": {"S3Key": {"Rules": [{"Name": "prefix", "Value": "in/"}]}},
                    }
                ]
            },
        },
        update=lambda _: {
            "WebsiteConfiguration": {"IndexDocument": "start.html"},
            "CorsConfiguration": {"CorsRules": [{"AllowedMethods": ["PUT", "GET"], "AllowedOrigins": ["https://a.b"]}]},
            "LifecycleConfiguration": {"Rules": [{"Id": "old", "Status": "Disabled", "ExpirationInDays": 3}]},
            "NotificationConfiguration": {"EventBridgeConfiguration": {"EventBridgeEnabled": True}},
            "AccelerateConfiguration": {"AccelerationStatus": "Enabled"},
        },
        remove=(
            "WebsiteConfiguration",
            "CorsConfiguration",
            "LifecycleConfiguration",
            "NotificationConfiguration",
            "AccelerateConfiguration",
        ),
        prepare=_queue,
        count=_buckets,
        attributes=ATTRIBUTES,
        tags=_tags,
        blind={"moto": frozenset({"Ownership", "NotificationConfiguration"})},
    ),
    Sample(
        type="AWS::S3::Bucket",
        name="lock",
        properties=lambda _: {"ObjectLockEnabled": True},
        count=_buckets,
        attributes=ATTRIBUTES,
        tags=_tags,
        blind={"moto": frozenset({"Ownership"})},
    ),
)
