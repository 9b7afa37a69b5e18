"""What a failed try of an AWS call means: was it refused, throttled, lost on the way, or never sent.

Sorted by error code, status and botocore's exception types, never by a message. The line that matters runs
between LOST, where the change may have happened, and everything else, where it surely did not. Whether to try
again is decided in `aws_retry`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from stackhold.errors import AwsError, Bug, CloudError, InputError, StackholdError
from stackhold.model.user_info import without_user_info

if TYPE_CHECKING:
    from collections.abc import Mapping

LOGIN_HINT = "Name credentials with --profile or AWS_PROFILE, or log in again (such as `aws sso login`)."
_THROTTLED = re.compile(
    r"Throttling.*|ThrottledException|RequestThrottled.*|RequestLimitExceeded|TooManyRequestsException|SlowDown"
    r"|PriorRequestNotComplete|EC2ThrottledException|ProvisionedThroughputExceededException|BandwidthLimitExceeded"
)
_CLOCK_SUSPECTS = frozenset(
    {
        "RequestTimeTooSkewed",
        "RequestExpired",
        "RequestInTheFuture",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "AuthFailure",
    }
)
"""Codes that a wrong clock causes; all but the first three have other causes too, so the answer's Date decides."""
_LIMITS_CONCURRENCY = frozenset({"dynamodb", "kinesis"})
"""Services whose `LimitExceededException` means "too many at once"; elsewhere it is a quota."""
_NOT_IMPLEMENTED = 501
_RUBBISH = frozenset({"AnswerUnreadable", "ResponseParserError"})
_BODY_LATE = frozenset({"RequestTimeout", "RequestTimeoutException"})
_READS = ("Get", "List", "Describe", "Head", "Search", "BatchGet", "Query", "Scan", "Lookup", "Simulate", "Validate")


class AnswerUnreadable(Exception):
    """An answer came that makes no sense: what broke over it, or what was made of it, is the argument."""

    def __str__(self) -> str:
        """One line that says what was met."""
        met = self.args[0]
        return f"the answer cannot be read ({type(met).__name__}: {one_line(met)})"


class Kind(Enum):
    """What a failed try means for the call."""

    THROTTLED = "throttled"
    """Refused for now; nothing happened."""
    CLOCK = "clock"
    """Refused, maybe because our clock is off; nothing happened."""
    UNSENT = "unsent"
    """No connection came to be; nothing happened."""
    LOST = "lost"
    """Sent, and no usable answer: a timeout, a dropped connection, a server error. It may have happened."""
    REFUSED = "refused"
    """A definite answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed try. `code` and `reason` are as AWS gave them, or botocore's words where no answer came."""

    kind: Kind
    code: str
    reason: str
    status: int = 0
    request_id: str = ""
    server_ms: int | None = None
    """The answer's Date, Unix milliseconds."""


def is_read(operation: str) -> bool:
    """Whether an operation changes nothing, by its verb."""
    return operation.startswith(_READS)


def sort_failure(error: Exception, *, service: str) -> Failure:
    """Say what kind of failure this is; raises when it is none of a call's own (credentials, settings, bugs)."""
    from botocore import exceptions as b

    match error:
        case StackholdError():
            raise error
        case b.ClientError():
            return _answered(error.response, service=service)
        case b.EndpointConnectionError() | b.ConnectTimeoutError() | b.ProxyConnectionError():
            return Failure(Kind.UNSENT, type(error).__name__, one_line(error))
        case b.SSLError():
            return Failure(_tls_kind(error), type(error).__name__, one_line(error))
        case b.HTTPClientError() | b.IncompleteReadError() | b.ChecksumError() | b.FlexibleChecksumError():
            return Failure(Kind.LOST, type(error).__name__, one_line(error))
        case b.BotoCoreError():
            return _own_fault(error, service=service)
        case _:
            return _unusable(error)


def is_silence(failure: Failure) -> bool:
    """Whether no answer came at all, rather than one that cannot be read."""
    return failure.code not in _RUBBISH


