"""Starts the AWS emulators that tests, demo and benchmark use: on loopback, on a free port, stopped by process id.

ministack is the first, moto the independent second. Both must be installed beside the running Python. An
emulator ends with the process that started it, even when that process is killed (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["ministack", "moto"]

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""Environment of a client of an emulator, beside `AWS_ENDPOINT_URL`."""

_HEALTH: dict[Kind, str] = {"ministack": "/_ministack/health", "moto": "/moto-api/data.json"}
_RESET: dict[Kind, str] = {"ministack": "/_ministack/reset", "moto": "/moto-api/reset"}
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator. `url` is its only endpoint, for every service and region."""

    kind: Kind
    url: str
    pid: int

    def reset(self) -> None:
        """Forget everything that was created."""
        request = urllib.request.Request(self.url + _RESET[self.kind], method="POST")
        with urllib.request.urlopen(request, timeout=30):
            pass

    def environment(self) -> dict[str, str]:
        """Environment for a client process."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.url}


def free_port() -> int:
    """A TCP port on loopback that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextlib.contextmanager
def running(kind: Kind, *, port: int | None = None) -> Iterator[Emulator]:
    """Start one and stop it at the end. Raises `RuntimeError` with its log when it does not come up."""
    port = port or free_port()
    with tempfile.TemporaryDirectory(prefix=f"stackhold-{kind}-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                _command(kind, port),
                env=_environment(kind, port),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        try:
            emulator = Emulator(kind=kind, url=f"http://127.0.0.1:{port}", pid=process.pid)
            _wait_healthy(emulator, process, log)
            yield emulator
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _command(kind: Kind, port: int) -> list[str]:
    beside = Path(sys.executable).parent
    if kind == "ministack":
        return [str(beside / "ministack")]
    return [str(beside / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]


def _environment(kind: Kind, port: int) -> dict[str, str]:
    base = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "STACKHOLD_"))}
    if kind == "ministack":
        return {**base, "BIND_HOST": "127.0.0.1", "GATEWAY_PORT": str(port), "IOT_MTLS_ENABLED": "0"}
    return {**base, "MOTO_IAM_LOAD_MANAGED_POLICIES": "true", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}


def _die_with_parent() -> None:
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


def _wait_healthy(emulator: Emulator, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + _START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        with (
            contextlib.suppress(OSError, urllib.error.URLError),
            urllib.request.urlopen(emulator.url + _HEALTH[emulator.kind], timeout=2),
        ):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{emulator.kind} did not start; its log ends:\n{log.read_text(errors='replace')[-2000:]}")
