"""Fuzzes the parsers: `python -m tests.fuzz --seconds 600 --jobs 2`.

Each of them, or those that `--parser` names, gets so many seconds. Prints for each how many inputs were tried and
taken, and how many kinds of failures there were; an input that fails is written to a file, with the command that
tries it again. The exit status is 1 when there was a failure.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.fuzzing import Failure, Fuzzing, play_one
from tests.fuzz.parsers import parsers

if TYPE_CHECKING:
    from collections.abc import Iterable


def main() -> int:
    """Fuzz."""
    known = parsers()
    options = argparse.ArgumentParser(prog="python -m tests.fuzz")
    options.add_argument("--parser", action="append", choices=sorted(known), help="this one only; may be repeated")
    options.add_argument("--seconds", type=float, default=600, help="for each parser")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="fuzz N parsers at a time")
    options.add_argument("--input", type=Path, help="try this file only, on the one parser")
    asked = options.parse_args()
    names = asked.parser or list(known)
    if asked.input is not None:
        return _tell([failure for name in names if (failure := play_one(known[name], asked.input.read_bytes()))])
    tried, failures = 0, list[Failure]()
    with ProcessPoolExecutor(asked.jobs) as pool:
        for name, count, taken, found in pool.map(
            _fuzzed, names, [asked.seconds] * len(names), [asked.seed] * len(names)
        ):
            print(f"{name}: {count} inputs, {taken} taken, {len(found)} kinds of failures", flush=True)
            tried += count
            failures += found
            _tell(found)
    print(f"inputs {tried} failures {len(failures)}", flush=True)
    return 1 if failures else 0


def _fuzzed(name: str, seconds: float, seed: int) -> tuple[str, int, int, list[Failure]]:
    fuzzing = Fuzzing(parsers()[name], seed)
    fuzzing.run(seconds)
    return name, fuzzing.tried, fuzzing.taken, list(fuzzing.failures.values())


def _tell(failures: Iterable[Failure]) -> int:
    """Show failures, each with its input kept; 1 when there are any."""
    status = 0
    for failure in failures:
        status = 1
        mark = hashlib.sha256(failure.data).hexdigest()[:10]
        path = Path(tempfile.gettempdir()) / f"stackhold-fuzz-{failure.parser}-{mark}"
        path.write_bytes(failure.data)
        print(f"FAILURE of {failure.parser}: {failure.where}\n  {failure.data[:200]!r}\n{failure.what}")
        print(f"  replay: python -m tests.fuzz --parser {failure.parser} --input {path}")
    return status


if __name__ == "__main__":
    sys.exit(main())
