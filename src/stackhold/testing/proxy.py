"""A proxy between a client and an AWS emulator that can be slow, lossy, forgetful and wrong about the time.

    with SlowProxy(emulator.url) as proxy:
        held = proxy.add(Rule(service="dynamodb", operation="CreateTable", skip=2, hold=threading.Event()))
        process = subprocess.Popen([...], env={**os.environ, **emulator.environment(), "AWS_ENDPOINT_URL": proxy.url})
        held.wait_reached()          # the third CreateTable is waiting in the proxy
        process.send_signal(signal.SIGTERM)
        held.release()
        assert proxy.count(service="dynamodb", operation="DeleteTable") == 2

Every rule that matches a request is applied, in order. In time: `delay_ms`, then `hold`, `before` (a function),
`drop="before"` or an `answer` of the proxy's own; else the request is forwarded; then `after`, `drop="after"`.
A request that was held is forwarded when released, even if its client is gone by then: it lands late. Names:
`service` is the signature's (`dynamodb`, `s3`, `logs`, `apigateway`, `ec2`, …), `operation` the API's
(`CreateTable`, `PutObject`); both, and `path`, may be patterns (`Delete*`, `/bucket/*/lock.json`).

`proxy.skew_ms` moves the server's time: `Date` and `Last-Modified` of each answer; with `refuses_skewed` a
request signed more than 15 minutes off that time is refused as AWS refuses it. `Host` is passed on as the client
sent it. `proxy.calls` logs every request and what came of it. Safe to use from several threads.

As a process: `python -m stackhold.testing.proxy --target URL --port N --delay-ms 50 --stats FILE`; it prints its
URL, and writes the figures when told to end (SIGTERM) and at each `GET /_proxy/stats`; `POST /_proxy/reset`
begins anew.
"""

from __future__ import annotations

import argparse
import calendar
import contextlib
import fnmatch
import functools
import json
import select
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from stackhold.testing.aws_requests import Named, name_request
from stackhold.testing.http_messages import Closed, Message, Wire

if TYPE_CHECKING:
    from collections.abc import Callable

_SKEW_ALLOWED_MS = 15 * 60_000
_WAIT_SECONDS = 30.0


@dataclass(slots=True)
class Call:
    """One request as the proxy saw it. `status` is 0 until answered, and stays 0 when it was dropped."""

    number: int
    named: Named
    request_bytes: int
    response_bytes: int = 0
    status: int = 0
    forwarded: bool = False
    ms: float = 0.0
    label: str = ""
    """What the proxy's `label` says of it."""

    @property
    def name(self) -> str:
        """`dynamodb:CreateTable`."""
        return f"{self.named.service}:{self.named.operation}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that the proxy gives by itself. With `code` it is an error in the service's own form."""

    status: int
    code: str = ""
    reason: str = "said the proxy"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False)
class Rule:
    """What happens to the requests that it matches: all of them, or `times` of them after the first `skip`."""

    service: str = "*"
    operation: str = "*"
    path: str = "*"
    when: Callable[[Named, Message], bool] | None = None
    """A further condition."""
    skip: int = 0
    times: int | None = None
    delay_ms: int = 0
    hold: threading.Event | None = None
    """Wait until it is set."""
    before: Callable[[Call], None] | None = None
    """Called before forwarding (in the proxy's thread), such as to kill the client."""
    after: Callable[[Call], None] | None = None
    """Called after the emulator has answered, before the client sees it."""
    drop: Literal["before", "after"] | None = None
    """Close the connection without an answer: not forwarded at all, or after the emulator has done it."""
    answered: Callable[[Call], None] | None = None
    """Called as soon as the answer is on its way to the client."""
    answer: Answer | None = None
    judge: Callable[[Call, Message], Answer | None] | None = None
    """Asked at the moment of forwarding, after any hold: an answer of its own, or None to forward the request."""
    age_ms: int = 0
    """Makes an object look that much older: moves its `Last-Modified` back, and `Date` not."""
    strip: tuple[str, ...] = ()
    """Request headers to remove before forwarding, by the beginnings of their names (`If-`)."""
    reached: threading.Event = field(default_factory=threading.Event)
    """Set when the first request is caught (after its delay, before the hold)."""
    caught: int = 0
    _met: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def catches(self, named: Named, message: Message) -> bool:
        """Whether it applies to this request; counts it."""
        if not _fits(named, self.service, self.operation, self.path):
            return False
        if self.when is not None and not self.when(named, message):
            return False
        with self._lock:
            self._met += 1
            if self._met <= self.skip or (self.times is not None and self._met > self.skip + self.times):
                return False
            self.caught += 1
            return True

    def release(self) -> None:
        """Let what is held go on, and hold nothing more."""
        if self.hold is not None:
            self.hold.set()

    def wait_reached(self, seconds: float = _WAIT_SECONDS) -> None:
        """Block until a request is caught; raises `TimeoutError`."""
        if not self.reached.wait(seconds):
            raise TimeoutError(f"no request reached the rule for {self.service}:{self.operation} {self.path}")


