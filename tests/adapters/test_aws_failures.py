"""What a failed try means, by code and status as AWS and botocore give them."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from botocore import exceptions as b

from stackhold.adapters.aws_failures import Kind, as_aws_error, is_read, sort_failure
from stackhold.errors import AwsError, CloudError, InputError, StoodDown


def answered(code: str, status: int = 400, **headers: str) -> b.ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "two\nlines"},
        "ResponseMetadata": {"HTTPStatusCode": status, "RequestId": "r-1", "HTTPHeaders": headers},
    }
    return b.ClientError(response, "Operation")


def kind(code: str, status: int = 400, service: str = "sqs") -> Kind:
    return sort_failure(answered(code, status), service=service).kind


@pytest.mark.parametrize(
    "code",
    [
        "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
        "RequestLimitExceeded", "TooManyRequestsException", "SlowDown", "PriorRequestNotComplete",
        "EC2ThrottledException",
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [400, 429, 503])
def test_throttling_is_known_by_code_whatever_the_status(code: str, status: int) -> None:
    assert kind(code, status) is Kind.THROTTLED


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("dynamodb", Kind.THROTTLED), ("kinesis", Kind.THROTTLED),
        ("iam", Kind.REFUSED), ("kms", Kind.REFUSED), ("logs", Kind.REFUSED), ("ssm", Kind.REFUSED),
    ],
)  # fmt: skip
def test_a_limit_is_concurrency_in_some_services_and_a_quota_in_the_others(service: str, expected: Kind) -> None:
    assert kind("LimitExceededException", service=service) is expected


@pytest.mark.parametrize(
    "code", ["LimitExceeded", "QuotaExceeded", "OperationAborted", "ResourceInUseException", "AccessDenied"]
)
def test_what_only_the_caller_can_judge_is_a_refusal(code: str) -> None:
    assert kind(code) is Kind.REFUSED


@pytest.mark.parametrize(
    ("status", "expected"),
    [(500, Kind.LOST), (502, Kind.LOST), (503, Kind.LOST), (504, Kind.LOST), (501, Kind.REFUSED)],
)
def test_a_server_error_is_no_answer_except_not_implemented(status: int, expected: Kind) -> None:
    assert kind("Whatever", status) is expected


def test_a_code_loses_its_namespace_and_a_reason_its_line_breaks() -> None:
    failure = sort_failure(answered("com.amazonaws.x#ResourceNotFoundException"), service="x")
    assert (failure.code, failure.reason, failure.request_id) == ("ResourceNotFoundException", "two lines", "r-1")


def test_the_answers_date_is_read_in_milliseconds() -> None:
    error = answered("RequestTimeTooSkewed", 403, date="Tue, 19 Mar 2024 08:00:00 GMT")
    failure = sort_failure(error, service="s3")
    assert (failure.kind, failure.server_ms) == (Kind.CLOCK, 1_710_835_200_000)
    assert sort_failure(answered("RequestTimeTooSkewed", 403, date="soon"), service="s3").server_ms is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (b.EndpointConnectionError(endpoint_url="http://x", error="refused"), Kind.UNSENT),
        (b.ConnectTimeoutError(endpoint_url="http://x", error="late"), Kind.UNSENT),
        (b.SSLError(endpoint_url="https://x", error=Exception(ssl.SSLCertVerificationError("bad"))), Kind.UNSENT),
        (b.SSLError(endpoint_url="https://x", error=ssl.SSLEOFError("cut")), Kind.LOST),
        (b.ReadTimeoutError(endpoint_url="http://x", error="late"), Kind.LOST),
        (b.ConnectionClosedError(endpoint_url="http://x", error="cut", request=None), Kind.LOST),
        (b.HTTPClientError(error="odd"), Kind.LOST),
        (b.IncompleteReadError(actual_bytes=1, expected_bytes=2), Kind.LOST),
        (ConnectionResetError("cut"), Kind.LOST),
    ],
)
def test_only_a_failure_to_connect_proves_that_nothing_was_sent(error: Exception, expected: Kind) -> None:
    assert sort_failure(error, service="s3").kind is expected


def test_refused_parameters_are_one_line() -> None:
    failure = sort_failure(b.ParamValidationError(report="Missing A\nUnknown B"), service="s3")
    assert (failure.kind, failure.code, failure.reason) == (Kind.REFUSED, "ParamValidation", "Missing A Unknown B")


@pytest.mark.parametrize(
    "error",
    [
        b.NoCredentialsError(),
        b.PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"),
        b.UnauthorizedSSOTokenError(),
        b.SSOTokenLoadError(error_msg="no token"),
        b.CredentialRetrievalError(provider="process", error_msg="exit 1"),
    ],
)
def test_missing_credentials_are_a_matter_of_input_with_a_hint(error: Exception) -> None:
    with pytest.raises(InputError, match="credentials") as refused:
        sort_failure(error, service="s3")
    assert "--profile" in refused.value.hint


def test_our_own_errors_and_bugs_pass_unchanged() -> None:
    for error in (StoodDown("over"), KeyError("bug")):
        with pytest.raises(type(error)):
            sort_failure(error, service="s3")


def test_a_refusal_keeps_its_facts_and_an_expired_token_says_what_to_do() -> None:
    failure = sort_failure(answered("ExpiredToken", 403), service="s3")
    error = as_aws_error(failure, service="s3", operation="PutObject", sent_before=True)
    assert isinstance(error, AwsError)
    assert (error.code, error.status, error.request_id, error.sent_before) == ("ExpiredToken", 403, "r-1", True)
    assert "log in" in error.hint


def test_what_was_never_sent_is_no_refusal_by_aws() -> None:
    failure = sort_failure(b.EndpointConnectionError(endpoint_url="http://x", error="refused"), service="s3")
    error = as_aws_error(failure, service="s3", operation="PutObject", sent_before=False)
    assert type(error) is CloudError


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("GetQueueUrl", True),
        ("DescribeVpcs", True),
        ("ListTopics", True),
        ("CreateVpc", False),
        ("PutRule", False),
        ("DeleteBucket", False),
    ],
)
def test_a_read_is_known_by_its_verb(operation: str, expected: bool) -> None:
    assert is_read(operation) is expected
