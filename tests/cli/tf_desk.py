"""Where `stackhold tf` and `stackhold runner` are typed: a module, a directory store, a scripted runtime."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engines.terraform.plans import change, plan
from tests.stories.scene import STACKHOLD, Result

RUNTIME = Path(__file__).with_name("scripted_runtime.py")
MODULE = 'resource "terraform_data" "a" {\n  input = 1\n}\n'


@dataclass
class TfDesk:
    """Commands about one module."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "bin", "said", "shop"):
            (self.folder / name).mkdir()
        self.write("shop/main.tf", MODULE)
        self.say("version", {"terraform_version": "1.11.4"})
        self.say("validate", {"valid": True, "diagnostics": []})
        self.say("state-list", "terraform_data.a\n")

    @property
    def scripted(self) -> tuple[str, ...]:
        """The flags that name the scripted runtime."""
        return tuple(f"--bin={word}" for word in self.scripted_words)

    @property
    def scripted_words(self) -> tuple[str, ...]:
        """The command that is the scripted runtime."""
        return (sys.executable, str(RUNTIME), str(self.folder / "said"))

    def write(self, name: str, text: str) -> Path:
        """A file in the folder, with the folders above it."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def say(self, step: str, *said: object, code: int = 0, err: str = "") -> None:
        """Lay down what a step says: text as it is, all else as a line of JSON."""
        text = "".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in said)
        self.write(f"said/{step}.out", text)
        self.write(f"said/{step}.err", err)
        self.write(f"said/{step}.code", str(code))

    def finds(self, *changes: dict[str, Any]) -> None:
        """Let planning find these changes."""
        self.say("plan", code=2 if changes else 0)
        self.say("show", plan(*changes).decode())

    def finds_a_create(self) -> None:
        """Let planning find one thing to make."""
        self.finds(change("terraform_data.a", "create"))

    def calls(self) -> list[list[str]]:
        """What the scripted runtime was asked so far, without the questions for its version."""
        file = self.folder / "said" / "calls.jsonl"
        found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [call for call in found if call[0] != "version"]

    def env(self) -> dict[str, str]:
        """Nothing of the machine's own settings, and no runtime on PATH."""
        return {
            "HOME": str(self.folder / "home"),
            "PATH": str(self.folder / "bin"),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "STACKHOLD_STATE": f"file:{self.folder / 'store'}",
            **self.environment,
        }

    def run(self, *args: str, expect: int | None = 0, answer: str | None = None) -> Result:
        """Run a command to its end; `answer` is typed by a person on a terminal."""
        terminal = pty.openpty() if answer is not None else None
        if terminal is not None and answer is not None:
            os.write(terminal[0], answer.encode())
        process = subprocess.run(
            [STACKHOLD, *args],
            env=self.env(),
            cwd=self.folder,
            stdin=subprocess.DEVNULL if terminal is None else terminal[1],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if terminal is None else terminal[1],
            text=True,
            check=False,
            timeout=60,
        )
        said = process.stderr
        if terminal is not None:
            os.close(terminal[1])
            said = _drained(terminal[0])
        if expect is not None:
            assert process.returncode == expect, f"{args} exited {process.returncode}\n{process.stdout}\n{said}"
        assert "Traceback" not in said, said
        return Result(process.returncode, process.stdout, said)

    def tf(self, operation: str, *args: str, expect: int | None = 0, answer: str | None = None) -> Result:
        """`stackhold tf` on the module `shop`, with the scripted runtime."""
        return self.run("tf", operation, "shop", *args, *self.scripted, expect=expect, answer=answer)


def _drained(terminal: int) -> str:
    said = b""
    try:
        while piece := os.read(terminal, 65536):
            said += piece
    except OSError:  # the end of a terminal that nobody has open any more
        pass
    os.close(terminal)
    return said.decode()
