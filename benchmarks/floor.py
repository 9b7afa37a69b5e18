"""The floor: the least that any tool could do for the `wide` template, as one bare process.

Start Python, build one botocore client per service, make the 72 calls that 8 buckets, tables, queues, topics,
parameters and log groups need, from 32 threads, and end. No lock, no record, no plan, no retries.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.config
import botocore.session

COUNT = 8
THREADS = 32


def bucket(clients: dict[str, Any], name: str) -> None:
    """Three calls."""
    s3 = clients["s3"]
    s3.create_bucket(Bucket=name)
    s3.put_bucket_encryption(
        Bucket=name,
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        },
    )
    s3.put_public_access_block(
        Bucket=name,
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
    )


def table(clients: dict[str, Any], name: str) -> None:
    """One call."""
    clients["dynamodb"].create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )


def queue(clients: dict[str, Any], name: str) -> None:
    """One call."""
    clients["sqs"].create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": "345600"})


def topic(clients: dict[str, Any], name: str) -> None:
    """One call."""
    clients["sns"].create_topic(Name=name)


def parameter(clients: dict[str, Any], name: str) -> None:
    """One call."""
    clients["ssm"].put_parameter(Name=name, Type="String", Value="floor")


def log_group(clients: dict[str, Any], name: str) -> None:
    """Two calls."""
    clients["logs"].create_log_group(logGroupName=name)
    clients["logs"].put_retention_policy(logGroupName=name, retentionInDays=7)


KINDS = (bucket, table, queue, topic, parameter, log_group)
SERVICES = ("s3", "dynamodb", "sqs", "sns", "ssm", "logs")


def main(prefix: str) -> None:
    """Make the calls; the first failure ends the process with a traceback."""
    config = botocore.config.Config(max_pool_connections=THREADS, s3={"addressing_style": "path"})
    session = botocore.session.get_session()
    clients = {service: session.create_client(service, config=config) for service in SERVICES}
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [
            pool.submit(kind, clients, f"{prefix}-{kind.__name__.replace('_', '')}-{n}")
            for n in range(COUNT)
            for kind in KINDS
        ]
    for job in jobs:
        job.result()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "floor")