def is_sortable(error: Exception) -> bool:
    """Whether an exception says what it means without knowing what was being done when it was raised."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError

    return isinstance(error, StackholdError | ClientError | BotoCoreError | OSError | ResponseParserError | HTTPError)


def one_line(error: object) -> str:
    """The text of an error without line breaks, and without the credentials in a URL that it names."""
    return without_user_info(" ".join(str(error).split()))


def as_aws_error(failure: Failure, *, service: str, operation: str, sent_before: bool) -> CloudError:
    """The error for a call that is given up with a definite refusal, or that never left."""
    if failure.kind is Kind.UNSENT:
        return CloudError(
            f"{service}:{operation} could not be sent: {failure.reason}",
            hint="Check the network and the endpoint (AWS_ENDPOINT_URL, --region).",
        )
    refused = AwsError(
        service=service,
        operation=operation,
        code=failure.code,
        reason=failure.reason,
        status=failure.status,
        request_id=failure.request_id,
        sent_before=sent_before,
    )
    if refused.refuses_credentials:
        refused.hint = LOGIN_HINT
    return refused


def header_date(response: Mapping[str, Any]) -> int | None:
    """The Date of an answer in Unix milliseconds; None when it has none that can be read."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return int(parsedate_to_datetime(headers["date"]).timestamp()) * 1000
    except (KeyError, TypeError, ValueError):
        return None


def _answered(response: Mapping[str, Any], *, service: str) -> Failure:
    meta = response.get("ResponseMetadata", {})
    error = response.get("Error", {})
    code = str(error.get("Code") or "Unknown").rpartition("#")[2]
    status = int(meta.get("HTTPStatusCode") or 0)
    return Failure(
        kind=_kind(code, status, service),
        code=code,
        reason=one_line(error.get("Message") or "no reason given"),
        status=status,
        request_id=str(meta.get("RequestId") or ""),
        server_ms=header_date(response),
    )


def _kind(code: str, status: int, service: str) -> Kind:
    if _THROTTLED.fullmatch(code) or status == 429:
        return Kind.THROTTLED
    if code == "LimitExceededException" and service in _LIMITS_CONCURRENCY:
        return Kind.THROTTLED
    if code in _CLOCK_SUSPECTS:
        return Kind.CLOCK
    if (status >= 500 and status != _NOT_IMPLEMENTED) or code in _BODY_LATE:
        return Kind.LOST
    return Kind.REFUSED


def _own_fault(error: Exception, *, service: str) -> Failure:
    """Failures before anything is sent: a refusal by botocore itself, or a set-up that cannot work."""
    from botocore import exceptions as b

    match error:
        case b.ParamValidationError():
            return Failure(Kind.REFUSED, "ParamValidation", one_line(error.kwargs.get("report", error)))
        case b.UnknownServiceError() | b.DataNotFoundError():
            raise Bug(f"botocore knows no service {service!r}") from error
        case b.NoRegionError():
            raise InputError("no region is named", hint="Name one with --region or AWS_REGION.") from error
        case b.ConnectionError():
            return Failure(Kind.UNSENT, type(error).__name__, one_line(error))
        case _:
            raise InputError(f"no usable AWS credentials or settings: {one_line(error)}", hint=LOGIN_HINT) from error


def _unusable(error: Exception) -> Failure:
    """An answer that botocore could not read, or a socket error that it did not wrap: sent, result unknown."""
    from botocore.parsers import ResponseParserError

    if isinstance(error, OSError | ResponseParserError | AnswerUnreadable):
        return Failure(Kind.LOST, type(error).__name__, one_line(error))
    from urllib3.exceptions import HTTPError

    if isinstance(error, HTTPError):
        return Failure(Kind.LOST, type(error).__name__, one_line(error))
    raise error


def _tls_kind(error: BaseException) -> Kind:
    """A certificate is refused before anything is sent; any other TLS failure may come after."""
    import ssl

    cause: object = getattr(error, "kwargs", {}).get("error")
    while isinstance(cause, BaseException):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Kind.UNSENT
        cause = cause.__cause__ or next(iter(cause.args), None)
    return Kind.LOST
