"""What the tests of stops share: two things in a row, an apply that is in the middle of the second, what must hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.terraform_faults.yard import Plot, descendants, wait_until

if TYPE_CHECKING:
    import subprocess

    from tests.runtimes.probe_server import Fault
    from tests.terraform_faults.yard import Ended

PAIR = """
terraform {
  required_providers {
    probe = { source = "stackhold/probe" }
  }
}
variable "value" {
  type    = string
  default = "one"
}
resource "probe_thing" "first" {
  name  = "first"
  value = var.value
}
resource "probe_thing" "second" {
  name  = "second"
  value = probe_thing.first.id
}
"""
"""Two things, the second after the first."""


def begun(plot: Plot, fault: Fault, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """An apply of the pair that has come to the second thing, which meets this fault."""
    plot.write(PAIR)
    plot.probe.add(fault)
    process = plot.start("apply", "--yes", *args, env=env)
    wait_until(
        lambda: process.poll() is not None or len(plot.probe.requests("create")) == 2,
        "the create of the second thing",
        seconds=120,
    )
    assert process.poll() is None, plot.end(process).told()
    return process


def recorded(plot: Plot) -> list[str]:
    """The addresses in the state."""
    return sorted(plot.ids().values())


def assert_free(plot: Plot) -> None:
    """No lock is left, neither ours nor the runtime's, and no process, file or folder of the run."""
    assert not plot.lock()
    assert not plot.stored("lock.json").exists()
    assert not list(plot.module.glob("stackhold_*"))
    assert not [path for path in (plot.folder / "cache").rglob("*") if path.is_file()]
    assert_gone(plot)


def assert_gone(plot: Plot) -> None:
    """No process of the plot is left."""
    wait_until(lambda: not at_work(plot), f"the end of {at_work(plot)}", seconds=20)
    assert plot.probe.providers() == []


def at_work(plot: Plot) -> list[str]:
    """The processes that have a file or the working folder in the plot, by their command lines."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                folder = os.readlink(f"/proc/{entry}/cwd")
                words = Path("/proc", entry, "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if folder.startswith(f"{plot.folder}/"):
                found.append(f"{entry}: {words}")
    return found


def runtime_of(process: subprocess.Popen[str]) -> list[int]:
    """The runtime that a runner has started, and the providers below it."""
    return descendants(process.pid)


def converged(plot: Plot, *args: str) -> Ended:
    """A further apply brings it where the module wants it, each thing made once and recorded."""
    plot.probe.clear_faults()
    ended = plot.run("apply", "--yes", *args)
    assert ended.code == 0, ended.told()
    assert plot.probe.names() == ["first", "second"], ended.told()
    assert sorted(plot.ids()) == sorted(thing.id for thing in plot.probe.things())
    return ended


def run_file(plot: Plot) -> dict[str, Any]:
    """What a run has left for the next one; empty when nothing."""
    file = plot.stored("run.json")
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found
