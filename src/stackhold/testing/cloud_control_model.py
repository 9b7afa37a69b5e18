"""Cloud Control as AWS documents it, without HTTP: resources, requests in progress, client tokens, failures on demand.

A request is accepted first and carried out after so many looks at its status. Like AWS, the same client token with
the same request is the same request; a resource has one request in progress at a time; a patch starts from what the
read gives, which lacks write-only properties; read-only ones cannot be sent and create-only ones cannot change.
"""

from __future__ import annotations

import copy
import itertools
import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.testing.json_patch import PatchError, apply_patch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Refused(Exception):
    """An exception of the API, answered at once."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True, slots=True)
class ServedType:
    """A resource type that the server knows."""

    identifier: tuple[str, ...] = ("Id",)
    """The properties whose values, joined by `|`, name a resource; the first is made up when it is not sent."""
    made_up: Mapping[str, str] = field(default_factory=dict)
    """Read-only properties; `{id}` in a text is the identifier."""
    create_only: frozenset[str] = frozenset()
    write_only: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What AWS fills in."""


@dataclass(slots=True)
class Request:
    """One create, update or delete, and how far it has come."""

    token: str
    operation: str
    type: str
    identifier: str | None
    run: Callable[[], None]
    status: str = "IN_PROGRESS"
    polls_left: int = 0
    error: tuple[str, str] | None = None
    model: dict[str, Any] | None = None
    at: float = 0.0


@dataclass(slots=True)
class Planned:
    """A failure that a test has asked for."""

    code: str
    message: str
    times: int
    leaves: bool = False
    is_refusal: bool = False
    status: int = 400


