"""Plain requests to a Kubernetes API server: JSON in, JSON out, and watches; no client library.

An answer that refuses is an `ApiError` with the server's reason; no answer at all is `ApiUnreachable`, which callers
that must outlive a restart of the server try again.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Object = dict[str, Any]
"""A Kubernetes object as its JSON says."""

_TIMEOUT_SECONDS = 30.0
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The server answered with a refusal."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiUnreachable(Exception):
    """The server gave no answer: refused, cut or silent for too long. Whether it acted is not known."""


@dataclass(frozen=True, slots=True, repr=False)
class Access:
    """Where an API server is, the certificates that it is known by, and the token that says who asks."""

    url: str
    ca_file: Path
    token: str

    @property
    def host(self) -> str:
        """The server's host name or address."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The server's port."""
        return urlsplit(self.url).port or 443


class Watch:
    """Changes as they come: the kind (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR) and the object of each."""

    def __init__(self, connection: http.client.HTTPSConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._socket = connection.sock

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        try:
            while line := self._response.readline():
                event = json.loads(line)
                yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiUnreachable(f"a watch ended: {error!r}") from error
        finally:
            self._connection.close()

    def stop(self) -> None:
        """End it from another thread, also while that waits for the next change."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


class Api:
    """Requests to one server; each has a connection of its own, so that threads need not agree."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._tls = ssl.create_default_context(cafile=str(access.ca_file))

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Object:
        """Read an object or a list."""
        return self._ask("GET", path, query=query)

    def create(self, path: str, body: Object) -> Object:
        """Create an object in the collection, or call the subresource, at `path`."""
        return self._ask("POST", path, body=body)

    def replace(self, path: str, body: Object) -> Object:
        """Write an object over the one of the same resource version."""
        return self._ask("PUT", path, body=body)

    def merge(self, path: str, body: Object) -> Object:
        """Apply a JSON merge patch: a list replaces a list."""
        return self._ask("PATCH", path, body=body, kind=_MERGE)

    def merge_lists(self, path: str, body: Object) -> Object:
        """Apply a strategic merge patch: lists with keys, such as conditions, are merged entry by entry."""
        return self._ask("PATCH", path, body=body, kind=_STRATEGIC)

    def delete(self, path: str, options: Object | None = None) -> Object:
        """Ask for the deletion of an object."""
        return self._ask("DELETE", path, body=options)

    def watch(self, path: str, query: Mapping[str, str], *, seconds: int) -> Watch:
        """Begin to watch a collection, for `seconds` at most."""
        asked = {**query, "watch": "true", "timeoutSeconds": str(seconds)}
        connection = self._connect(seconds + _TIMEOUT_SECONDS)
        try:
            response = self._send(connection, "GET", f"{path}?{urlencode(asked)}", None, None)
        except ApiError:
            connection.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ApiUnreachable(f"no answer to the watch of {path}: {error!r}") from error
        return Watch(connection, response)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        kind: str = "application/json",
    ) -> Object:
        connection = self._connect(_TIMEOUT_SECONDS)
        target = f"{path}?{urlencode(query)}" if query else path
        try:
            response = self._send(connection, method, target, body, kind)
            answer = json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ApiUnreachable(f"no answer to {method} {path}: {error!r}") from error
        finally:
            connection.close()
        assert isinstance(answer, dict)
        return answer

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._access.host, self._access.port, timeout=timeout, context=self._tls)

    def _send(
        self, connection: http.client.HTTPSConnection, method: str, target: str, body: Object | None, kind: str | None
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self._access.token}", "Accept": "application/json"}
        if body is not None and kind is not None:
            headers["Content-Type"] = kind
        connection.request(method, target, body=None if body is None else json.dumps(body), headers=headers)
        response = connection.getresponse()
        if response.status >= 400:
            raise _refusal(response)
        return response


def _refusal(response: http.client.HTTPResponse) -> ApiError:
    text = response.read().decode(errors="replace")
    try:
        said = json.loads(text)
        return ApiError(response.status, str(said.get("reason", "")), str(said.get("message", text)))
    except (ValueError, AttributeError):
        return ApiError(response.status, response.reason, text[:500])