class SlowProxy:
    """The proxy, listening on loopback from construction to `close`."""

    def __init__(
        self,
        target: str,
        *,
        port: int = 0,
        delay_ms: int = 0,
        label: Callable[[Named, Message], str] | None = None,
    ) -> None:
        """`target` is the emulator's URL; `delay_ms` is added to every request; `label` tells requests apart."""
        parts = urlsplit(target)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self.delay_ms = delay_ms
        self._label = label
        self.skew_ms = 0
        self.refuses_skewed = False
        self.calls: list[Call] = []
        self._rules: list[Rule] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._open: set[Wire] = set()
        self._listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._acceptor = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._acceptor.start()

    def __enter__(self) -> SlowProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: what is held is dropped, every connection closed."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(_WAIT_SECONDS)
        with self._changed:
            wires = list(self._open)
        for wire in wires:
            wire.close()

    def add(self, rule: Rule) -> Rule:
        """Apply a rule from now on."""
        with self._changed:
            self._rules.append(rule)
        return rule

    def remove(self, rule: Rule) -> None:
        """Apply it no longer, and release what it holds."""
        with self._changed:
            self._rules.remove(rule)
        rule.release()

    def reset(self) -> None:
        """Forget rules and calls; release what is held."""
        with self._changed:
            rules, self._rules, self.calls = self._rules, [], []
        for rule in rules:
            rule.release()

    def count(self, *, service: str = "*", operation: str = "*", path: str = "*", forwarded: bool = False) -> int:
        """How many requests came so far, or were forwarded, by patterns."""
        with self._changed:
            return sum(
                _fits(call.named, service, operation, path) and (call.forwarded or not forwarded) for call in self.calls
            )

    def wait_count(
        self, count: int, *, service: str = "*", operation: str = "*", path: str = "*", seconds: float = _WAIT_SECONDS
    ) -> None:
        """Block until so many such requests have come; raises `TimeoutError`."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: sum(_fits(call.named, service, operation, path) for call in self.calls) >= count, seconds
            )
        if not done:
            raise TimeoutError(f"fewer than {count} calls of {service}:{operation} {path} in {seconds:.0f} s")

    def stats(self) -> dict[str, Any]:
        """The figures: calls and bytes in all, by operation, and one line per call."""
        with self._changed:
            calls = list(self.calls)
        by_operation: dict[str, dict[str, int]] = {}
        for call in calls:
            sums = by_operation.setdefault(call.name, {"calls": 0, "request_bytes": 0, "response_bytes": 0})
            sums["calls"] += 1
            sums["request_bytes"] += call.request_bytes
            sums["response_bytes"] += call.response_bytes
        return {
            "calls": len(calls),
            "request_bytes": sum(call.request_bytes for call in calls),
            "response_bytes": sum(call.response_bytes for call in calls),
            "by_operation": dict(sorted(by_operation.items())),
            "log": [
                [
                    call.name,
                    call.named.method,
                    call.named.path,
                    call.status,
                    call.request_bytes,
                    call.response_bytes,
                    round(call.ms, 1),
                ]
                for call in calls
            ],
        }

    def server_ms(self) -> int:
        """The server's time as the client sees it."""
        return time.time_ns() // 1_000_000 + self.skew_ms

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="proxy-client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        client = Wire(connection)
        server = _Upstream(self._target)
        with self._changed:
            self._open.add(client)
        try:
            while not self._closing.is_set() and (request := client.read_request()) is not None:
                then: list[Callable[[], None]] = []
                answer = self._answered(request, server, then)
                if answer is None:
                    return
                client.send(answer.wire())
                for step in then:
                    step()
                if not request.keeps_alive or not answer.keeps_alive:
                    return
        except (OSError, Closed):
            return
        finally:
            client.close()
            server.close()
            with self._changed:
                self._open.discard(client)

    def _answered(self, request: Message, server: _Upstream, then: list[Callable[[], None]]) -> Message | None:
        """The answer to a request, or None to close the connection without one; `then` gets what follows it."""
        began = time.perf_counter()
        named = name_request(request)
        if named.path.startswith("/_proxy/"):
            return self._control(named)
        with self._changed:
            call = Call(len(self.calls) + 1, named, len(request.wire()))
            call.label = self._label(named, request) if self._label is not None else ""
            self.calls.append(call)
            rules = list(self._rules)
            self._changed.notify_all()
        caught = [rule for rule in rules if rule.catches(named, request)]
        answer = self._ruled(call, request, server, caught)
        then.extend(functools.partial(rule.answered, call) for rule in caught if rule.answered is not None)
        call.ms = (time.perf_counter() - began) * 1000
        if answer is not None:
            call.status, call.response_bytes = answer.status, len(answer.wire())
        return answer

    def _ruled(self, call: Call, request: Message, server: _Upstream, rules: list[Rule]) -> Message | None:
        self._pause(rules)
        if self._closing.is_set():
            return None
        for rule in rules:
            if rule.before is not None:
                rule.before(call)
            for prefix in rule.strip:
                request.drop_headers(prefix)
        if any(rule.drop == "before" for rule in rules):
            return None
        answer = self._own_answer(call, request, rules)
        if answer is None:
            call.forwarded = True
            answer = self._forwarded(request, server)
        for rule in rules:
            if rule.after is not None:
                rule.after(call)
        if any(rule.drop == "after" for rule in rules):
            return None
        self._shift_times(answer)
        _move(answer, "Last-Modified", -sum(rule.age_ms for rule in rules))
        return answer

    def _pause(self, rules: list[Rule]) -> None:
        delay = self.delay_ms + sum(rule.delay_ms for rule in rules)
        if delay:
            self._closing.wait(delay / 1000)
        for rule in rules:
            rule.reached.set()
            while rule.hold is not None and not self._closing.is_set() and not rule.hold.wait(0.05):
                pass

    def _own_answer(self, call: Call, request: Message, rules: list[Rule]) -> Message | None:
        named = call.named
        for rule in rules:
            own = rule.answer or (rule.judge(call, request) if rule.judge is not None else None)
            if own is not None:
                return _made(named, own)
        if self.refuses_skewed and abs(_signed_ms(request, self.server_ms()) - self.server_ms()) > _SKEW_ALLOWED_MS:
            status, code, reason = named.too_skewed()
            return _made(named, Answer(status, code, reason))
        return None

    def _forwarded(self, request: Message, server: _Upstream) -> Message:
        try:
            return server.ask(request)
        except (OSError, Closed) as error:
            return _made(Named("", "", "", ""), Answer(502, "BadGateway", f"the emulator does not answer: {error}"))

    def _shift_times(self, answer: Message) -> None:
        if not self.skew_ms:
            return
        if not answer.header("Date"):
            answer.headers.append(("Date", formatdate(time.time(), usegmt=True)))
        for name in ("Date", "Last-Modified"):
            _move(answer, name, self.skew_ms)

    def _control(self, named: Named) -> Message:
        if named.path == "/_proxy/reset":
            self.reset()
        body = json.dumps(self.stats()).encode()
        return Message(
            "HTTP/1.1 200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))], body
        )


