"""A runtime that a test scripts: a real process that notes its arguments and plays what the test has laid down.

Its folder holds, per step, `STEP.out` (standard output), `STEP.err`, `STEP.code`; `calls.jsonl` is what it was asked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: Path, arguments: list[str]) -> int:
    """Answer one command."""
    with (folder / "calls.jsonl").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    words = arguments[:2] if arguments[0] == "state" else arguments[:1]
    step = "-".join(words)
    if step == "version" and "-json" not in arguments:
        step = "version-text"
    if step == "show" and "-json" not in arguments:
        step = "show-plan"
    for argument in arguments:
        if argument.startswith("-out="):
            Path(argument.removeprefix("-out=")).write_text("a plan")
    for stream, ending in ((sys.stdout, "out"), (sys.stderr, "err")):
        said = folder / f"{step}.{ending}"
        stream.write(said.read_text() if said.exists() else "")
    code = folder / f"{step}.code"
    return int(code.read_text()) if code.exists() else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
