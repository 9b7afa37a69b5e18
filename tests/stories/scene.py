"""The scene of a story: an emulator, a state folder, and `stackhold` as a real process.

A story never sleeps: it waits for a condition, with a bound. Slow networks are proxies, signals are real.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping

    from stackhold.testing import emulators

STACKHOLD = str(Path(sys.executable).parent / "stackhold")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS = 60.0
"""How long a story waits for a condition before it fails."""


@dataclass(frozen=True)
class Result:
    """A finished command."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output as the one JSON document it must be."""
        return json.loads(self.out)


@dataclass
class Running:
    """A command that is still running, or was."""

    process: subprocess.Popen[str]

    def signal(self, signum: signal.Signals) -> None:
        """Send it a real signal."""
        self.process.send_signal(signum)

    def finish(self, timeout: float = PATIENCE_SECONDS) -> Result:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=timeout)
        return Result(self.process.returncode, out, err)


@dataclass
class Scene:
    """Commands typed against one emulator and one store."""

    emulator: emulators.Emulator
    folder: Path
    state: str
    environment: dict[str, str] = field(default_factory=dict)
    started: list[Running] = field(default_factory=list)

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of a command; `NO_COLOR` and no terminal, as in CI."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "STACKHOLD_"))}
        return {
            **kept,
            **self.emulator.environment(),
            "STACKHOLD_STATE": self.state,
            "NO_COLOR": "1",
            **self.environment,
            **(extra or {}),
        }

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> Running:
        """Start a command and go on."""
        process = subprocess.Popen(
            [STACKHOLD, *args],
            env=self.env(env),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running = Running(process)
        self.started.append(running)
        return running

    def run(self, *args: str, expect: int | None = 0, env: Mapping[str, str] | None = None) -> Result:
        """Run a command to its end; another exit code than `expect` fails the story (None: any)."""
        result = self.start(*args, env=env).finish()
        if expect is not None:
            assert result.code == expect, f"stackhold {' '.join(args)} exited {result.code}\n{result.out}\n{result.err}"
        assert "Traceback" not in result.err, result.err
        return result

    def client(self, service: str) -> Any:
        """A boto3 client on the emulator, to ask it directly."""
        return boto3.client(
            service,
            endpoint_url=self.emulator.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def file(self, stack: str, name: str = "state.json", region: str = "us-east-1") -> Path:
        """Where an object of a stack lies in a directory store."""
        return Path(self.state.removeprefix("file:")) / "stackhold" / stack / region / name

    def record(self, stack: str) -> dict[str, Any]:
        """The stack's record as JSON, through the command (any store)."""
        state: dict[str, Any] = self.run("state", "show", stack, "--json").json()["state"]
        return state

    def lock(self, stack: str) -> dict[str, Any] | None:
        """The stack's lock as JSON in a directory store, None when there is none."""
        path = self.file(stack, "lock.json")
        try:
            lock: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return lock

    def told(self, stack: str) -> list[dict[str, Any]]:
        """The events of the stack's latest run so far, as they lie in a directory store."""
        logs = sorted(self.file(stack, "events").glob("*.json"))
        with contextlib.suppress(FileNotFoundError, IndexError):
            events: list[dict[str, Any]] = json.loads(logs[-1].read_text())["events"]
            return events
        return []

    def wait_told(self, stack: str, kind: str) -> None:
        """Wait until the run at work has told an event of a kind."""
        wait_until(lambda: any(event["kind"] == kind for event in self.told(stack)), f"the event {kind}")

    def write(self, name: str, text: str) -> Path:
        """A file in the scene's folder."""
        path = self.folder / name
        path.write_text(text)
        return path


def wait_until(condition: Callable[[], object], what: str, *, seconds: float = PATIENCE_SECONDS) -> None:
    """Poll until it is true; fails saying `what` was waited for."""
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            pytest.fail(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.02)