class _Upstream:
    """A connection to the emulator, kept between requests, opened again when the emulator has closed it."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._wire: Wire | None = None

    def ask(self, request: Message) -> Message:
        """Forward a request and wait for its answer."""
        if self._wire is not None and select.select([self._wire.socket], [], [], 0)[0]:
            self.close()
        if self._wire is None:
            self._wire = Wire(socket.create_connection(self._target, timeout=_WAIT_SECONDS))
            self._wire.socket.settimeout(None)
        self._wire.send(request.wire())
        answer = self._wire.read_answer(request.start.split(" ", 1)[0])
        if not answer.keeps_alive:
            self.close()
        return answer

    def close(self) -> None:
        """Close it if it is open."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None


def _fits(named: Named, service: str, operation: str, path: str) -> bool:
    return (
        fnmatch.fnmatchcase(named.service, service)
        and fnmatch.fnmatchcase(named.operation, operation)
        and fnmatch.fnmatchcase(named.path, path)
    )


def _made(named: Named, answer: Answer) -> Message:
    start, body, headers = f"HTTP/1.1 {answer.status} Answer", answer.body, dict(answer.headers)
    if answer.code:
        start, body, own = named.error(answer.status, answer.code, answer.reason)
        headers = {**own, **headers}
    if named.method == "HEAD":
        body = b""
    headers.setdefault("Date", formatdate(time.time(), usegmt=True))
    headers["Content-Length"] = str(len(body))
    return Message(start, list(headers.items()), body, body)


def _move(answer: Message, header: str, ms: int) -> None:
    value = answer.header(header)
    if value and ms:
        answer.set_header(header, formatdate(parsedate_to_datetime(value).timestamp() + ms / 1000, usegmt=True))


def _signed_ms(request: Message, default: int) -> int:
    signed = request.header("X-Amz-Date")
    try:
        return calendar.timegm(time.strptime(signed, "%Y%m%dT%H%M%SZ")) * 1000
    except ValueError:
        return default


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m stackhold.testing.proxy", description="A slow proxy with figures.")
    parser.add_argument("--target", required=True, help="URL of the emulator")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 for any")
    parser.add_argument("--delay-ms", type=int, default=0, help="added to each request")
    parser.add_argument("--stats", type=Path, help="file for the figures, written at the end")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    with SlowProxy(options.target, port=options.port, delay_ms=options.delay_ms) as proxy:
        print(proxy.url, flush=True)
        ended.wait()
        if options.stats:
            options.stats.write_text(json.dumps(proxy.stats(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
