"""`make bench`: what a deploy of `wide` costs, next to the floor measured in the same run; then what `guard` measures.

For each case the floor and stackhold take turns, and the medians are shown. Wall, CPU and memory are taken
directly against the emulator (and through a proxy that adds 50 ms to each request); calls and bytes are
counted by the proxy in a run of their own. The state is in a bucket of the same emulator.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import guard
from benchmarks.measure import Measured, measure
from stackhold.testing import emulators

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
BUCKET = "bench-state"
OTHERS = (
    ("cdkd 0.284, drift capture included", 5.3, "412 (124 without capture)"),
    ("Terraform 1.11 + aws 5.100, without the queues", 11.0, "344"),
    ("Terraform 1.11 + aws 5.100", 50.0, "416"),
)
"""Published beside the templates, measured elsewhere in one run: name, × floor (wall), calls."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    name: str
    flags: tuple[str, ...] | None
    """None for the floor."""


CASES = (
    Case("floor: bare botocore, 32 threads", None),
    Case("stackhold deploy --no-baseline", ("--no-baseline",)),
    Case("stackhold deploy", ()),
)


def template() -> Path:
    """The `wide` template of the cases folder when it is named, else our own of the same size."""
    cases = os.environ.get("STACKHOLD_CASES")
    return Path(cases) / "wide.template.json" if cases else ROOT / "examples" / "wide.yaml"


def command(case: Case, number: int) -> list[str]:
    """The command of one run, under a name that no other run uses."""
    if case.flags is None:
        return [sys.executable, "-m", "benchmarks.floor", f"floor{number}"]
    name = f"wide{number}"
    stackhold = str(Path(sys.executable).parent / "stackhold")
    return [
        stackhold,
        "deploy",
        str(template()),
        "--stack-name",
        name,
        "--state",
        f"s3://{BUCKET}",
        "--yes",
        *case.flags,
    ]


@contextmanager
def proxy(target: str, *, delay_ms: int) -> Iterator[str]:
    """A counting, delaying proxy in a process of its own: its URL."""
    port = emulators.free_port()
    url = f"http://127.0.0.1:{port}"
    flags = ["--target", target, "--port", str(port), "--delay-ms", str(delay_ms)]
    process = subprocess.Popen([sys.executable, "-m", "stackhold.testing.proxy", *flags], stdout=subprocess.DEVNULL)
    try:
        _wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str) -> None:
    for _ in range(200):
        try:
            with urllib.request.urlopen(url + "/_proxy/stats", timeout=2):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise RuntimeError(f"nothing answers at {url}")


def timings(emulator: emulators.Emulator, url: str, rounds: int) -> dict[str, Measured]:
    """Median of each figure per case; the cases take turns, each round on an empty emulator."""
    runs: dict[str, list[Measured]] = {case.name: [] for case in CASES}
    for number in range(rounds + 1):
        for case in CASES:
            _fresh(emulator)
            measured = measure(command(case, number), {**emulator.environment(), "AWS_ENDPOINT_URL": url})
            if number:  # the first round warms up
                runs[case.name].append(measured)
    return {
        name: Measured(*(statistics.median(getattr(run, figure) for run in some) for figure in ("wall", "cpu", "peak")))
        for name, some in runs.items()
    }


def counts(emulator: emulators.Emulator) -> dict[str, dict[str, int]]:
    """Calls in all, calls to the state bucket and bytes sent to it, per case."""
    found = {}
    for case in CASES:
        _fresh(emulator)
        with proxy(emulator.url, delay_ms=0) as url:
            measure(command(case, 99), {**emulator.environment(), "AWS_ENDPOINT_URL": url})
            with urllib.request.urlopen(url + "/_proxy/stats", timeout=10) as answer:
                found[case.name] = _count(json.load(answer))
    return found


def _count(stats: dict[str, list[list[object]]]) -> dict[str, int]:
    """From the proxy's log: rows of name, method, path, status, bytes of the request, …"""
    requests = stats["log"]
    store = [row for row in requests if str(row[2]).startswith(f"/{BUCKET}")]
    return {
        "calls": len(requests),
        "store_calls": len(store),
        "store_bytes": sum(int(str(row[4])) for row in store),
    }


def _fresh(emulator: emulators.Emulator) -> None:
    emulator.reset()
    stackhold = str(Path(sys.executable).parent / "stackhold")
    subprocess.run(
        [stackhold, "bootstrap", "--state", f"s3://{BUCKET}"],
        env={**os.environ, **emulator.environment()},
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=15, help="of the table on Terraform")
    parser.add_argument("--only", choices=("wide", "guard"), help="one of the two tables")
    chosen = parser.parse_args()
    if chosen.only != "guard":
        _wide(chosen.rounds)
    if chosen.only != "wide":
        _guard(chosen.pairs)


def _guard(pairs: int) -> None:
    with emulators.running("ministack") as emulator, tempfile.TemporaryDirectory(prefix="stackhold-bench-") as folder:
        for line in guard.table(emulator, dict(os.environ), Path(folder).resolve(), pairs):
            print(line, flush=True)


def _wide(rounds: int) -> None:
    with emulators.running("ministack") as emulator:
        counted = counts(emulator)
        plain = timings(emulator, emulator.url, rounds)
        with proxy(emulator.url, delay_ms=50) as url:
            slow = timings(emulator, url, rounds)
    print(f"`{template().name}` on ministack, state in a bucket of the same emulator, medians of {rounds}\n")
    print(
        "| | wall s | × floor | +50 ms a request: s | × floor | CPU s | peak MB | calls | to the store | bytes to it |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    floor = CASES[0].name
    for case in CASES:
        now, late, count = plain[case.name], slow[case.name], counted[case.name]
        print(
            f"| {case.name} | {now.wall:.2f} | {now.wall / plain[floor].wall:.2f} | {late.wall:.2f}"
            f" | {late.wall / slow[floor].wall:.2f} | {now.cpu:.2f} | {now.peak:.0f} | {count['calls']}"
            f" | {count['store_calls']} | {count['store_bytes']} |"
        )
    print("\nElsewhere, one machine, published ratios:")
    for name, ratio, calls in OTHERS:
        print(f"| {name} | | {ratio} | | | | | {calls} | | |")
    print()


if __name__ == "__main__":
    main()
