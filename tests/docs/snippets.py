"""Commands shown in the documentation: found in its pages, run, and compared with what the page shows.

A block ```console holds commands, lines that begin with `$ `, each followed by its output. `…` stands for anything
within a line, and a line of only `…` for any lines, none included. `expect=1` behind `console` is the exit code of
the block's last command; all others must exit 0.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.stories.scene import STACKHOLD

if TYPE_CHECKING:
    from pathlib import Path

    from stackhold.testing.emulators import Emulator

ALLOWED = frozenset({"stackhold", "cat", "ls", "cp", "sed"})
_FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)\s*$", re.M | re.S)
_ANY_LINES = "…"


@dataclass(frozen=True)
class Step:
    """One command with what the page shows of it."""

    line: int
    command: str
    output: tuple[str, ...]
    code: int = 0

    @property
    def needs_runtime(self) -> bool:
        """Whether it starts Terraform or OpenTofu."""
        return self.command.startswith("stackhold tf ")


def steps_of(text: str) -> list[Step]:
    """The commands of a page, in order."""
    found: list[Step] = []
    for block in _FENCE.finditer(text):
        words = block["info"].split()
        if words[:1] == ["console"]:
            first = text.count("\n", 0, block.start("body")) + 1
            found += _steps(block["body"].splitlines(), first=first, code=_code(words[1:]))
    return found


def fits(shown: tuple[str, ...], said: str) -> bool:
    """Whether what a command said is what the page shows."""
    parts = [r"(?:.*\n)*?" if line == _ANY_LINES else _pattern(line) + r"[ \t]*\n" for line in shown]
    told = said if not said or said.endswith("\n") else said + "\n"
    return re.fullmatch("".join(parts), told) is not None


@dataclass(frozen=True)
class Desk:
    """Where the commands of one page are typed: a copy of the examples, an emulator, no settings."""

    folder: Path
    emulator: Emulator

    @classmethod
    def at(cls, folder: Path, emulator: Emulator, *, examples: Path) -> Desk:
        """A new one."""
        shutil.copytree(examples, folder / "examples")
        return cls(folder, emulator)

    def complaint(self, step: Step) -> str:
        """What is wrong with a step; empty when it is as shown."""
        words = shlex.split(step.command)
        if words[0] not in ALLOWED:
            return f"line {step.line}: {words[0]} is none of the commands that are run: {', '.join(sorted(ALLOWED))}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "STACKHOLD_", "TF_"))}
        done = subprocess.run(
            [STACKHOLD if words[0] == "stackhold" else words[0], *words[1:]],
            env={**kept, **self.emulator.environment(), "XDG_CACHE_HOME": str(self.folder / "cache")},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode == step.code and fits(step.output, done.stdout):
            return ""
        shown = "\n".join(step.output)
        return (
            f"line {step.line}: $ {step.command}\n--- shown, exit {step.code}\n{shown}\n"
            f"--- said, exit {done.returncode}\n{done.stdout}"
        )


def _steps(lines: list[str], *, first: int, code: int) -> list[Step]:
    starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
    assert starts[:1] == [0], f"line {first}: a console block begins with a command"
    ends = [*starts[1:], len(lines)]
    return [
        Step(
            first + start,
            lines[start].removeprefix("$ "),
            tuple(line.rstrip() for line in lines[start + 1 : end]),
            code if end == len(lines) else 0,
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _code(words: list[str]) -> int:
    for word in words:
        name, _, value = word.partition("=")
        assert name == "expect", f"{word} means nothing behind console"
        return int(value)
    return 0


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))
