"""A server for the `http` backend, as somebody else might run one: one state and one lock, both to be looked at."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class HttpState(ThreadingHTTPServer):
    """The state and the lock; either may be set by a test."""

    daemon_threads = True

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.state: bytes | None = None
        self.lock: dict[str, Any] | None = None
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def env(self) -> dict[str, str]:
        """What a runtime must be told."""
        url = f"http://127.0.0.1:{self.server_address[1]}/state"
        return {"TF_HTTP_ADDRESS": url, "TF_HTTP_LOCK_ADDRESS": url, "TF_HTTP_UNLOCK_ADDRESS": url}

    def answer(self, method: str, body: bytes) -> tuple[int, bytes]:
        """What a request is answered."""
        with self.guard:
            self.asked.append(method)
            match method:
                case "GET":
                    return (404, b"") if self.state is None else (200, self.state)
                case "POST":
                    self.state = body
                case "LOCK":
                    if self.lock is not None:
                        return 423, json.dumps(self.lock).encode()
                    self.lock = json.loads(body)
                case "UNLOCK":
                    self.lock = None
            return 200, b""


class _Handler(BaseHTTPRequestHandler):
    server: HttpState

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, answer = self.server.answer(self.command, body)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_LOCK = do_UNLOCK = _serve  # the base's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """Say nothing."""


@contextmanager
def serving() -> Iterator[HttpState]:
    """A server on loopback."""
    with HttpState() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
