"""A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager, stopped by process id.

Users are those of a token file: `admin` may do everything; the controllers run under accounts of their own, as RBAC
wants them. Each part can be killed and started again on the same port and data. All of it ends with the process that
started it, even when that is killed (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.cluster import parts

from stackhold.testing.kube_node import Access, Api, ApiError, ApiUnreachable

if TYPE_CHECKING:
    from types import TracebackType

    from tests.gobuild.part import Part

Name = Literal["etcd", "kube-apiserver", "kube-controller-manager"]

_PARTS: dict[Name, Part] = {
    "etcd": parts.ETCD,
    "kube-apiserver": parts.API_SERVER,
    "kube-controller-manager": parts.CONTROLLER_MANAGER,
}
_HEALTH: dict[Name, str] = {
    "etcd": "/health",
    "kube-apiserver": "/readyz",
    "kube-controller-manager": "/healthz",
}
_START_SECONDS = 180.0
_STOP_SECONDS = 20.0
_ISSUER = "https://kubernetes.default.svc.cluster.local"


class DidNotStart(Exception):
    """A part of the control plane ended, or was not ready in time; its text ends with the end of its log."""


@dataclass(frozen=True, slots=True)
class _Ports:
    etcd: int
    peer: int
    api: int
    controllers: int


class ControlPlane:
    """A control plane that runs from `with` to the end of its block, with all its files in `folder`."""

    def __init__(self, folder: Path, *, controller_flags: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.seconds: dict[Name, float] = {}
        """How long each part took from its last start to being ready."""
        self._controller_flags = controller_flags
        self._ports = _Ports(*_free_ports(4))
        self._tokens = {"admin": secrets.token_hex(16), "controllers": secrets.token_hex(16)}
        self._running: dict[Name, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        """Start all of it. Raises `DidNotStart`, or `NotBuilt` where a binary is missing."""
        self._write_files()
        try:
            for name in _PARTS:
                self.start(name)
            self._wait_for_accounts()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of it, at once: what it stored is of no use any more."""
        for name in reversed(list(self._running)):
            self.kill(name)

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._ports.api}"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of the administrator."""
        return self.folder / "admin.kubeconfig"

    @property
    def ca_file(self) -> Path:
        """The certificates that the API server is known by."""
        return self.folder / "api" / "apiserver.crt"

    def access(self) -> Access:
        """The administrator's way in."""
        return Access(self.url, self.ca_file, self._tokens["admin"])

    def api(self) -> Api:
        """Requests as the administrator."""
        return Api(self.access())

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        """What kubectl prints, as the administrator. Raises `CalledProcessError`, whose note has what it complained."""
        done = subprocess.run(
            [str(parts.binary(parts.KUBECTL)), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(self.folder)},
            check=False,
        )
        if done.returncode != 0:
            error = subprocess.CalledProcessError(done.returncode, ["kubectl", *words], done.stdout, done.stderr)
            error.add_note(done.stderr)
            raise error
        return done.stdout

    def start(self, name: Name) -> None:
        """Start one part and wait until it is ready. Raises `DidNotStart`."""
        begun = time.monotonic()
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(parts.binary(_PARTS[name])), *self._flags(name)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        self._running[name] = process
        self._wait_ready(name, process)
        self.seconds[name] = time.monotonic() - begun

    def stop(self, name: Name) -> None:
        """Ask one part to end, and make it if it does not."""
        process = self._running.pop(name)
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self, name: Name) -> None:
        """End one part as a crash would."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def resident_bytes(self) -> dict[Name, int]:
        """The memory that each running part has at this moment."""
        return {name: _resident(process.pid) for name, process in self._running.items()}

    def log(self, name: Name) -> str:
        """All that a part has logged."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def _write_files(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        _write_private(
            self.folder / "accounts.key",
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ).decode(),
        )
        users = {"admin": ("admin", "system:masters"), "controllers": ("system:kube-controller-manager", "")}
        rows = [f'{self._tokens[name]},{user},{name},"{group}"' for name, (user, group) in users.items()]
        _write_private(self.folder / "tokens.csv", "\n".join(rows) + "\n")
        for name in users:
            _write_private(self.folder / f"{name}.kubeconfig", json.dumps(self._kubeconfig(name), indent=2))

    def _kubeconfig(self, name: str) -> dict[str, object]:
        cluster = {"server": self.url, "certificate-authority": str(self.ca_file)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": self._tokens[name]}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }

    def _flags(self, name: Name) -> list[str]:
        match name:
            case "etcd":
                client, peer = f"http://127.0.0.1:{self._ports.etcd}", f"http://127.0.0.1:{self._ports.peer}"
                return [
                    f"--data-dir={self.folder / 'etcd'}",
                    f"--listen-client-urls={client}",
                    f"--advertise-client-urls={client}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster=default={peer}",
                    "--unsafe-no-fsync",
                    "--log-level=warn",
                ]
            case "kube-apiserver":
                return [
                    f"--etcd-servers=http://127.0.0.1:{self._ports.etcd}",
                    "--bind-address=127.0.0.1",
                    "--advertise-address=127.0.0.1",
                    f"--secure-port={self._ports.api}",
                    f"--cert-dir={self.folder / 'api'}",
                    f"--token-auth-file={self.folder / 'tokens.csv'}",
                    "--authorization-mode=RBAC",
                    f"--service-account-issuer={_ISSUER}",
                    f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
                    f"--service-account-key-file={self.folder / 'accounts.key'}",
                    "--service-cluster-ip-range=10.0.0.0/24",
                    "--endpoint-reconciler-type=none",
                    "--allow-privileged=true",
                    "--profiling=false",
                    "--shutdown-delay-duration=0s",
                ]
            case "kube-controller-manager":
                return [
                    f"--kubeconfig={self.folder / 'controllers.kubeconfig'}",
                    "--bind-address=127.0.0.1",
                    f"--secure-port={self._ports.controllers}",
                    f"--cert-dir={self.folder / 'controllers'}",
                    "--use-service-account-credentials=true",
                    f"--service-account-private-key-file={self.folder / 'accounts.key'}",
                    f"--root-ca-file={self.ca_file}",
                    "--leader-elect=false",
                    "--profiling=false",
                    "--node-monitor-period=1s",
                    "--node-monitor-grace-period=20s",
                    *self._controller_flags,
                ]

    def _wait_ready(self, name: Name, process: subprocess.Popen[bytes]) -> None:
        give_up = time.monotonic() + _START_SECONDS
        while time.monotonic() < give_up and process.poll() is None:
            if self._is_ready(name):
                return
            time.sleep(0.05)
        how = "was not ready in time" if process.poll() is None else f"ended with {process.returncode}"
        raise DidNotStart(f"{name} {how}; its log ends:\n{self.log(name)[-3000:]}")

    def _is_ready(self, name: Name) -> bool:
        port = {
            "etcd": self._ports.etcd,
            "kube-apiserver": self._ports.api,
            "kube-controller-manager": self._ports.controllers,
        }[name]
        scheme = "http" if name == "etcd" else "https"
        request = urllib.request.Request(f"{scheme}://127.0.0.1:{port}{_HEALTH[name]}")
        if name == "kube-apiserver":
            request.add_header("Authorization", f"Bearer {self._tokens['admin']}")
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        with (
            contextlib.suppress(OSError, urllib.error.URLError),
            urllib.request.urlopen(request, timeout=5, context=trusting),
        ):
            return True
        return False

    def _wait_for_accounts(self) -> None:
        """Wait until the first namespace has its service account, without which no pod is admitted."""
        give_up = time.monotonic() + _START_SECONDS
        while time.monotonic() < give_up:
            with contextlib.suppress(ApiError, ApiUnreachable):
                self.api().get("/api/v1/namespaces/default/serviceaccounts/default")
                return
            time.sleep(0.05)
        raise DidNotStart("no service account appeared in the namespace default; is the controller manager well?")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def _die_with_parent() -> None:
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
