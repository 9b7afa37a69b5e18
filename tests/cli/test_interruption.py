"""Signals as a process gets them, before, between and after what a command does."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runs.lock_scene import LockScene

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.cli.app import run
from stackhold.cli.surroundings import Surroundings
from stackhold.ports.store import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE_SECONDS = 60
STACKHOLD = str(Path(sys.executable).parent / "stackhold")
ENDS = [
    pytest.param(signal.SIGINT, 130, "interrupted", id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, "terminated", id="SIGTERM"),
    pytest.param(signal.SIGHUP, 143, "terminated", id="SIGHUP"),
]
AT_THE_FIRST_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), int(sys.argv[1]))
sys.meta_path.insert(0, Finder())
from stackhold.__main__ import main
main()
"""
"""Sends itself a signal in the middle of the first slow import."""
IN_A_CALL_THAT_HANGS = """
import ctypes, os, signal, sys, threading
from stackhold.cli import interruption
interruption.install()
said = None if sys.argv[2] == "run" else sys.argv[2]
interruption.say_from_here(said)
threading.Timer(0.2, os.kill, (os.getpid(), int(sys.argv[1]))).start()
for _ in range(int(sys.argv[3])):
    ctypes.CDLL(None).poll(None, 0, 1000)
sys.exit(7)
"""


def ended(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def environment(**more: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "STACKHOLD_"))}
    return {**kept, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", **more}


def wait_until(is_so: Callable[[], object]) -> None:
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < PATIENCE_SECONDS
        time.sleep(0.01)


@pytest.mark.parametrize(("signum", "code", "word"), ENDS)
def test_a_signal_during_the_imports_ends_with_one_line(signum: signal.Signals, code: int, word: str) -> None:
    done = ended(AT_THE_FIRST_IMPORT, int(signum))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"stackhold: {word}; nothing was changed\n")


def test_a_signal_says_what_a_command_has_told_it_to() -> None:
    done = ended(IN_A_CALL_THAT_HANGS, int(signal.SIGTERM), "the bucket may be there in part", 60)
    assert (done.returncode, done.stderr) == (143, "stackhold: terminated; the bucket may be there in part\n")


def test_while_a_run_handles_signals_the_process_does_not() -> None:
    assert ended(IN_A_CALL_THAT_HANGS, int(signal.SIGTERM), "run", 1).returncode == 7


def test_a_hang_up_that_is_to_be_ignored_is(tmp_path: Path) -> None:
    ignoring = f"import os, signal, sys; signal.signal(1, signal.SIG_IGN); os.execv({STACKHOLD!r}, ['stackhold', '-h'])"
    assert ended(ignoring).returncode == 0
    code = AT_THE_FIRST_IMPORT.replace("sys.meta_path", "signal.signal(1, signal.SIG_IGN); sys.meta_path")
    done = ended(code, int(signal.SIGHUP))
    assert "nothing was changed" not in done.stderr


@pytest.mark.parametrize(("signum", "code", "word"), ENDS)
def test_a_signal_at_a_question_ends_it_and_changes_nothing(
    tmp_path: Path, signum: signal.Signals, code: int, word: str
) -> None:
    clock = SystemClock()
    scene = LockScene(store=DirectoryStore(tmp_path / ".stackhold", clock=clock), clock=clock)
    scene.lock()
    screen, keyboard = pty.openpty()
    process = subprocess.Popen(
        [STACKHOLD, "force-unlock", "payments"],
        env=environment(TERM="xterm"),
        cwd=tmp_path,
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
    )
    os.close(keyboard)
    shown = bytearray()

    def read() -> None:
        while True:
            try:
                shown.extend(os.read(screen, 4096))
            except OSError:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    wait_until(lambda: b"[y/N]" in shown)
    process.send_signal(signum)
    assert process.wait(PATIENCE_SECONDS) == code
    reader.join(PATIENCE_SECONDS)
    os.close(screen)
    assert shown.decode().endswith(f"\r\nstackhold: {word}; nothing was changed\r\n")
    assert isinstance(scene.store.read(scene.keys.lock), Stored)


class _Screen(io.StringIO):
    """A terminal where somebody presses Ctrl-C at the very moment at which the cursor is hidden."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "\x1b[?25l" in text and "\x1b[?25l" not in self.getvalue():
            super().write(text)
            os.kill(os.getpid(), signal.SIGINT)
            return len(text)
        return super().write(text)


def test_a_signal_at_the_first_moment_of_the_live_view_is_the_runs_and_the_cursor_comes_back(tmp_path: Path) -> None:
    clock = SystemClock()
    scene = LockScene(store=DirectoryStore(tmp_path / ".stackhold", clock=clock), clock=clock)
    scene.record()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    out, err = _Screen(), io.StringIO()
    world = Surroundings(
        environ={**environment(), "TERM": "xterm"}, cwd=tmp_path, stdin=io.StringIO(), stdout=out, stderr=err
    )
    assert run(["destroy", "payments", "--yes"], world) == 130
    assert "stopped by SIGINT" in err.getvalue()
    drawn = out.getvalue()
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
    assert {number: signal.getsignal(number) for number in before} == before
    assert not isinstance(scene.store.read(scene.keys.lock), Stored)
