"""The cloud that the test provider `probe` manages: what exists, how often it was made, and what goes wrong.

A thing is made by POST and gets a fresh id each time, so a second creation shows. A fault belongs to an operation and a
name: slow, failing, hanging until released, losing its answer, or freezing the provider. Tests speak to the Python
object; another process speaks to `/control`: GET tells everything, POST a fault adds it, POST `/control/release` frees
what hangs, DELETE forgets everything. A request that hangs or is slow is finished although its client is gone, as a
cloud would.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Operation = Literal["create", "read", "update", "delete", "count"]
PROVIDER_PREFIX = "terraform-provider-probe"

_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "things"): "create",
    ("GET", "things"): "read",
    ("PUT", "things"): "update",
    ("DELETE", "things"): "delete",
    ("GET", "counts"): "count",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that exists. `created_count` tells how many of its name had been made when it was."""

    id: str
    name: str
    value: str
    kind: str
    secret: str
    created_count: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with an operation on a name (`*`: any), `times` times, or for ever when that is None.

    `slow` waits that many seconds, `hang` until `release()`; `done_first` does the operation before the wait, not after
    it. `status` answers that error without doing anything. `lose` does it and closes the connection without an answer.
    `freeze` does it (unless `status` is set too) and lets the provider fall silent: `stop` stops its process, `hang`
    only the call.
    """

    operation: Operation
    name: str = "*"
    times: int | None = None
    slow: float = 0.0
    hang: bool = False
    done_first: bool = False
    status: int = 0
    lose: bool = False
    freeze: Literal["", "stop", "hang"] = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a provider: what, on which name and id, and which process asked."""

    operation: Operation
    name: str
    id: str
    pid: int


@dataclass(slots=True)
class _Rule:
    fault: Fault
    left: int | None


@dataclass(slots=True)
class _Held:
    """Everything that the server knows; guarded by the server's lock."""

    things: dict[str, Thing] = field(default_factory=dict)
    created: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    requests: list[Request] = field(default_factory=list)
    rules: list[_Rule] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: dict[str, Any] | None = None
    freeze: str = ""


