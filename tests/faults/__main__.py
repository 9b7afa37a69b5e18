"""Plays the fault bench: `python -m tests.faults --operation deploy --fault kill-after`.

Without `--operation` it plays all operations. Without `--fault` it plays the kill at each of its three positions, and
then at each request one of the other faults (`others`), which the seed chooses. `--jobs 2` plays the points in two
processes, each with an emulator of its own. The exit status is 1 when a point failed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from tests.faults.bench import Bench, Failure
from tests.faults.disturb import FAULTS, KILLS, Fault, hash_of
from tests.faults.points import Point
from tests.faults.stage import Stage, stage

_OPERATIONS = ("deploy", "update", "destroy", "rollback")
_OTHERS = "others"
_SUM = re.compile(r"^points (\d+) failures (\d+)$")
_REPLAY = "  replay: "


@dataclass
class Played:
    """What came of it."""

    points: int = 0
    failed: int = 0
    replays: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """The sum, and how to play again what failed."""
        for replay in self.replays:
            print(replay)
        print(f"points {self.points} failures {self.failed}", flush=True)


def main() -> int:
    """Play."""
    options = _options()
    if options.jobs > 1:
        played = _side_by_side(options.jobs, [arg for arg in sys.argv[1:] if not arg.startswith("--part")])
    else:
        with stage() as on:
            played = _play(on, options)
    played.tell()
    return 1 if played.failed else 0


def _play(on: Stage, options: argparse.Namespace) -> Played:
    played, began = Played(), time.monotonic()
    faults: tuple[str, ...] = tuple(options.fault or (*KILLS, _OTHERS))
    for name in options.operation or _OPERATIONS:
        for fault in faults:
            bench = Bench(on, name, options.template, _fault(fault), options.seed, options.unlocking)
            bench.rehearse()
            points = _chosen(bench.points, options)
            if options.list:
                print("\n".join(map(str, points)))
                continue
            failed = bench.play(points, tell=lambda line: print(line, flush=True))
            spent = time.monotonic() - began
            print(f"{name} {fault}: {_counts(len(points), failed)}, not reached {bench.unreached}, {spent:.0f} s")
            played.points += len(points)
            played.failed += len(failed)
            played.replays += [f"{_REPLAY}{failure.replay}" for failure in failed]
    return played


def _side_by_side(jobs: int, args: list[str]) -> Played:
    """The same in several processes, each with a part of the points."""
    played = Played()
    guard = threading.Lock()

    def follow(part: int) -> None:
        command = [sys.executable, "-m", "tests.faults", *args, "--jobs", "1", "--part", f"{part}/{jobs}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            summed = False
            replays: list[str] = []
            for line in process.stdout:
                if found := _SUM.match(line):
                    summed = True
                    with guard:
                        played.points += int(found.group(1))
                        played.failed += int(found.group(2))
                        played.replays += sorted(set(replays))
                    continue
                if line.startswith(_REPLAY):
                    replays.append(line.rstrip("\n"))
                print(line, end="", flush=True)
        if not summed:
            with guard:
                played.failed += 1

    threads = [threading.Thread(target=follow, args=(part,)) for part in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return played


def _chosen(points: list[Point], options: argparse.Namespace) -> list[Point]:
    if options.point:
        return [Point.of(text) for text in options.point]
    part, parts = map(int, options.part.split("/"))
    chosen = points[options.first : options.last]
    chosen = chosen[options.seed % options.every :: options.every]
    return [point for point in chosen if hash_of(str(point)) % parts == part]


def _fault(name: str) -> Fault | None:
    return next((fault for fault in FAULTS if fault == name), None)


def _counts(points: int, failed: list[Failure]) -> str:
    return f"points {points} failures {len(failed)}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--operation", action="append", choices=_OPERATIONS)
    parser.add_argument("--template", default="serverless")
    parser.add_argument("--fault", action="append", choices=(*FAULTS, _OTHERS))
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="the first point, from 0")
    parser.add_argument("--to", dest="last", type=int, metavar="M", help="the point after the last")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th point")
    parser.add_argument("--seed", type=int, default=1, help="orders requests that run side by side; 0 leaves them")
    parser.add_argument("--unlocking", choices=("force", "expiry"), default="force", help="how the next run gets on")
    parser.add_argument("--point", action="append", default=[], help="this point only, as a failure names it")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="play in N processes")
    parser.add_argument("--part", default="0/1", metavar="K/N", help="only the K-th of N parts, from 0")
    parser.add_argument("--list", action="store_true", help="only list the points")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
