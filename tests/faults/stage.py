"""The stage of the fault bench: an emulator behind a proxy, a bucket for the state, commands as processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError
from tests.faults.points import STACK, label
from tests.faults.zygote import Command, Zygote
from tests.inventory import inventory

from stackhold.testing import emulators
from stackhold.testing.emulators import CREDENTIALS
from stackhold.testing.proxy import SlowProxy
from stackhold.testing.strict_aws import strict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.testing.emulators import Emulator

BUCKET = "stackhold-state"
COMMAND_SECONDS = 120.0
_SHOWN = 14
"""Lines of what a command said: why it ended stands first, what became of its resources last."""
_FOLDER = f"stackhold/{STACK}/us-east-1"


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    args: tuple[str, ...]
    code: int
    out: str
    err: str

    def told(self) -> str:
        """Its end in a few lines."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        text = "\n".join(lines if len(lines) <= _SHOWN else (*lines[:2], "…", *lines[2 - _SHOWN :]))
        return f"`stackhold {' '.join(self.args)}` exited {self.code}:\n{text}"


@dataclass
class Stage:
    """Everything of one bench. Used by one thread."""

    emulator: Emulator
    proxy: SlowProxy
    zygote: Zygote
    folder: Path
    account: str = CREDENTIALS["AWS_ACCESS_KEY_ID"]
    """The access key. Accounts called by 12 digits share an emulator, and in it only the names of buckets."""
    bucket: str = BUCKET
    _clients: dict[str, Any] = field(default_factory=dict)

    def clear(self) -> None:
        """Nothing exists but an empty bucket for the state."""
        self.proxy.reset()
        self.emulator.reset()
        self.found()

    def found(self) -> None:
        """A bucket for the state, and a proxy that refuses what AWS refuses."""
        strict(self.proxy, self.emulator, account=self.account)
        self.client("s3").create_bucket(Bucket=self.bucket)

    def start(self, *args: str) -> Command:
        """Start a command and go on."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "STACKHOLD_"))}
        env = {
            **kept,
            **self.emulator.environment(),
            "AWS_ACCESS_KEY_ID": self.account,
            "AWS_ENDPOINT_URL": self.proxy.url,
            "STACKHOLD_STATE": f"s3://{self.bucket}",
            "NO_COLOR": "1",
        }
        return self.zygote.start(*args, env=env, cwd=self.folder)

    def end(self, command: Command) -> Ended:
        """Wait for its end; raises `TimeoutError`."""
        code = command.wait(COMMAND_SECONDS)
        out, err = command.out.read_text(errors="replace"), command.err.read_text(errors="replace")
        command.out.unlink()
        command.err.unlink()
        return Ended(command.args, code, out, err)

    def run(self, *args: str) -> Ended:
        """Run a command to its end."""
        return self.end(self.start(*args))

    def client(self, service: str) -> Any:
        """A client that asks the emulator directly."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,
                endpoint_url=self.emulator.url,
                region_name="us-east-1",
                aws_access_key_id=self.account,
                aws_secret_access_key="test",
            )
        return self._clients[service]

    def held(self) -> dict[str, list[str]]:
        """What exists, by kind."""
        return inventory(self.client)

    def stored(self, name: str) -> dict[str, Any] | None:
        """An object of the stack in the store; None when there is none."""
        try:
            body = self.client("s3").get_object(Bucket=self.bucket, Key=f"{_FOLDER}/{name}")["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] in {"NoSuchKey", "404"}:
                return None
            raise
        found: dict[str, Any] = json.loads(body)
        return found


@contextlib.contextmanager
def stage(emulator: Emulator | None = None) -> Iterator[Stage]:
    """Set it up, with an emulator of its own unless one is given."""
    with contextlib.ExitStack() as stack:
        running = emulator or stack.enter_context(emulators.running("ministack"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stackhold-faults-")))
        proxy = stack.enter_context(SlowProxy(running.url, label=label))
        zygote = Zygote(folder)
        stack.callback(zygote.close)
        yield Stage(running, proxy, zygote, folder)


def kill(command: Command) -> None:
    """kill -9, and wait until it is dead."""
    command.signal(signal.SIGKILL)
    command.ended.wait(COMMAND_SECONDS)
