"""A way to an emulator that can be taken away: nobody listens for a while, as while a server starts anew."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType


@dataclass
class Relay:
    """Passes bytes on to `target`. Connections that are open when it goes away are cut."""

    target: str
    port: int = 0
    _listener: socket.socket | None = None
    _open: set[socket.socket] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where it listens, when it does."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Relay:
        self.begin()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.go_away()

    def begin(self) -> None:
        """Listen, on the same port each time."""
        listener = self._listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port = listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def go_away(self) -> None:
        """Refuse connections, and cut those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        host, port = urlsplit(self.target).hostname, urlsplit(self.target).port
        with contextlib.suppress(OSError):
            while True:
                near = listener.accept()[0]
                far = socket.create_connection((str(host), int(port or 80)))
                for source, sink in ((near, far), (far, near)):
                    self._open.add(source)
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)
        source.close()
