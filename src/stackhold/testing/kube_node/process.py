"""One container's real process: starts it through `first_process`, signals it by a handle, and knows how it ended.

Signals go through a pidfd, so that they never reach a process that has taken the number of one that ended. The thread
that starts a container must live as long as it: Linux ends it with that thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROGRAM = Path(__file__).with_name("first_process.py")

CAPABILITIES = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "NET_RAW": 13,
    "SYS_CHROOT": 18,
    "MKNOD": 27,
    "AUDIT_WRITE": 29,
    "SETFCAP": 31,
}
"""What a container runtime leaves a container of root by default, by name and number."""


class StartFailed(Exception):
    """The container's first process could not be started."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine at an absolute path of the container."""

    source: Path
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the process is, and what it may do; `capabilities` of None are all there are."""

    user: int
    group: int
    groups: tuple[int, ...]
    capabilities: tuple[int, ...] | None
    no_new_privileges: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is needed to start one container."""

    argv: Sequence[str]
    env: Mapping[str, str]
    working_dir: str
    host_name: str
    identity: Identity
    mounts: Sequence[Mount]
    layers: Sequence[Path]
    on_host: bool
    read_only_root: bool
    scratch: Path
    log: Path


class Process:
    """A container's first process, running or ended."""

    def __init__(self, guard: subprocess.Popen[bytes], report: int, pid: int) -> None:
        self.pid = pid
        """Its id on this machine, for a test that wants to kill it."""
        self._guard = guard
        self._report = report
        self._handle: int | None = None
        self._lock = threading.Lock()
        with contextlib.suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def send(self, number: signal.Signals) -> None:
        """Send the first process a signal; nothing happens when it has ended."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)

    def wait(self) -> int:
        """Wait for the end of the whole container; the exit code, 128 and the number for a signal. Called once."""
        said = _line(self._report)
        os.close(self._report)
        self._guard.wait()
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
        return int(json.loads(said)["code"]) if said else 128 + signal.SIGKILL


def start(plan: Plan) -> Process:
    """Start the container. Raises `StartFailed`."""
    heard, said = os.pipe()
    plan.scratch.mkdir(parents=True, exist_ok=True)
    with plan.log.open("ab") as log:
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=(said,),
            start_new_session=True,
            cwd="/",
            env={},
        )
    os.close(said)
    assert guard.stdin is not None
    with contextlib.suppress(BrokenPipeError), guard.stdin as pipe:
        pipe.write(json.dumps(_spec(plan, said)).encode())
    line = _line(heard)
    first: dict[str, Any] = json.loads(line) if line else {"failed": "what starts containers ended by itself"}
    if "pid" not in first:
        os.close(heard)
        guard.wait()
        raise StartFailed(first["failed"])
    return Process(guard, heard, first["pid"])


def _spec(plan: Plan, report: int) -> dict[str, object]:
    return {
        "report": report,
        "argv": list(plan.argv),
        "env": dict(plan.env),
        "working_dir": plan.working_dir,
        "host_name": plan.host_name,
        "user": plan.identity.user,
        "group": plan.identity.group,
        "groups": list(plan.identity.groups),
        "capabilities": plan.identity.capabilities,
        "no_new_privileges": plan.identity.no_new_privileges,
        "mounts": [
            {"source": str(one.source), "target": one.target, "read_only": one.read_only} for one in plan.mounts
        ],
        "layers": [str(layer) for layer in plan.layers],
        "on_host": plan.on_host,
        "read_only_root": plan.read_only_root,
        "scratch": str(plan.scratch),
    }


def _line(report: int) -> bytes:
    said = b""
    while not said.endswith(b"\n") and (more := os.read(report, 1)):
        said += more
    return said
