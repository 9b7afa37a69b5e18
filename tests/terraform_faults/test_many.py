"""Thirty runs at once on thirty modules: each runner stays small beside its runtime, and nothing of any is lost."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from tests.runtimes.fixtures import embedded
from tests.terraform_faults.scenes import at_work
from tests.terraform_faults.yard import descendants, yard

if TYPE_CHECKING:
    import subprocess

    from tests.runtimes.catalogue import Runtime
    from tests.terraform_faults.yard import Plot

__all__ = ["embedded"]

pytestmark = [pytest.mark.runtimes, pytest.mark.slow]

RUNS: Final = 30
LARGEST_MB: Final = 40
MODULE: Final = """
resource "terraform_data" "thing" {
  count = 20
  input = count.index

  provisioner "local-exec" {
    command = "echo made-${count.index} >> made"
  }
}
output "made" {
  value = length(terraform_data.thing)
}
"""


def resident_mb(pid: int) -> float:
    """The largest that a process has been in memory, with all that it shares with others, in MB (10^6 bytes)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def born(pid: int) -> str:
    """When a process was started, by which it is told from a later one with its id; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def followed(started: dict[int, subprocess.Popen[str]]) -> tuple[dict[int, float], set[tuple[int, str]]]:
    """Wait for all of them: how large each became, and what they had started."""
    peaks, below = dict.fromkeys(started, 0.0), set[tuple[int, str]]()
    while any(process.poll() is None for process in started.values()):
        for pid, process in started.items():
            if process.returncode is None:
                peaks[pid] = max(peaks[pid], resident_mb(pid))
                below.update((each, born(each)) for each in descendants(pid))
        time.sleep(0.1)
    return peaks, below


def assert_whole(plot: Plot, process: subprocess.Popen[str]) -> None:
    """Everything that happened was told, is in the log, and is in the state."""
    ended = plot.end(process)
    assert ended.code == 0, ended.told()
    done = re.findall(r"create\s+terraform_data\.thing\[(\d+)\]\s+done", ended.said)
    assert sorted(map(int, done)) == list(range(20)), ended.told()
    assert len((plot.module / "made").read_text().split()) == 20
    (log,) = plot.stored("events").glob("*.json")
    kinds = [event["kind"] for event in json.loads(log.read_text())["events"]]
    assert kinds.count("operation-done") == 20, kinds
    (resource,) = plot.state()["resources"]
    assert len(resource["instances"]) == 20
    assert not plot.stored("lock.json").exists()
    assert at_work(plot) == []


def test_thirty_runs_at_once_stay_small_and_lose_nothing(embedded: Runtime, mirrors: Path) -> None:
    with yard(embedded, "own") as ground, ExitStack() as stack:
        plots = [stack.enter_context(ground.plot("--lock-timeout", "60s")) for _ in range(RUNS)]
        for plot in plots:
            plot.write(MODULE)
        started = [plot.start("apply", "--yes") for plot in plots]
        peaks, below = followed({process.pid: process for process in started})

        for plot, process in zip(plots, started, strict=True):
            assert_whole(plot, process)
        assert max(peaks.values()) < LARGEST_MB, sorted(peaks.values())
        assert below
        assert [pid for pid, when in below if when and born(pid) == when] == []
