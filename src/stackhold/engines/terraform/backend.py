"""A state backend on loopback for modules that declare none: the runtime's `http` backend against stackhold's store.

Only the runtime of this very run knows its path and password. What it writes is confirmed in the store before it is
told so. What each request means is in `backend_rules`; here is who is listened to, and how much of it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from stackhold.engines.terraform.backend_rules import Answer, Backend

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from stackhold.engines.terraform.backend_rules import HeldLock
    from stackhold.engines.terraform.state_keeper import StateKeeper
    from stackhold.ports.clock import Clock

LARGEST: Final = 256 * 1024 * 1024
USER: Final = "stackhold"
SETTINGS: Final = "TF_HTTP_"
_LARGEST_LOCK: Final = 64 * 1024
_CHUNK_HEAD: Final = 32
_STALL_S: Final = 60
_SETTLE_S: Final = 10.0
_METHODS: Final = ("GET", "POST", "LOCK", "UNLOCK")


class BackendServer:
    """The backend of one run, to be used in a `with`."""

    def __init__(self, keeper: StateKeeper, clock: Clock) -> None:
        self._backend = Backend(keeper)
        self._path = f"/{clock.nonce()}"
        self._password = clock.nonce()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> BackendServer:
        self._server = _Server(self._backend, self._path, self._password)
        self._thread = threading.Thread(target=self._server.serve, name="stackhold-state-backend", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.end()
        assert self._thread is not None
        self._thread.join()
        self._server.wait_answered(_SETTLE_S)
        self._server.server_close()

    @property
    def address(self) -> str:
        """Where it listens."""
        assert self._server is not None, "the server is not running"
        return f"http://127.0.0.1:{self._server.server_address[1]}{self._path}"

    @property
    def held(self) -> HeldLock | None:
        """The state lock, None when the state is not locked."""
        return self._backend.held

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why requests were refused, the latest last."""
        return self._backend.refusals

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be shown nowhere."""
        return (self._password, self._path.lstrip("/"))

    def forget_lock(self) -> None:
        """Free the state lock of a process that is gone for certain: killed, with its whole group."""
        self._backend.forget_lock()

    def env(self) -> dict[str, str]:
        """All settings of the runtime's `http` backend; none of them comes to stand in a file.

        It tries again for a few seconds only: outages of the store are sat out here, and who lost this server for
        good, because the runner was killed, should write its state to a file while there is time.
        """
        address = self.address
        return {
            f"{SETTINGS}ADDRESS": address,
            f"{SETTINGS}UPDATE_METHOD": "POST",
            f"{SETTINGS}LOCK_ADDRESS": address,
            f"{SETTINGS}LOCK_METHOD": "LOCK",
            f"{SETTINGS}UNLOCK_ADDRESS": address,
            f"{SETTINGS}UNLOCK_METHOD": "UNLOCK",
            f"{SETTINGS}USERNAME": USER,
            f"{SETTINGS}PASSWORD": self._password,
            f"{SETTINGS}RETRY_MAX": "3",
            f"{SETTINGS}RETRY_WAIT_MIN": "1",
            f"{SETTINGS}RETRY_WAIT_MAX": "1",
        }

    def over(self, env: Mapping[str, str]) -> dict[str, str]:
        """An environment with these settings in place of all that it had for another `http` backend."""
        return {name: value for name, value in env.items() if not name.startswith(SETTINGS)} | self.env()


class _Server(ThreadingHTTPServer):
    """Listens on a free port of the loopback; one thread per request, since a read must not wait for a slow write."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, backend: Backend, path: str, password: str) -> None:
        self.backend = backend
        self.path = path
        self.credentials = base64.b64encode(f"{USER}:{password}".encode())
        self._open = 0
        self._answered = threading.Condition()
        self._ends = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def serve(self) -> None:
        """Take requests until the end is said. Waits for nothing but them, so nothing has to be looked at meanwhile."""
        while not self._ends.is_set():
            self.handle_request()

    def end(self) -> None:
        """Take no more requests; a connection of our own wakes who waits for one."""
        self._ends.set()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.server_address[1]), timeout=_SETTLE_S).close()

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Count what is being answered."""
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]  # as the base is given it
        finally:
            with self._answered:
                self._open -= 1
                self._answered.notify_all()

    def process_request(self, request: object, client_address: object) -> None:
        """Count what is being answered."""
        with self._answered:
            self._open += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]  # as the base is given it

    def wait_answered(self, seconds: float) -> bool:
        """Wait until nothing is being answered any more, so many seconds at most."""
        with self._answered:
            return self._answered.wait_for(lambda: not self._open, timeout=seconds)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news: it was killed, and who killed it says so."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server_version = "stackhold"
    sys_version = ""
    timeout = _STALL_S
    server: _Server

    def _serve(self) -> None:
        self.close_connection = True
        try:
            answer = self._answer()
        except (ConnectionError, TimeoutError):
            return
        except Exception as error:
            why = f"a mistake of our own in the state backend: {type(error).__name__}"
            self.server.backend.note(why)
            answer = Answer(500, why.encode())
        with contextlib.suppress(ConnectionError, TimeoutError):
            self._send(answer)

    do_GET = do_POST = do_LOCK = do_UNLOCK = do_DELETE = do_PUT = do_HEAD = _serve  # the base's names

    def _answer(self) -> Answer:
        target = urlsplit(self.path)
        if not hmac.compare_digest(target.path.encode(), self.server.path.encode()):
            return Answer(404)
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic" or not hmac.compare_digest(given.strip().encode(), self.server.credentials):
            return Answer(401)
        if self.command not in _METHODS:
            return Answer(405, b"this backend keeps one state; it has no workspaces and deletes nothing")
        backend = self.server.backend
        if self.command == "GET":
            return backend.read()
        body = self._body(LARGEST if self.command == "POST" else _LARGEST_LOCK)
        if isinstance(body, Answer):
            return body
        if self.command == "POST":
            return backend.write((parse_qs(target.query).get("ID") or [""])[0], body)
        return backend.lock(body) if self.command == "LOCK" else backend.unlock(body)

    def _body(self, limit: int) -> bytes | Answer:
        """The whole body; what it is answered instead when it is too large, or not what was sent.

        The runtimes send a length with all that has a body; `force-unlock` asks in chunks, the first being the end.
        """
        length = self.headers.get("Content-Length", "0")
        if self.headers.get("Transfer-Encoding"):
            length = "0" if self.rfile.readline(_CHUNK_HEAD).strip() == b"0" else ""
        if not (length.isascii() and length.isdecimal()):
            return Answer(411)
        if int(length) > limit:
            self.server.backend.note(f"a request was refused: {int(length):,} bytes are more than {limit:,}")
            return Answer(413)
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            raise ConnectionError("the body ends early")
        digest = self.headers.get("Content-MD5")
        if digest and digest != base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode():
            return Answer(400, b"the body is not what its digest says")
        return body

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Connection", "close")
        if answer.status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="stackhold"')
        if answer.status == 200 and self.command == "GET":
            self.send_header("Content-Type", "application/json")
            md5 = hashlib.md5(answer.body, usedforsecurity=False).digest()
            self.send_header("Content-MD5", base64.b64encode(md5).decode())
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """No access log: its lines would hold the path."""
