"""Whole HTTP/1.1 messages over plain sockets, as much as a proxy in front of an emulator needs.

A message is read completely (by Content-Length, in chunks, or to the end of the connection) and kept as it
came: its body is forwarded byte for byte, chunk marks included.
"""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, field

_MOST_HEAD = 1 << 20


class Closed(Exception):
    """The other side closed the connection before a whole message came."""


@dataclass(slots=True)
class Message:
    """One request or answer. `start` is its first line; header names keep their spelling and order."""

    start: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    raw: bytes = b""
    """The body as it stands on the wire."""
    body: bytes = b""
    """The body without chunk marks."""

    def header(self, name: str) -> str:
        """The first header of a name, whatever its case; empty when there is none."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), "")

    def set_header(self, name: str, value: str) -> None:
        """Replace every header of a name, in place of the first."""
        wanted = name.lower()
        self.headers = [(key, value if key.lower() == wanted else old) for key, old in self.headers]

    def drop_headers(self, prefix: str) -> None:
        """Remove each header whose name begins so, whatever its case."""
        wanted = prefix.lower()
        self.headers = [(key, value) for key, value in self.headers if not key.lower().startswith(wanted)]

    def wire(self) -> bytes:
        """The whole message as bytes."""
        head = [self.start, *(f"{key}: {value}" for key, value in self.headers), "", ""]
        return "\r\n".join(head).encode("latin-1") + self.raw

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection may carry another message after this one."""
        connection = self.header("Connection").lower()
        return "close" not in connection and ("HTTP/1.1" in self.start or "keep-alive" in connection)

    @property
    def status(self) -> int:
        """An answer's status."""
        return int(self.start.split(" ", 2)[1])


class Wire:
    """One connection, read through a buffer."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Send everything."""
        self.socket.sendall(data)

    def close(self) -> None:
        """Close, waking whoever reads from it."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def read_request(self) -> Message | None:
        """The next request, or None when the client is done. Says "100 Continue" to who waits for it."""
        try:
            message = self._head()
        except Closed:
            return None
        if message.header("Expect").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            message.drop_headers("Expect")
        self._body(message, default=0)
        return message

    def read_answer(self, method: str) -> Message:
        """The answer to a request of that method; interim answers are passed over."""
        message = self._head()
        while 100 <= message.status < 200:
            message = self._head()
        if method != "HEAD" and message.status not in {204, 304}:
            self._body(message, default=None)
        return message

    def _head(self) -> Message:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise Closed("a head without an end")
            self._fill()
        start, *lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        headers = []
        for line in lines:
            name, _, value = line.partition(":")
            headers.append((name, value.strip()))
        return Message(start, headers)

    def _body(self, message: Message, *, default: int | None) -> None:
        if message.header("Transfer-Encoding").lower() == "chunked":
            self._chunks(message)
            return
        length = message.header("Content-Length")
        if length:
            message.raw = message.body = self._take(int(length))
        elif default is None:
            message.raw = message.body = self._rest()
            message.headers.append(("Content-Length", str(len(message.raw))))

    def _chunks(self, message: Message) -> None:
        raw, body = bytearray(), bytearray()
        while True:
            line = self._line()
            raw += line
            size = int(line.split(b";")[0], 16)
            if size == 0:
                break
            chunk = self._take(size + 2)
            raw += chunk
            body += chunk[:-2]
        while True:
            line = self._line()
            raw += line
            if line == b"\r\n":
                break
        message.raw, message.body = bytes(raw), bytes(body)

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._fill()
        line = bytes(self._buffer[: end + 2])
        del self._buffer[: end + 2]
        return line

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._fill()
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _rest(self) -> bytes:
        try:
            while True:
                self._fill()
        except Closed:
            rest = bytes(self._buffer)
            self._buffer.clear()
            return rest

    def _fill(self) -> None:
        try:
            data = self.socket.recv(262_144)
        except OSError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("end of the connection")
        self._buffer += data
