"""Root modules for the tests on the real runtimes: their text, and one with its runtime and environment at hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtimes.catalogue import Runtime

PROVIDERS = """\
terraform {
  required_providers {
    probe = { source = "stackhold/probe" }
    time  = { source = "hashicorp/time" }
  }
}
"""

CHAIN = (
    PROVIDERS
    + """
variable "value" {
  type    = string
  default = "one"
}

resource "probe_thing" "first" {
  name   = "first"
  value  = var.value
  secret = "s3cr3t-of-first"
}

resource "time_static" "made" {
  triggers = { first = probe_thing.first.id }
}

resource "probe_thing" "second" {
  name  = "second"
  value = probe_thing.first.id
  kind  = "plain"

  depends_on = [time_static.made]
}

output "first" {
  value = probe_thing.first.id
}
"""
)
"""Two things one after the other, with a resource of another provider between them."""

THING = (
    PROVIDERS
    + """
resource "probe_thing" "only" {
  name = "only"
}
"""
)
"""One thing."""


def write(folder: Path, text: str) -> Path:
    """Make the folder a root module of this one file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "main.tf").write_text(text, encoding="utf-8")
    return folder


class Module:
    """A root module, a runtime and an environment; `tf` runs one command and holds it to an exit code."""

    def __init__(self, runtime: Runtime, env: dict[str, str], folder: Path) -> None:
        self.runtime = runtime
        self.env = env
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def write(self, text: str) -> None:
        """Make it the module of this one file."""
        write(self.folder, text)

    def tf(self, *arguments: str, code: int = 0) -> str:
        """Run one command to its end and hold it to an exit code; gives back its standard output."""
        done = self.runtime.run(*arguments, folder=self.folder, env=self.env)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start one command in a session of its own, with both outputs in the file `out`."""
        with (self.folder / "out").open("wb") as out:
            process = subprocess.Popen(
                [*self.runtime.command, *arguments],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def events(self) -> list[dict[str, Any]]:
        """The stream of what `start` started, so far."""
        return [json.loads(line) for line in (self.folder / "out").read_text().splitlines()]

    def resources(self) -> list[str]:
        """The addresses in the state."""
        return self.tf("state", "list").split()

    def change_summary(self, *arguments: str) -> dict[str, int]:
        """Apply at once; gives back what the stream says was added, changed and removed."""
        events = [json.loads(line) for line in self.tf("apply", "-auto-approve", "-json", *arguments).splitlines()]
        counted: dict[str, int] = [one["changes"] for one in events if one["type"] == "change_summary"][-1]
        return {what: counted[what] for what in ("add", "change", "remove")}

    def close(self) -> None:
        """Kill what it started and what still runs, with its whole process group."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
