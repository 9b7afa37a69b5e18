"""Answers of status 200 that are none of AWS's: a proxy's page, half a document, a document of another shape.

Whatever botocore's parsers raise over them, a change was sent and its outcome is not known, and a read fails in words.
"""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING, Any

import pytest

from stackhold.adapters.aws import AwsSession
from stackhold.adapters.s3 import S3Store
from stackhold.errors import CloudError, OutcomeUnknown, StackholdError, StoreRefused, StoreUnanswered
from stackhold.ports.aws import Resend
from stackhold.ports.store import Version
from stackhold.testing.clock import FakeClock
from stackhold.testing.emulators import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.ports.aws import Aws

BODIES = [
    b"",
    b"null",
    b"[]",
    b'"x"',
    b"3",
    b"{",
    b"\xff\xfe\x00",
    b"<html><body>Please log in</body></html>",
    b"<html>",
    b"<a/>",
    b'{"Table": 3, "QueueUrl": {}, "Parameter": 7, "logGroups": 7, "Configuration": "x", "Items": 3}',
    b'{"Table": {"CreationDateTime": "zz"}, "Parameter": {"LastModifiedDate": [1]}, "logGroups": {"a": 1}}',
    b"<CreateTopicResponse><CreateTopicResult><TopicArn><a/></TopicArn></CreateTopicResult></CreateTopicResponse>",
    b"<R><ResponseMetadata/></R>",
    b"<ListBucketResult><IsTruncated>x</IsTruncated><Contents><Size>x</Size></Contents></ListBucketResult>",
    b"<ListBucketResult><Name>b</Name><Contents><LastModified>x</LastModified></Contents></ListBucketResult>",
    b"<DescribeVpcsResponse><vpcSet>text</vpcSet></DescribeVpcsResponse>",
    b"<CreateVpcResponse><vpc><vpcId/><vpcId/></vpc></CreateVpcResponse>",
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("sts", "GetCallerIdentity", {}),
    ("sns", "CreateTopic", {"Name": "x"}),
    ("sns", "ListTopics", {}),
    ("iam", "GetRole", {"RoleName": "x"}),
    ("sqs", "CreateQueue", {"QueueName": "q"}),
    ("sqs", "ListQueues", {}),
    ("dynamodb", "DescribeTable", {"TableName": "abc"}),
    ("dynamodb", "DeleteTable", {"TableName": "abc"}),
    ("ssm", "GetParameter", {"Name": "x"}),
    ("logs", "DescribeLogGroups", {}),
    ("lambda", "GetFunction", {"FunctionName": "x"}),
    ("lambda", "DeleteFunction", {"FunctionName": "x"}),
    ("apigatewayv2", "CreateApi", {"Name": "x", "ProtocolType": "HTTP"}),
    ("s3", "ListObjectsV2", {"Bucket": "bbb"}),
    ("s3", "PutObject", {"Bucket": "bbb", "Key": "k", "Body": b"x"}),
    ("ec2", "DescribeVpcs", {}),
    ("ec2", "CreateVpc", {"CidrBlock": "10.0.0.0/16"}),
    ("cloudcontrol", "GetResource", {"TypeName": "AWS::Alpha::Beta", "Identifier": "x"}),
]


class Rubbish(http.server.ThreadingHTTPServer):
    """Answers everything with the same body."""

    body = b""
    headers: dict[str, str]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Rubbish

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        for name, value in {**self.server.headers, "Content-Length": str(len(self.server.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    do_GET = do_POST = do_PUT = do_DELETE = _answer

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def rubbish() -> Iterator[Rubbish]:
    server = Rubbish(("127.0.0.1", 0), _Handler)
    server.headers = {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def session(rubbish: Rubbish, monkeypatch: pytest.MonkeyPatch) -> AwsSession:
    for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{rubbish.server_port}"}.items():
        monkeypatch.setenv(name, value)
    return AwsSession(region="us-east-1", profile=None, clock=FakeClock())


def what_comes_of(aws: Aws, service: str, operation: str, params: dict[str, Any]) -> object:
    try:
        return aws.call(service, operation, params, resend=Resend.NEVER)
    except StackholdError as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize(("service", "operation", "params"), CALLS)
def test_an_answer_that_cannot_be_read_is_an_error_of_ours(
    rubbish: Rubbish, session: AwsSession, service: str, operation: str, params: dict[str, Any]
) -> None:
    aws = session.aws()
    for body in BODIES:
        for header in ({}, {"Content-Type": "text/html"}, {"x-amz-crc32": "zz"}, {"x-amzn-query-error": "bad"}):
            rubbish.body, rubbish.headers = body, header
            outcome = what_comes_of(aws, service, operation, params)
            assert isinstance(outcome, dict | CloudError), outcome
            assert not (isinstance(outcome, OutcomeUnknown) and operation.startswith(("Get", "List", "Describe")))


def test_a_change_whose_answer_breaks_the_parser_is_not_known_to_have_failed(
    rubbish: Rubbish, session: AwsSession
) -> None:
    rubbish.body = b"<R/>"
    with pytest.raises(OutcomeUnknown, match="cannot be read"):
        session.aws().call("sns", "CreateTopic", {"Name": "x"}, resend=Resend.NEVER)
    with pytest.raises(CloudError, match=r"sns:ListTopics was answered with what nobody can read"):
        session.aws().call("sns", "ListTopics", {})


@pytest.mark.parametrize("body", BODIES)
def test_an_account_is_never_made_up(rubbish: Rubbish, session: AwsSession, body: bytes) -> None:
    rubbish.body = body
    with pytest.raises(CloudError, match="sts:GetCallerIdentity"):
        session.aws().account()


@pytest.mark.parametrize("body", BODIES)
def test_a_store_that_answers_rubbish_holds_nothing_that_is_believed(
    rubbish: Rubbish, session: AwsSession, body: bytes
) -> None:
    rubbish.body = body
    store = S3Store("bbb", session=session, clock=session.clock)
    with pytest.raises(StoreRefused, match="something that S3 does not say"):
        store.read("a/b")
    with pytest.raises(StoreUnanswered):
        store.write("a/b", b"x", expect=None)
    with pytest.raises(CloudError):
        list(store.list("a/"))
    with pytest.raises(StoreUnanswered):
        store.delete("a/b", expect=Version('"v"'))
