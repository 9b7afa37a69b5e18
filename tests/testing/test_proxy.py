"""The proxy in front of an emulator: it passes on faithfully, and fails exactly as its rules say."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from stackhold.testing.proxy import Answer, Call, Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackhold.testing.emulators import Emulator

pytestmark = pytest.mark.emulator


@pytest.fixture
def proxy(ministack: Emulator) -> Iterator[SlowProxy]:
    with SlowProxy(ministack.url) as proxy:
        yield proxy


def client(proxy: SlowProxy, service: str) -> Any:
    return boto3.client(
        service,
        endpoint_url=proxy.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def test_bodies_pass_unchanged_both_ways(proxy: SlowProxy) -> None:
    s3 = client(proxy, "s3")
    s3.create_bucket(Bucket="bodies")
    data = gzip.compress(os.urandom(300_000))
    s3.put_object(Bucket="bodies", Key="a b/ü?#%.bin", Body=data)
    assert s3.get_object(Bucket="bodies", Key="a b/ü?#%.bin")["Body"].read() == data
    head = s3.head_object(Bucket="bodies", Key="a b/ü?#%.bin")
    assert head["ContentLength"] == len(data)
    assert proxy.count(service="s3", operation="HeadObject", path="/bodies/a b/*") == 1


def test_chunked_bodies_pass(proxy: SlowProxy) -> None:
    s3 = client(proxy, "s3")
    s3.create_bucket(Bucket="chunked")
    url = s3.generate_presigned_url("put_object", {"Bucket": "chunked", "Key": "k"})
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    parts = iter([b"one,", b"two,", b"three" * 1000])
    connection.request(
        "PUT",
        f"{address.path}?{address.query}",
        body=parts,
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    assert connection.getresponse().read() is not None
    connection.close()
    assert s3.get_object(Bucket="chunked", Key="k")["Body"].read() == b"one,two," + b"three" * 1000


def test_a_connection_carries_many_requests(proxy: SlowProxy) -> None:
    address = urlsplit(proxy.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    for _ in range(3):
        connection.request("GET", "/_ministack/health")
        assert connection.getresponse().read()
        assert connection.sock is not None
    connection.close()
    assert proxy.count() == 3


@pytest.mark.parametrize(
    ("service", "method", "params", "name"),
    [
        ("s3", "list_buckets", {}, "s3:ListBuckets"),
        ("s3", "list_objects_v2", {"Bucket": "none-here"}, "s3:ListObjectsV2"),
        ("s3", "get_bucket_policy", {"Bucket": "none-here"}, "s3:GetBucketPolicy"),
        ("s3", "put_object", {"Bucket": "none-here", "Key": "k"}, "s3:PutObject"),
        ("s3", "copy_object", {"Bucket": "none-here", "Key": "k", "CopySource": "a/b"}, "s3:CopyObject"),
        ("s3", "delete_bucket", {"Bucket": "none-here"}, "s3:DeleteBucket"),
        ("dynamodb", "list_tables", {}, "dynamodb:ListTables"),
        ("sqs", "list_queues", {}, "sqs:ListQueues"),
        ("sns", "list_topics", {}, "sns:ListTopics"),
        ("iam", "list_roles", {}, "iam:ListRoles"),
        ("ec2", "describe_vpcs", {}, "ec2:DescribeVpcs"),
        ("logs", "describe_log_groups", {}, "logs:DescribeLogGroups"),
        ("lambda", "get_function", {"FunctionName": "none"}, "lambda:GetFunction"),
        ("apigatewayv2", "get_apis", {}, "apigateway:GetApis"),
        ("apigatewayv2", "get_route", {"ApiId": "a", "RouteId": "r"}, "apigateway:GetRoute"),
    ],
)
def test_requests_are_called_by_service_and_operation(
    proxy: SlowProxy, service: str, method: str, params: dict[str, str], name: str
) -> None:
    with contextlib.suppress(ClientError):
        getattr(client(proxy, service), method)(**params)
    assert [call.name for call in proxy.calls] == [name]


def test_queue_urls_made_behind_the_proxy_work_through_it(proxy: SlowProxy) -> None:
    sqs = client(proxy, "sqs")
    url = sqs.create_queue(QueueName="behind")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="hello")
    assert sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "hello"
    assert proxy.count(service="sqs") == 3


def test_a_rule_counts_what_it_meets_and_catches_only_its_share(proxy: SlowProxy) -> None:
    rule = proxy.add(Rule(service="sqs", operation="List*", skip=1, times=2, answer=Answer(418, "Teapot")))
    sqs = client(proxy, "sqs")
    codes = []
    for _ in range(4):
        try:
            sqs.list_queues()
            codes.append("ok")
        except ClientError as error:
            codes.append(error.response["Error"]["Code"])
    assert codes == ["ok", "Teapot", "Teapot", "ok"]
    assert rule.caught == 2
    assert proxy.count(forwarded=True) == 2


@pytest.mark.parametrize(
    ("service", "method"),
    [
        ("s3", "list_buckets"),
        ("sns", "list_topics"),
        ("ec2", "describe_vpcs"),
        ("iam", "list_roles"),
        ("logs", "describe_log_groups"),
        ("lambda", "list_functions"),
    ],
)
def test_error_answers_speak_the_services_own_protocol(proxy: SlowProxy, service: str, method: str) -> None:
    proxy.add(Rule(answer=Answer(400, "ThrottlingException", "slow <down>")))
    with pytest.raises(ClientError) as refused:
        getattr(client(proxy, service), method)()
    assert refused.value.response["Error"]["Code"] == "ThrottlingException"
    assert refused.value.response["Error"]["Message"] == "slow <down>"


def test_a_held_request_waits_until_it_is_released(proxy: SlowProxy) -> None:
    rule = proxy.add(Rule(operation="CreateQueue", hold=threading.Event()))
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(client(proxy, "sqs").create_queue, QueueName="held")
        rule.wait_reached()
        assert client(proxy, "sqs").list_queues().get("QueueUrls", []) == []
        assert not creating.done()
        rule.release()
        creating.result(30)
    assert len(client(proxy, "sqs").list_queues()["QueueUrls"]) == 1


@pytest.mark.parametrize(("drop", "landed"), [("before", 0), ("after", 1)])
def test_a_dropped_request_has_no_answer_and_landed_or_not(proxy: SlowProxy, drop: Any, landed: int) -> None:
    proxy.add(Rule(operation="CreateQueue", drop=drop))
    sqs = client(proxy, "sqs")
    with pytest.raises(ConnectionClosedError):
        sqs.create_queue(QueueName="dropped")
    assert len(sqs.list_queues().get("QueueUrls", [])) == landed


def test_functions_run_before_and_after_forwarding(proxy: SlowProxy) -> None:
    seen: list[tuple[str, bool]] = []

    def note(call: Call) -> None:
        seen.append((call.name, call.forwarded))

    proxy.add(Rule(operation="ListQueues", before=note, after=note))
    client(proxy, "sqs").list_queues()
    assert seen == [("sqs:ListQueues", False), ("sqs:ListQueues", True)]


def test_stripped_headers_do_not_arrive(proxy: SlowProxy) -> None:
    s3 = client(proxy, "s3")
    s3.create_bucket(Bucket="strip")
    s3.put_object(Bucket="strip", Key="k", Body=b"1")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket="strip", Key="k", Body=b"2", IfNoneMatch="*")
    proxy.add(Rule(strip=("If-",)))
    s3.put_object(Bucket="strip", Key="k", Body=b"3", IfNoneMatch="*")
    assert s3.get_object(Bucket="strip", Key="k")["Body"].read() == b"3"


def test_the_servers_time_moves_with_the_skew(proxy: SlowProxy) -> None:
    s3 = client(proxy, "s3")
    s3.create_bucket(Bucket="skew")
    s3.put_object(Bucket="skew", Key="k", Body=b"1")
    straight = s3.get_object(Bucket="skew", Key="k")
    proxy.skew_ms = 3_600_000
    skewed = s3.get_object(Bucket="skew", Key="k")
    assert (skewed["LastModified"] - straight["LastModified"]).total_seconds() == 3600
    date = parsedate_to_datetime(skewed["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
    assert abs(date - time.time() - 3600) < 60


def test_an_object_can_be_made_to_look_older(proxy: SlowProxy) -> None:
    s3 = client(proxy, "s3")
    s3.create_bucket(Bucket="aged")
    s3.put_object(Bucket="aged", Key="k", Body=b"1")
    straight = s3.get_object(Bucket="aged", Key="k")
    proxy.add(Rule(service="s3", path="*/k", age_ms=3_600_000))
    aged = s3.get_object(Bucket="aged", Key="k")
    assert (aged["LastModified"] - straight["LastModified"]).total_seconds() == -3600
    date = parsedate_to_datetime(aged["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
    assert abs(date - time.time()) < 60


@pytest.mark.parametrize(
    ("service", "method", "code"),
    [
        ("s3", "list_buckets", "RequestTimeTooSkewed"),
        ("sqs", "list_queues", "InvalidSignatureException"),
        ("sns", "list_topics", "SignatureDoesNotMatch"),
        ("ec2", "describe_vpcs", "RequestExpired"),
    ],
)
def test_a_signature_from_another_time_is_refused_as_aws_does(
    proxy: SlowProxy, service: str, method: str, code: str
) -> None:
    proxy.skew_ms, proxy.refuses_skewed = -3_600_000, True
    with pytest.raises(ClientError) as refused:
        getattr(client(proxy, service), method)()
    assert refused.value.response["Error"]["Code"] == code


def test_many_clients_at_once_are_all_counted(proxy: SlowProxy) -> None:
    sqs = client(proxy, "sqs")
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: sqs.create_queue(QueueName=f"q{n}"), range(64)))
    assert proxy.count(operation="CreateQueue") == 64
    stats = proxy.stats()
    assert stats["by_operation"]["sqs:CreateQueue"]["calls"] == 64
    assert stats["request_bytes"] == sum(line[4] for line in stats["log"]) > 64 * 100


def test_an_emulator_that_is_gone_is_a_bad_gateway() -> None:
    with SlowProxy("http://127.0.0.1:9") as proxy, pytest.raises(ClientError) as refused:
        client(proxy, "sqs").list_queues()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 502


def test_waiting_for_calls_that_never_come_ends(proxy: SlowProxy) -> None:
    with pytest.raises(TimeoutError):
        proxy.wait_count(1, operation="Nothing", seconds=0.01)
    with pytest.raises(TimeoutError):
        proxy.add(Rule(operation="Nothing")).wait_reached(0.01)


def test_as_a_process_it_writes_its_figures_when_told_to_end(ministack: Emulator, tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    command = [
        sys.executable,
        "-m",
        "stackhold.testing.proxy",
        "--target",
        ministack.url,
        "--delay-ms",
        "20",
        "--stats",
        str(stats),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        sqs = boto3.client(
            "sqs", endpoint_url=url, region_name="us-east-1", aws_access_key_id="t", aws_secret_access_key="t"
        )
        sqs.list_queues()
        connection = http.client.HTTPConnection(urlsplit(url).netloc)
        connection.request("GET", "/_proxy/stats")
        live = json.loads(connection.getresponse().read())
        connection.request("POST", "/_proxy/reset")
        connection.getresponse().read()
        connection.close()
        sqs.list_queues()
        sqs.list_queues()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert live["by_operation"]["sqs:ListQueues"]["calls"] == 1
    figures = json.loads(stats.read_text())
    assert figures["calls"] == 2
    assert all(line[6] >= 20 for line in figures["log"])
