"""What a person at a terminal sees while a run works: a real pseudo terminal, read as it is drawn."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import PATIENCE_SECONDS, STACKHOLD, Running, wait_until
from tests.stories.slow_chain import STACK, Chain, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
AT_ITS_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes standard input the controlling terminal, so that Ctrl-C comes as a signal, and becomes the command."""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Terminal:
    """A command at a terminal of its own."""

    process: subprocess.Popen[str]
    screen: int
    _drawn: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def drawn(self) -> str:
        """Everything that was written to it, with its control sequences."""
        return bytes(self._drawn).decode(errors="replace")

    @property
    def words(self) -> str:
        """The same without control sequences."""
        return CONTROL.sub("", self.drawn).replace("\r", "\n")

    def wait_shown(self, pattern: str) -> None:
        """Wait until something like that is drawn."""
        found = re.compile(pattern)
        wait_until(lambda: found.search(self.words), f"{pattern!r} on the screen")

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.screen, text.encode())

    def finish(self) -> int:
        """Wait for its end; its exit code."""
        code = self.process.wait(PATIENCE_SECONDS)
        self._reader.join(PATIENCE_SECONDS)
        os.close(self.screen)
        return code

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.screen, 65_536)
            except OSError:
                return
            if not data:
                return
            self._drawn.extend(data)


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def at_terminal(chain: Chain, *args: str, no_color: bool = False) -> Terminal:
    """Start a command at a terminal of 24 lines of 110 characters."""
    env = {**chain.scene.env({"AWS_ENDPOINT_URL": chain.proxy.url}), "TERM": "xterm-256color"}
    if not no_color:
        del env["NO_COLOR"]
    screen, keyboard = pty.openpty()
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", AT_ITS_TERMINAL, STACKHOLD, *args],
        env=env,
        cwd=chain.scene.folder,
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        text=True,
        start_new_session=True,
    )
    os.close(keyboard)
    chain.scene.started.append(Running(process))
    return Terminal(process, screen)


def test_the_live_view_shows_what_runs_since_when_and_both_clocks(chain: Chain) -> None:
    held = chain.hold()
    first = at_terminal(chain, "deploy", "chain.yaml", "--deadline", "10m")
    held.wait_reached()
    first.wait_shown(r"deploy of chain \(us-east-1\) · 1 of 3 done · \d+ s of 10 m 0 s")
    first.wait_shown(r"create   Second  AWS::SSM::Parameter  2 s")

    lock = chain.scene.lock(STACK)
    assert lock is not None
    second = at_terminal(chain, "deploy", "chain.yaml", "--lock-timeout", "50s", no_color=True)
    second.wait_shown(r"\d+ s of 1 h 0 m · waiting \d+ s of 50 s")
    second.wait_shown(rf"waiting for the lock, held by {re.escape(lock['owner'])}, deploy since \S+, renewed")
    held.release()
    assert first.finish() == second.finish() == 0
    assert "create   Third  AWS::SSM::Parameter  done" in first.words
    assert "chain (us-east-1): deploy succeeded" in first.words
    assert "nothing to deploy" in second.words
    assert COLOUR.search(first.drawn)
    assert not COLOUR.search(second.drawn)


def test_ctrl_c_at_a_terminal_stops_the_run_and_gives_the_terminal_back(chain: Chain) -> None:
    held = chain.hold()
    running = at_terminal(chain, "deploy", "chain.yaml")
    held.wait_reached()
    running.wait_shown(r"create   Second")
    running.type("\x03")
    running.wait_shown(r"stopping: interrupted: nothing new is started")
    held.release()
    assert running.finish() == 130
    assert "stopped by SIGINT; not everything was done" in running.words
    assert running.drawn.count("\x1b[?25l") == running.drawn.count("\x1b[?25h")
    assert chain.recorded() == {"First", "Second"}
    assert chain.scene.lock(STACK) is None