class CloudControlModel:
    """The service's state. Thread-safe: one call at a time."""

    def __init__(self, types: Mapping[str, ServedType], *, polls: int = 2, retry_after_s: float | None = None) -> None:
        """`polls`: how many looks a request takes; `retry_after_s`: what the answers advise to wait."""
        self.polls = polls
        self.retry_after_s = retry_after_s
        self.resources: dict[tuple[str, str], dict[str, Any]] = {}
        """The full state by type and identifier, write-only properties included."""
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Every operation that was asked for, with its parameters."""
        self._types = dict(types)
        self._requests: dict[str, Request] = {}
        self._tokens: dict[str, tuple[str, str]] = {}
        self._planned: dict[str, list[Planned]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()

    def fail_next(
        self, operation: str, code: str, message: str = "asked for by the test", *, times: int = 1, leaves: bool = False
    ) -> None:
        """Let the next requests of an operation be accepted and then fail with this handler error code.

        With `leaves` a create has made its resource all the same.
        """
        self._planned.setdefault(operation, []).append(Planned(code, message, times, leaves))

    def refuse_next(
        self, operation: str, code: str, message: str = "asked for by the test", *, times: int = 1, status: int = 400
    ) -> None:
        """Let the next calls of an operation be refused at once with this exception."""
        planned = Planned(code, message, times, is_refusal=True, status=status)
        self._planned.setdefault(operation, []).append(planned)

    def forget_tokens(self) -> None:
        """As after 36 hours: every client token is new again."""
        with self._lock:
            self._tokens.clear()

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            for kept in (self.resources, self.calls, self._requests, self._tokens, self._planned):
                kept.clear()

    def answer(self, operation: str, body: dict[str, Any]) -> dict[str, Any]:
        """One call of the API. Raises `Refused`."""
        with self._lock:
            self.calls.append((operation, copy.deepcopy(body)))
            planned = self._take(operation, is_refusal=True)
            if planned is not None:
                raise Refused(planned.code, planned.message, planned.status)
            match operation:
                case "CreateResource" | "UpdateResource" | "DeleteResource":
                    return {"ProgressEvent": self._event(self._begin(operation, body))}
                case "GetResourceRequestStatus":
                    return {"ProgressEvent": self._event(self._look(body))}
                case "CancelResourceRequest":
                    return {"ProgressEvent": self._event(self._cancel(body))}
                case "GetResource":
                    return self._get(body)
                case "ListResources":
                    return self._list(body)
                case "ListResourceRequests":
                    return self._list_requests(body)
                case _:
                    raise Refused("UnknownOperationException", operation, 404)

    def _take(self, operation: str, *, is_refusal: bool) -> Planned | None:
        for planned in self._planned.get(operation, []):
            if planned.is_refusal == is_refusal and planned.times > 0:
                planned.times -= 1
                return planned
        return None

    def _begin(self, operation: str, body: dict[str, Any]) -> Request:
        served = self._served(body)
        client_token = body.get("ClientToken") or uuid.uuid4().hex
        asked = operation + json.dumps({k: v for k, v in body.items() if k != "ClientToken"}, sort_keys=True)
        if client_token in self._tokens:
            known, request_token = self._tokens[client_token]
            if known != asked:
                raise Refused("ClientTokenConflictException", "the token was used for another request")
            return self._requests[request_token]
        request = Request(
            token=str(uuid.uuid4()),
            operation=operation.removesuffix("Resource").upper(),
            type=body["TypeName"],
            identifier=body.get("Identifier"),
            run=lambda: None,
            polls_left=self.polls,
            at=time.time(),
        )
        self._prepare(request, served, body)
        self._requests[request.token] = request
        self._tokens[client_token] = (asked, request.token)
        return request

    def _prepare(self, request: Request, served: ServedType, body: dict[str, Any]) -> None:
        if request.operation == "CREATE":
            desired = _document(body, "DesiredState")
            if not isinstance(desired, dict):
                raise Refused("InvalidRequestException", "DesiredState must be a JSON object")
            request.identifier = self._name(served, desired)
            request.run = lambda: self._create(request, served, desired)
        elif request.operation == "UPDATE":
            operations = _document(body, "PatchDocument")
            request.run = lambda: self._update(request, served, operations)
        else:
            request.run = lambda: self._delete(request)
        for other in self._requests.values():
            is_same = other.type == request.type and other.identifier == request.identifier
            if is_same and other.status == "IN_PROGRESS":
                self._advance(other)
                raise Refused("ConcurrentOperationException", "another request for this resource is in progress")

    def _look(self, body: dict[str, Any]) -> Request:
        request = self._request(body)
        if request.status == "CANCEL_IN_PROGRESS":
            request.status = "CANCEL_COMPLETE"
        elif request.status == "IN_PROGRESS":
            self._advance(request)
        return request

    def _advance(self, request: Request) -> None:
        """Time passes for a request with every look at it, and with every other request that it is in the way of."""
        request.polls_left -= 1
        if request.polls_left <= 0:
            self._finish(request)

    def _finish(self, request: Request) -> None:
        planned = self._take(f"{request.operation.title()}Resource", is_refusal=False)
        request.at = time.time()
        if planned is not None:
            request.status = "FAILED"
            request.error = (planned.code, planned.message)
            if planned.leaves:
                request.run()
            elif request.operation == "CREATE":
                request.identifier = None
            return
        request.status = "SUCCESS"
        request.run()

    def _create(self, request: Request, served: ServedType, desired: dict[str, Any]) -> None:
        sent = sorted(served.made_up.keys() & desired.keys())
        if sent:
            self._fail(request, "InvalidRequest", f"read-only properties cannot be sent: {sent}")
            return
        assert request.identifier is not None
        key = (request.type, request.identifier)
        if key in self.resources:
            self._fail(request, "AlreadyExists", f"Resource of type '{request.type}' with identifier exists already.")
            return
        made_up = {name: text.format(id=request.identifier) for name, text in served.made_up.items()}
        names = dict(zip(served.identifier, request.identifier.split("|"), strict=True))
        self.resources[key] = {**copy.deepcopy(dict(served.defaults)), **names, **made_up, **copy.deepcopy(desired)}
        request.model = self._readable(served, self.resources[key])

    def _update(self, request: Request, served: ServedType, operations: Any) -> None:  # noqa: ANN401
        key = (request.type, request.identifier or "")
        if key not in self.resources:
            self._fail(request, "NotFound", f"Resource of type '{request.type}' was not found.")
            return
        before = self._readable(served, self.resources[key])
        try:
            after = apply_patch(before, operations)
        except PatchError as error:
            self._fail(request, "InvalidRequest", f"the patch cannot be applied: {error}")
            return
        full = self.resources[key]
        names = {*before, *after}
        changed = {name for name in names if name not in served.write_only and before.get(name) != after.get(name)}
        if changed & served.create_only or (after.keys() & served.create_only & served.write_only):
            self._fail(request, "NotUpdatable", f"create-only properties cannot change: {sorted(changed)}")
        elif changed & served.made_up.keys():
            self._fail(request, "InvalidRequest", f"read-only properties cannot change: {sorted(changed)}")
        else:
            kept = {name: full[name] for name in served.write_only & served.create_only if name in full}
            self.resources[key] = {**kept, **after}
            request.model = self._readable(served, after)

    def _delete(self, request: Request) -> None:
        if self.resources.pop((request.type, request.identifier or ""), None) is None:
            self._fail(request, "NotFound", f"Resource of type '{request.type}' was not found.")

    @staticmethod
    def _fail(request: Request, code: str, message: str) -> None:
        request.status = "FAILED"
        request.error = (code, message)

    def _cancel(self, body: dict[str, Any]) -> Request:
        request = self._request(body)
        if request.status != "IN_PROGRESS":
            raise Refused("ConcurrentModificationException", "the request is over")
        request.status = "CANCEL_IN_PROGRESS"
        return request

    def cancel_all(self) -> None:
        """As if somebody cancelled every request in progress."""
        with self._lock:
            for request in self._requests.values():
                if request.status == "IN_PROGRESS":
                    request.status = "CANCEL_IN_PROGRESS"

    def _get(self, body: dict[str, Any]) -> dict[str, Any]:
        served = self._served(body)
        full = self.resources.get((body["TypeName"], body["Identifier"]))
        if full is None:
            raise Refused("ResourceNotFoundException", f"{body['TypeName']} {body['Identifier']} was not found")
        return {
            "TypeName": body["TypeName"],
            "ResourceDescription": self._description(served, body["Identifier"], full),
        }

    def _list(self, body: dict[str, Any]) -> dict[str, Any]:
        served = self._served(body)
        found = [
            self._description(served, identifier, full)
            for (type_name, identifier), full in sorted(self.resources.items())
            if type_name == body["TypeName"]
        ]
        page, more = _page(found, body)
        return {"TypeName": body["TypeName"], "ResourceDescriptions": page, **more}

    def _list_requests(self, body: dict[str, Any]) -> dict[str, Any]:
        wanted = body.get("ResourceRequestStatusFilter") or {}
        operations, statuses = wanted.get("Operations"), wanted.get("OperationStatuses")
        found = [
            self._event(request)
            for request in self._requests.values()
            if (not operations or request.operation in operations) and (not statuses or request.status in statuses)
        ]
        page, more = _page(found, body)
        return {"ResourceRequestStatusSummaries": page, **more}

    def _served(self, body: dict[str, Any]) -> ServedType:
        name = body.get("TypeName")
        if not isinstance(name, str) or name not in self._types:
            raise Refused("TypeNotFoundException", f"The type '{name}' cannot be found.", 404)
        return self._types[name]

    def _request(self, body: dict[str, Any]) -> Request:
        token = body.get("RequestToken")
        if token not in self._requests:
            raise Refused("RequestTokenNotFoundException", f"Request with token {token} was not found", 404)
        return self._requests[token]

    def _name(self, served: ServedType, desired: dict[str, Any]) -> str:
        first, *others = served.identifier
        made_up = f"{first.lower()}-{next(self._numbers):08x}"
        return "|".join([str(desired.get(first) or made_up), *(str(desired.get(name, "")) for name in others)])

    @staticmethod
    def _readable(served: ServedType, full: dict[str, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value) for key, value in full.items() if key not in served.write_only}

    def _description(self, served: ServedType, identifier: str, full: dict[str, Any]) -> dict[str, Any]:
        return {"Identifier": identifier, "Properties": json.dumps(self._readable(served, full))}

    def _event(self, request: Request) -> dict[str, Any]:
        event: dict[str, Any] = {
            "TypeName": request.type,
            "RequestToken": request.token,
            "Operation": request.operation,
            "OperationStatus": request.status,
            "EventTime": request.at,
        }
        is_over = request.status not in ("IN_PROGRESS", "PENDING")
        if request.identifier and (is_over or request.operation != "CREATE"):
            event["Identifier"] = request.identifier
        if request.model is not None:
            event["ResourceModel"] = json.dumps(request.model)
        if request.error is not None:
            event["ErrorCode"], event["StatusMessage"] = request.error
        if not is_over and self.retry_after_s is not None:
            event["RetryAfter"] = request.at + self.retry_after_s
        return event


def _document(body: dict[str, Any], key: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(body[key])
    except (KeyError, TypeError, ValueError):
        raise Refused("InvalidRequestException", f"{key} must be JSON text") from None


def _page(found: list[dict[str, Any]], body: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    start = int(body.get("NextToken") or 0)
    end = start + int(body.get("MaxResults") or 100)
    return found[start:end], ({"NextToken": str(end)} if end < len(found) else {})
