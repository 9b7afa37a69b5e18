"""A yard of plots: each a root module with a cloud, a store and a cache of its own, and `stackhold tf` as a process.

The module keeps its state in stackhold's store (`own`), or in a bucket with a lock file (`s3`).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.exceptions import ClientError
from tests.runtimes import catalogue, probe_server

from stackhold.testing import emulators

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.runtimes.catalogue import Runtime
    from tests.runtimes.probe_server import ProbeServer

    from stackhold.testing.emulators import Emulator

Backend = Literal["own", "s3"]
STACKHOLD = str(Path(sys.executable).parent / "stackhold")
BUCKET = "states"
COMMAND_SECONDS = 240.0
STACK = "module"
_BARE_PATH = "/usr/bin:/bin"
_S3 = """
terraform {
  backend "s3" {
    bucket                      = "%s"
    key                         = "%s"
    region                      = "us-east-1"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_metadata_api_check     = true
    skip_requesting_account_id  = true
    skip_region_validation      = true
  }
}
"""


class Stuck(Exception):
    """A command did not end in time."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    args: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All that it said."""
        return self.out + self.err

    def told(self) -> str:
        """For people who look at a failure."""
        return f"{' '.join(self.args)} exited {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"


@dataclass
class Plot:
    """One module, and all that belongs to it."""

    runtime: Runtime
    backend: Backend
    folder: Path
    env: Mapping[str, str]
    probe: ProbeServer
    emulator: Emulator | None = None
    flags: tuple[str, ...] = ()
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def module(self) -> Path:
        """The module's folder."""
        return self.folder / STACK

    @property
    def key(self) -> str:
        """Of the state in the bucket."""
        return f"{self.folder.name}.tfstate"

    @property
    def command(self) -> tuple[str, ...]:
        """What names the runtime to stackhold; the embedded one is found when there is no other."""
        if self.runtime.name == "embedded":
            return ()
        return tuple(word for part in self.runtime.command for word in ("--bin", part))

    def write(self, text: str) -> None:
        """Make the module this text, with its backend."""
        self.module.mkdir(exist_ok=True, mode=0o700)
        (self.module / "main.tf").write_text(text, encoding="utf-8")
        if self.backend == "s3":
            (self.module / "backend.tf").write_text(_S3 % (BUCKET, self.key), encoding="utf-8")

    def start(self, operation: str, *args: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start `stackhold tf …` on the module; its output goes to files."""
        args = (operation, str(self.module), *self.command, *self.flags, *args)
        return self._started(("tf", *args), env or {})

    def command_line(self, *args: str) -> Ended:
        """Run a whole command line of stackhold's, as it was given to people."""
        return self.end(self._started(args, {}))

    def _started(self, args: tuple[str, ...], env: Mapping[str, str]) -> subprocess.Popen[str]:
        number = len(self.started)
        with (self.folder / f"{number}.out").open("w") as out, (self.folder / f"{number}.err").open("w") as err:
            process = subprocess.Popen(
                [STACKHOLD, *args],
                cwd=self.folder,
                env={**self.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                text=True,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], *, seconds: float = COMMAND_SECONDS) -> Ended:
        """Wait for its end. Raises `Stuck`."""
        number = self.started.index(process)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise Stuck(f"{process.args!r} is still at work after {seconds} s\n{self.said(process)}") from error
        out, err = ((self.folder / f"{number}.{end}").read_text() for end in ("out", "err"))
        words = process.args if isinstance(process.args, list) else []
        return Ended(tuple(map(str, words)), code, out, err)

    def said(self, process: subprocess.Popen[str]) -> str:
        """What it has said so far."""
        number = self.started.index(process)
        return "".join((self.folder / f"{number}.{end}").read_text() for end in ("out", "err"))

    def run(self, operation: str, *args: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run `stackhold tf …` to its end."""
        return self.end(self.start(operation, *args, env=env))

    def by_hand(self, *args: str) -> subprocess.CompletedProcess[str]:
        """The runtime itself in the module's folder, as a person uses it."""
        return self.runtime.run(*args, folder=self.module, env=dict(self.env))

    def stored(self, name: str) -> Path:
        """An object of the stack in the directory store."""
        return self.folder / "store" / "stackhold" / "tf" / STACK / "default" / name

    def state(self) -> dict[str, Any]:
        """The state as it lies in the backend; empty when there is none."""
        if self.backend == "s3":
            text = self.object(self.key)
        else:
            record = json.loads(self.stored("state.json").read_text()) if self.stored("state.json").exists() else {}
            pointer = record.get("resources", {}).get("state")
            text = self.stored(f"terraform/{int(pointer['physicalId']):08d}.tfstate").read_bytes() if pointer else b""
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def ids(self) -> dict[str, str]:
        """Per id of a thing in the state, its address."""
        return {
            instance["attributes"]["id"]: _address(resource, instance)
            for resource in self.state().get("resources", [])
            if resource["type"] == "probe_thing"
            for instance in resource["instances"]
        }

    def object(self, key: str) -> bytes:
        """An object in the bucket; empty when it is not there."""
        try:
            body: bytes = self._s3().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except ClientError:
            return b""
        return body

    def put(self, key: str, body: bytes) -> None:
        """Put an object into the bucket."""
        self._s3().put_object(Bucket=BUCKET, Key=key, Body=body)

    def lock(self) -> dict[str, Any]:
        """The state lock in the bucket, as its holder wrote it; empty when there is none."""
        text = self.object(f"{self.key}.tflock") if self.backend == "s3" else b""
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def _s3(self) -> Any:
        assert self.emulator is not None
        return boto3.client("s3", endpoint_url=self.emulator.url, region_name="us-east-1", **_KEYS)


_KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


def _address(resource: dict[str, Any], instance: dict[str, Any]) -> str:
    index = instance.get("index_key")
    return f"{resource['type']}.{resource['name']}" + ("" if index is None else f"[{json.dumps(index)}]")


@dataclass
class Yard:
    """What all plots share: a runtime, a folder, and for `s3` an emulator."""

    runtime: Runtime
    backend: Backend
    folder: Path
    emulator: Emulator | None = None
    _count: int = 0

    @contextlib.contextmanager
    def plot(self, *flags: str, backend: Backend | None = None) -> Iterator[Plot]:
        """A new one; whatever was started in it is ended with it."""
        self._count += 1
        folder = self.folder / f"plot-{self._count}"
        folder.mkdir(mode=0o700)
        with probe_server.running() as probe:
            made = Plot(
                self.runtime, backend or self.backend, folder, self._env(folder, probe), probe, self.emulator, flags
            )
            try:
                yield made
            finally:
                for process in made.started:
                    if process.poll() is None:
                        process.kill()
                    process.wait()

    def _env(self, folder: Path, probe: ProbeServer) -> dict[str, str]:
        emulator = {} if self.emulator is None else self.emulator.environment()
        config = catalogue.cli_config(folder)
        path = {"PATH": _BARE_PATH} if self.runtime.name == "embedded" else {}
        env = catalogue.environment(config, PROBE_ENDPOINT=probe.url)
        return {
            **env,
            **emulator,
            "STACKHOLD_STATE": f"file:{folder / 'store'}",
            "XDG_CACHE_HOME": str(folder / "cache"),
            "NO_COLOR": "1",
            **path,
        }


@contextlib.contextmanager
def yard(runtime: Runtime, backend: Backend, *, emulator: Emulator | None = None) -> Iterator[Yard]:
    """Set it up, with an emulator of its own unless one is given."""
    with contextlib.ExitStack() as stack:
        if backend == "s3" and emulator is None:
            emulator = stack.enter_context(emulators.running("ministack"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stackhold-yard-")))
        if emulator is not None:
            client = boto3.client("s3", endpoint_url=emulator.url, region_name="us-east-1", **_KEYS)
            client.create_bucket(Bucket=BUCKET)
        yield Yard(runtime, backend, folder, emulator)


def runtime_named(name: str) -> Runtime:
    """A runtime of this machine: `tofu`, `terraform` or `embedded`. Raises `LookupError`."""
    names: dict[str, catalogue.Name] = {"tofu": "opentofu", "terraform": "terraform", "embedded": "embedded"}
    found = catalogue.find(names[name])
    if found is None:
        raise LookupError(f"this machine has no runtime {name!r}")
    return found


def wait_until(condition: Any, what: str, *, seconds: float = 60.0) -> None:
    """Poll until it is true. Raises `Stuck`."""
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            raise Stuck(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    """All processes below one, the nearest first."""
    children: dict[int, list[int]] = {}
    for each, fields in _processes():
        children.setdefault(int(fields[_PARENT]), []).append(each)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        waiting = [child for parent in waiting for child in children.get(parent, [])]
        found += waiting
    return found


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    return [each for each, fields in _processes() if int(fields[_SESSION]) == session and fields[_STATE] not in "ZX"]


def session_of(pid: int) -> int:
    """Its session; 0 when it is gone."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


_STATE, _PARENT, _SESSION = 0, 1, 3


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Every process with the fields of its `stat` behind its name."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry), Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
