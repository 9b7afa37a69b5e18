"""The HTTPS server of the validating webhook: a request's body in, the answer's body out.

What is answered is decided by the function that it is given. A connection is shaken hands with in its own thread and
under a timeout, so that a client that says nothing keeps no other waiting. The certificate can be changed at any time:
connections from then on get the new one. What goes wrong is a 500 without details, which the API server takes as no
answer at all.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import tempfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.kube.certificates import Pair
    from stackhold.model.values import JsonMap

PATH = "/validate"
LARGEST_BODY = 16 * 1024 * 1024
"""An object and the one before it, each as large as the API server lets it be, with room around them."""
_PATIENCE_S = 30.0
"""How long a client may take for its handshake, and between two pieces of what it sends."""


class Webhook:
    """Serves from `start` until `close`."""

    def __init__(
        self, answer: Callable[[JsonMap], JsonMap], serving: Pair, *, host: str = "", port: int = 9443
    ) -> None:
        self._server = _Server((host, port), _context(serving), answer)
        self._thread = Thread(target=self._server.serve_forever, name="webhook", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.server_port

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def use(self, serving: Pair) -> None:
        """Serve another certificate to whoever connects from now on."""
        self._server.context = _context(serving)

    def close(self) -> None:
        """Take no more connections and give the port back; answers on their way still go out."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext, answer: Callable[[JsonMap], JsonMap]) -> None:
        self.context = context
        self.answer = answer
        super().__init__(address, _Handler)

    def finish_request(self, request: object, client_address: object) -> None:
        """Shake hands here, in the connection's own thread."""
        assert isinstance(request, socket.socket)
        request.settimeout(_PATIENCE_S)
        try:
            secured = self.context.wrap_socket(request, server_side=True)
        except OSError:
            return
        try:
            super().finish_request(secured, client_address)
        finally:
            _end(secured)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        """Answer a review."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()):
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
        elif len(length) > len(str(LARGEST_BODY)) or int(length) > LARGEST_BODY:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            body = self.rfile.read(int(length))
            if self.path.partition("?")[0] == PATH:
                self._answer(body)
            else:
                self._refuse(HTTPStatus.NOT_FOUND)

    def _answer(self, body: bytes) -> None:
        try:
            document = json.loads(body)
            answer = self.server.answer(document if isinstance(document, dict) else {})
        except (ValueError, RecursionError, InputError):
            self._refuse(HTTPStatus.BAD_REQUEST)
        except Exception:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._send(HTTPStatus.OK, json.dumps(answer).encode(), "application/json")

    def _refuse(self, status: HTTPStatus) -> None:
        """Say no more than the status; what was not read of the request ends with the connection."""
        self.close_connection = True
        self._send(status, f"{status.phrase}\n".encode(), "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Nothing about the interpreter."""
        return "stackhold"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Requests are the API server's to log."""


def _end(secured: socket.socket) -> None:
    with contextlib.suppress(OSError):
        secured.close()


def _context(serving: Pair) -> ssl.SSLContext:
    """The certificate is loaded from files, which are there for that moment only, in a folder for us alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with tempfile.TemporaryDirectory(prefix="stackhold-webhook-") as folder:
        paths = [Path(folder) / name for name in ("tls.crt", "tls.key")]
        for path, content in zip(paths, (serving.certificate, serving.key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(str(paths[0]), str(paths[1]))
    return context
