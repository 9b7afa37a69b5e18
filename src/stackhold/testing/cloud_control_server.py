"""A Cloud Control endpoint on loopback for tests, since the emulators' own makes nothing real.

The protocol is AWS's (JSON 1.0 under `X-Amz-Target: CloudApiService.…`); how the service behaves is in
`cloud_control_model`. Point clients at it with `AWS_ENDPOINT_URL_CLOUDCONTROL`, beside an emulator for the rest.
"""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from stackhold.testing.cloud_control_model import CloudControlModel, Refused, ServedType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CloudControlServer", "ServedType", "cloud_control_server"]

_TARGET = "CloudApiService."


class CloudControlServer:
    """A running server. `model` is the service behind it: its resources, its calls, failures on demand."""

    def __init__(self, model: CloudControlModel) -> None:
        self.model = model
        self._dropping: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self) -> dict[str, str]:
        """What a client process needs beside credentials and region."""
        return {"AWS_ENDPOINT_URL_CLOUDCONTROL": self.url}

    def lose_answers(self, operation: str, times: int = 1) -> None:
        """Carry out the next calls of an operation, and hang up instead of answering."""
        with self._lock:
            self._dropping[operation] = times

    def loses(self, operation: str) -> bool:
        """Whether this call's answer is to be lost; counts it."""
        with self._lock:
            left = self._dropping.get(operation, 0)
            self._dropping[operation] = max(0, left - 1)
            return left > 0

    def reset(self) -> None:
        """Forget everything: resources, requests, tokens, calls, and failures that have not come yet."""
        with self._lock:
            self._dropping.clear()
        self.model.reset()

    def serve(self) -> None:
        """Answer until `stop`."""
        self._server.serve_forever(poll_interval=0.02)

    def stop(self) -> None:
        """Answer no more and free the port."""
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def cloud_control_server(
    types: Mapping[str, ServedType], *, polls: int = 2, retry_after_s: float | None = None
) -> Iterator[CloudControlServer]:
    """Run a server for these types until the block ends."""
    server = CloudControlServer(CloudControlModel(types, polls=polls, retry_after_s=retry_after_s))
    thread = threading.Thread(target=server.serve, name="cloud-control", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)


def _handler_of(owner: CloudControlServer) -> type[BaseHTTPRequestHandler]:
    class _Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 64 * 1024
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            target = self.headers.get("X-Amz-Target", "")
            operation = target.removeprefix(_TARGET)
            try:
                if not target.startswith(_TARGET):
                    raise Refused("UnknownOperationException", f"unknown target {target!r}", 404)
                answer, status = owner.model.answer(operation, _object(raw)), 200
            except Refused as refused:
                answer = {"__type": f"com.amazonaws.cloudapiservice#{refused.code}", "Message": refused.message}
                status = refused.status
            if owner.loses(operation):
                self.close_connection = True
                return
            self._send(status, answer)

        def _send(self, status: int, answer: dict[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
            """Tests need no access log."""

    return _Handler


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        raise Refused("SerializationException", "the body is not JSON") from None
    if not isinstance(body, dict):
        raise Refused("SerializationException", "the body is no object")
    return body
