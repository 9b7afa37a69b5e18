"""Starts commands quickly: a process that has everything imported forks itself for each one.

What it forks is a process of its own, with its own signals, files and environment, that runs the program's `main`;
only the imports are not repeated. Asked by lines of JSON on standard input, answers by lines on standard output.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRELOADED = ("stackhold.__main__", "stackhold.adapters.aws", "stackhold.adapters.s3", "botocore.session", "yaml")
_REAP_SECONDS = 0.005


@dataclass
class Command:
    """One command, running or ended."""

    args: tuple[str, ...]
    pid: int
    out: Path
    err: Path
    code: int | None = None
    """Its exit code when it has ended; minus the signal's number when that ended it."""
    ended: threading.Event = field(default_factory=threading.Event)

    def signal(self, number: signal.Signals) -> None:
        """Send it a real signal, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):  # it ends at this very moment
            if not self.ended.is_set():
                os.kill(self.pid, number)

    def wait(self, seconds: float) -> int:
        """Wait for its end; raises `TimeoutError`, with the command killed, when that takes too long."""
        if not self.ended.wait(seconds):
            self.signal(signal.SIGKILL)
            raise TimeoutError(f"`stackhold {' '.join(self.args)}` had not ended after {seconds:.0f} s")
        assert self.code is not None
        return self.code


class Zygote:
    """The process that forks commands."""

    def __init__(self, folder: Path) -> None:
        """Standard output and error of the commands go to files in `folder`."""
        self._folder = folder
        self._count = 0
        self._commands: dict[int, Command] = {}
        self._asking = threading.Lock()
        self._started = threading.Condition()
        self._asked: Command | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, name="zygote", daemon=True).start()

    def start(self, *args: str, env: Mapping[str, str], cwd: Path) -> Command:
        """Start a command; several threads may."""
        with self._asking, self._started:
            self._count += 1
            out, err = self._folder / f"{self._count}.out", self._folder / f"{self._count}.err"
            self._asked = Command(args, 0, out, err)
            line = {"args": args, "env": dict(env), "cwd": str(cwd), "out": str(out), "err": str(err)}
            self._stream(self._process.stdin).write(json.dumps(line) + "\n")
            self._stream(self._process.stdin).flush()
            if not self._started.wait_for(lambda: bool(self._asked and self._asked.pid), 60):
                raise TimeoutError("no command could be started")
            return self._asked

    def close(self) -> None:
        """End it, and what it has started."""
        for command in list(self._commands.values()):
            command.signal(signal.SIGKILL)
        self._stream(self._process.stdin).close()
        self._process.wait(30)
        self._stream(self._process.stdout).close()

    def _listen(self) -> None:
        for line in self._stream(self._process.stdout):
            told = json.loads(line)
            with self._started:
                if "started" in told:
                    assert self._asked is not None
                    self._asked.pid = told["started"]
                    self._commands[told["started"]] = self._asked
                else:
                    command = self._commands.pop(told["ended"])
                    command.code = told["code"]
                    command.ended.set()
                self._started.notify_all()

    def _stream(self, stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def _serve() -> None:
    for name in _PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    buffered = b""
    running: set[int] = set()
    while True:
        if select.select([0], [], [], _REAP_SECONDS if running else None)[0]:
            read = os.read(0, 1 << 16)
            if not read:
                return
            buffered += read
            while b"\n" in buffered:
                line, _, buffered = buffered.partition(b"\n")
                running.add(_fork(json.loads(line)))
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                running.discard(pid)
                _tell({"ended": pid, "code": os.waitstatus_to_exitcode(status)})


def _fork(asked: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        _tell({"started": pid})
        return pid
    _become(asked)


def _become(asked: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(asked["out"], os.O_WRONLY | os.O_CREAT, 0o600), 1)
    os.dup2(os.open(asked["err"], os.O_WRONLY | os.O_CREAT, 0o600), 2)
    sys.argv = ["stackhold", *asked["args"]]
    from stackhold.__main__ import main

    main()


def _tell(answer: dict[str, int]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    _serve()