class ProbeServer:
    """A running server. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = _Held()
        self._released = 0
        self._pids: set[int] = set()
        self._frozen: dict[int, str] = {}
        self._http = _Http(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where a provider reaches it: `endpoint`, or PROBE_ENDPOINT."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        """Stop serving, free what hangs, and end the providers that outlived their runtime."""
        self.release()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self.end_providers()

    def end_providers(self) -> None:
        """Kill the providers that outlived their runtime."""
        for pid in self.providers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def reset(self) -> None:
        """Forget everything: things, counts, requests and faults; free what hangs."""
        with self._changed:
            self._held = _Held()
        self.release()

    def add(self, fault: Fault) -> None:
        """Let it go wrong from now on. Where several faults fit, the one added first acts."""
        with self._changed:
            self._held.rules.append(_Rule(fault, fault.times))

    def clear_faults(self) -> None:
        """Let nothing go wrong any more; what hangs goes on hanging until it is released."""
        with self._changed:
            self._held.rules.clear()

    def release(self) -> None:
        """Free everything that hangs at this moment."""
        with self._changed:
            self._released += 1
            self._changed.notify_all()

    def things(self) -> list[Thing]:
        """What exists, in the order of creation."""
        with self._changed:
            return list(self._held.things.values())

    def names(self) -> list[str]:
        """The names of what exists, sorted; a name twice is a thing made twice."""
        return sorted(thing.name for thing in self.things())

    def created(self, name: str) -> int:
        """How many things of this name were ever made."""
        with self._changed:
            return self._held.created[name]

    def deleted(self, name: str) -> int:
        """How many things of this name were ever deleted."""
        with self._changed:
            return self._held.deleted[name]

    def requests(self, operation: Operation | None = None) -> list[Request]:
        """The requests so far, as they arrived, each noted before its fault acts."""
        with self._changed:
            return [one for one in self._held.requests if operation in (None, one.operation)]

    def providers(self) -> list[int]:
        """The process ids of the providers that asked for something and still run, frozen ones too."""
        with self._changed:
            asked = sorted(self._pids)
        return [pid for pid in asked if _runs_provider(pid)]

    def frozen(self) -> list[int]:
        """The process ids of the providers that have fallen silent by now and still run."""
        with self._changed:
            told = dict(self._frozen)
        return [pid for pid in self.providers() if pid in told and (told[pid] != "stop" or _is_stopped(pid))]

    def note_frozen(self, pid: int, how: str) -> None:
        """Hear from a provider that it falls silent now. For the HTTP handler."""
        with self._changed:
            self._frozen[pid] = how
            self._changed.notify_all()

    def put(self, name: str, *, value: str = "", kind: str = "", secret: str = "") -> Thing:
        """Make a thing behind every provider's back; it counts as a creation."""
        with self._changed:
            return self._make({"name": name, "value": value, "kind": kind, "secret": secret})

    def change(self, name: str, *, value: str) -> None:
        """Set the value of every thing of this name behind the state's back."""
        with self._changed:
            for thing in [one for one in self._held.things.values() if one.name == name]:
                self._held.things[thing.id] = Thing(**{**asdict(thing), "value": value})

    def remove(self, name: str) -> None:
        """Remove every thing of this name behind the state's back."""
        with self._changed:
            for thing in [one for one in self._held.things.values() if one.name == name]:
                del self._held.things[thing.id]

    def remove_id(self, identity: str) -> None:
        """Remove one thing behind the state's back."""
        with self._changed:
            self._held.things.pop(identity, None)

    def wait_until(self, condition: Callable[[ProbeServer], bool], *, seconds: float = 60.0) -> None:
        """Wait until the condition holds; it is asked anew at each request and change. Raises `TimeoutError`."""
        end = time.monotonic() + seconds
        while not condition(self):
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not within {seconds} s; requests: {self.requests()}, things: {self.things()}")
            with self._changed:
                self._changed.wait(min(left, 0.05))

    def told(self) -> dict[str, Any]:
        """Everything that it knows, as JSON values."""
        with self._changed:
            return {
                "things": [asdict(thing) for thing in self._held.things.values()],
                "created": dict(self._held.created),
                "deleted": dict(self._held.deleted),
                "requests": [asdict(request) for request in self._held.requests],
                "faults": [asdict(rule.fault) for rule in self._held.rules if rule.left != 0],
            }

    def answer(self, operation: Operation, key: str, body: dict[str, str], pid: int) -> _Answer | None:
        """Serve one request of a provider; None stands for no answer at all. For the HTTP handler."""
        with self._changed:
            self._pids.add(pid)
            name = self._name(operation, key, body)
            held = self._held
            held.requests.append(Request(operation, name, "" if operation in ("create", "count") else key, pid))
            fault = self._fault(operation, name)
            released = self._released
            self._changed.notify_all()
        if fault is None:
            return self._do(held, operation, key, body)
        done = self._do(held, operation, key, body) if fault.done_first and not fault.status else None
        self._wait(fault, released)
        if done is None:
            done = _Answer(fault.status, {"error": "a fault"}) if fault.status else self._do(held, operation, key, body)
        return None if fault.lose else _Answer(done.status, done.body, fault.freeze)

    def _wait(self, fault: Fault, released: int) -> None:
        """Wait as the fault says; `released` counts the releases before the request was noted."""
        if fault.hang:
            with self._changed:
                self._changed.wait_for(lambda: self._released != released)
        if fault.slow:
            time.sleep(fault.slow)

    def _name(self, operation: Operation, key: str, body: dict[str, str]) -> str:
        if operation == "create":
            return body["name"]
        if operation == "count":
            return key
        found = self._held.things.get(key)
        return found.name if found else ""

    def _fault(self, operation: Operation, name: str) -> Fault | None:
        for rule in self._held.rules:
            if rule.fault.operation == operation and rule.fault.name in ("*", name) and rule.left != 0:
                if rule.left is not None:
                    rule.left -= 1
                return rule.fault
        return None

    def _do(self, held: _Held, operation: Operation, key: str, body: dict[str, str]) -> _Answer:
        with self._changed:
            if held is not self._held:
                return _Answer(410, {"error": "the server was reset meanwhile"})
            self._changed.notify_all()
            if operation == "create":
                return _Answer(201, asdict(self._make(body)))
            if operation == "count":
                return _Answer(200, {"name": key, "created_count": held.created[key]})
            found = held.things.get(key)
            if found is None:
                return _Answer(404, {"error": "no such thing"})
            if operation == "update":
                found = Thing(id=found.id, created_count=found.created_count, **_wanted(body))
                held.things[key] = found
            if operation == "delete":
                del held.things[key]
                held.deleted[found.name] += 1
            return _Answer(200, asdict(found))

    def _make(self, body: dict[str, str]) -> Thing:
        held = self._held
        wanted = _wanted(body)
        held.created[wanted["name"]] += 1
        made = Thing(id=f"thing-{secrets.token_hex(6)}", created_count=held.created[wanted["name"]], **wanted)
        held.things[made.id] = made
        return made


def _wanted(body: dict[str, str]) -> dict[str, Any]:
    return {part: body.get(part, "") for part in ("name", "value", "kind", "secret")}


def _runs_provider(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.startswith(PROVIDER_PREFIX)
    except OSError:
        return False


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


@contextlib.contextmanager
def running() -> Iterator[ProbeServer]:
    """A server on a free port of loopback, closed at the end."""
    server = ProbeServer()
    try:
        yield server
    finally:
        server.close()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], probe: ProbeServer) -> None:
        self.probe = probe
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away; it is what many tests want."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        pass

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        self.close_connection = True
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        top, _, key = self.path.lstrip("/").partition("/")
        if top == "control":
            self._send(self._control(key, body))
            return
        pid = int(self.headers.get("X-Probe-Pid") or 0)
        if top == "frozen":
            self.server.probe.note_frozen(pid, key)
            self._send(_Answer(200))
            return
        operation = _OPERATIONS.get((self.command, top))
        if operation is None:
            self._send(_Answer(405, {"error": "no such operation"}))
            return
        answer = self.server.probe.answer(operation, unquote(key), body, pid)
        if answer is None:
            # A reset in place of an orderly end: no byte of an answer, as when the network breaks.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        self._send(answer)

    def _control(self, key: str, body: dict[str, Any]) -> _Answer:
        probe = self.server.probe
        if self.command == "DELETE":
            probe.reset()
        elif self.command == "POST" and key == "release":
            probe.release()
        elif self.command == "POST":
            unknown = set(body) - {one.name for one in fields(Fault)}
            if unknown or "operation" not in body:
                return _Answer(400, {"error": f"not a fault; unknown: {sorted(unknown)}"})
            probe.add(Fault(**body))
        return _Answer(200, probe.told())

    def _send(self, answer: _Answer) -> None:
        text = json.dumps(answer.body or {}).encode()
        self.send_response(answer.status)
        if answer.freeze:
            self.send_header("X-Probe-Freeze", answer.freeze)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
