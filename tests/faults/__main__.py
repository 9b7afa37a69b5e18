"""Plays the fault bench: `python -m tests.faults --operation deploy --fault kill-after`.

Without `--operation` or `--fault` it plays all operations, or the kill at all three positions. `--every N` takes each
N-th point, starting where the seed says. The exit status is 1 when a point failed.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.faults.bench import Bench, Failure
from tests.faults.disturb import FAULTS, Fault
from tests.faults.points import Point
from tests.faults.stage import stage

OPERATIONS = ("deploy", "update", "destroy", "rollback")
KILLS: tuple[Fault, ...] = ("kill-before", "kill-after", "kill-answered")


def main() -> int:
    """Play."""
    options = _options()
    failures: list[Failure] = []
    count, began = 0, time.monotonic()
    with stage() as on:
        for name in options.operation or OPERATIONS:
            faults: tuple[Fault, ...] = tuple(options.fault or KILLS)
            for fault in faults:
                bench = Bench(on, name, options.template, fault, options.seed, options.unlocking)
                bench.rehearse()
                if options.list:
                    print("\n".join(map(str, bench.points)))
                    continue
                points = [Point.of(text) for text in options.point] or bench.points[options.first : options.last]
                points = points[options.seed % options.every :: options.every] if not options.point else points
                failed = bench.play(points, tell=lambda line: print(line, flush=True))
                print(
                    f"{name} {fault}: points {len(points)} failures {len(failed)}"
                    f" (not reached: {bench.unreached}), {time.monotonic() - began:.0f} s",
                    flush=True,
                )
                count += len(points)
                failures += failed
    print(f"points {count} failures {len(failures)}")
    for failure in failures:
        print(f"  {failure.replay}")
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--template", default="serverless")
    parser.add_argument("--fault", action="append", choices=FAULTS)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N", help="the first point, from 0")
    parser.add_argument("--to", dest="last", type=int, metavar="M", help="the point after the last")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th point")
    parser.add_argument("--seed", type=int, default=1, help="orders requests that run side by side; 0 leaves them")
    parser.add_argument(
        "--unlocking", choices=("force", "expiry"), default="force", help="how the next run gets the lock"
    )
    parser.add_argument("--point", action="append", default=[], help="this point only, as a failure names it")
    parser.add_argument("--list", action="store_true", help="only list the points")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
