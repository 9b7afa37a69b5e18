"""Which AWS operation an HTTP request is, and what an error answer to it looks like.

The service is read from the signature's scope; the operation from the target header, the form's `Action`, or,
for services that speak REST, from botocore's description of methods and paths (path-style for S3). An unsigned
or unknown request is called by its method and path.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from stackhold.testing.http_messages import Message

_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/([^/]*)/([^/]+)/")
_CBOR_PATH = re.compile(r"/service/[^/]+/operation/(\w+)$")
_REST = {"s3": "s3", "lambda": "lambda", "apigatewayv2": "apigatewayv2", "apigateway": "apigateway"}
_FORMS = frozenset({"iam", "sts", "sns", "ec2", "cloudformation", "autoscaling", "elasticloadbalancing", "rds", "sqs"})


@dataclass(frozen=True, slots=True)
class Named:
    """A request by its names. `service` as in signatures (`apigateway` serves both API Gateways)."""

    service: str
    operation: str
    method: str
    path: str
    """Decoded, without the query."""
    region: str = ""
    is_form: bool = False

    def error(self, status: int, code: str, reason: str) -> tuple[str, bytes, dict[str, str]]:
        """First line, body and headers of an error answer in the service's own protocol."""
        start = f"HTTP/1.1 {status} Error"
        inner = f"<Code>{escape(code)}</Code><Message>{escape(reason)}</Message>"
        if self.service == "s3":
            body = f"<?xml version='1.0'?><Error>{inner}<RequestId>proxy</RequestId></Error>"
        elif self.service == "ec2":
            body = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>proxy</RequestID></Response>"
        elif self.is_form:
            body = f"<ErrorResponse><Error>{inner}</Error><RequestId>proxy</RequestId></ErrorResponse>"
        else:
            body = json.dumps({"__type": code, "message": reason})
            return start, body.encode(), {"Content-Type": "application/x-amz-json-1.0", "x-amzn-errortype": code}
        return start, body.encode(), {"Content-Type": "application/xml"}

    def too_skewed(self) -> tuple[int, str, str]:
        """What this service says of a signature whose time is off: status, code, text."""
        if self.service == "s3":
            return (
                403,
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
            )
        if self.service == "ec2":
            return 400, "RequestExpired", "Request has expired."
        if self.is_form:
            return 403, "SignatureDoesNotMatch", "Signature expired"
        return 400, "InvalidSignatureException", "Signature expired"


def name_request(message: Message) -> Named:
    """Say what a request is."""
    method, target, _ = message.start.split(" ", 2)
    parts = urlsplit(target)
    scope = _SCOPE.search(message.header("Authorization"))
    region, service = (scope.group(1), scope.group(2)) if scope else ("", "")
    is_form = message.header("Content-Type").startswith("application/x-www-form-urlencoded")
    operation = _operation(message, method, parts.path, parts.query, service, is_form=is_form)
    return Named(service, operation, method, unquote(parts.path), region, is_form)


def _operation(message: Message, method: str, path: str, query: str, service: str, *, is_form: bool) -> str:
    target = message.header("X-Amz-Target")
    if target:
        return target.rpartition(".")[2]
    if is_form:
        action = dict(parse_qsl(message.body.decode("utf-8", "replace"))).get("Action")
        if action:
            return action
    cbor = _CBOR_PATH.search(path)
    if cbor:
        return cbor.group(1)
    keys = dict(parse_qsl(query, keep_blank_values=True))
    headers = {name.lower() for name, _ in message.headers}
    return _rest_operation(_model_name(service, path), method, path, keys, headers) or f"{method} {unquote(path)}"


def _model_name(service: str, path: str) -> str:
    return "apigatewayv2" if service == "apigateway" and path.startswith("/v2/") else _REST.get(service, service)


def _rest_operation(service: str, method: str, path: str, query: dict[str, str], headers: set[str]) -> str:
    """The operation that asks for the most of what the request has, among those that fit."""
    best, name = -1, ""
    for route in _routes(service):
        if route.method != method or not route.path.fullmatch(path):
            continue
        if not (route.query.items() <= query.items() and route.needs <= query.keys() and route.headers <= headers):
            continue
        asked = len(route.query) + len(route.needs) + len(route.headers)
        if asked > best or (asked == best and len(route.operation) < len(name)):
            best, name = asked, route.operation
    return name


@dataclass(frozen=True, slots=True)
class _Route:
    operation: str
    method: str
    path: re.Pattern[str]
    query: dict[str, str]
    needs: frozenset[str]
    headers: frozenset[str]


@functools.cache
def _routes(service: str) -> tuple[_Route, ...]:
    if service not in _REST.values():
        return ()
    from botocore.loaders import Loader

    model = Loader().load_service_model(service, "service-2")
    return tuple(_route(name, operation, model["shapes"]) for name, operation in model["operations"].items())


def _route(name: str, operation: dict[str, Any], shapes: dict[str, Any]) -> _Route:
    uri, _, query = operation["http"]["requestUri"].partition("?")
    shape = shapes[operation["input"]["shape"]] if "input" in operation else {}
    members = [shape["members"][member] for member in shape.get("required", [])]
    return _Route(
        operation=name,
        method=operation["http"]["method"],
        path=_pattern(uri),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        needs=frozenset(member["locationName"] for member in members if member.get("location") == "querystring"),
        headers=frozenset(member["locationName"].lower() for member in members if member.get("location") == "header"),
    )


def _pattern(uri: str) -> re.Pattern[str]:
    text = ""
    for part in re.split(r"(\{[^}]+\})", uri.rstrip("/")):
        if part.startswith("{"):
            text += ".+" if part.endswith("+}") else "[^/]+"
        else:
            text += re.escape(part)
    return re.compile(text + "/?")
