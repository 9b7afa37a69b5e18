"""The scene of a Terraform story: a root module, a runtime, a store, and `stackhold` as a real process.

The embedded Terraform is found by stackhold itself, on a PATH without `tofu` and `terraform`; the others are given by
`--bin`. A recording wrapper writes down the arguments of every call of the runtime, and hands over to it.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.stories.scene import STACKHOLD, Result, Running

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.runtimes.catalogue import Runtime

import subprocess

PATIENCE_SECONDS = 180.0
"""How long a story waits for a command on a busy machine before it fails."""
_RECORDER = """\
#!/bin/sh
for word in "$@"; do printf '%s\\037' "$word"; done >> {calls}
printf '\\n' >> {calls}
exec {command} "$@"
"""
_SEPARATOR = "\x1f"


def path_without_runtimes() -> str:
    """PATH without the folders that hold a runtime."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    holds = ("tofu", "terraform")
    return os.pathsep.join(each for each in folders if not any(Path(each, name).exists() for name in holds))


@dataclass
class TfScene:
    """Commands typed against one module and one store, on one runtime."""

    runtime: Runtime
    folder: Path
    state: str
    environment: dict[str, str]
    """Of the runtime and of the store, over what little is kept of the test's own."""
    bin: tuple[str, ...] = ()
    """The flags that name the runtime, where it is not to be found on its own."""
    module: Path = field(init=False)
    started: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.module = self.folder / "module"
        self.module.mkdir(mode=0o700, exist_ok=True)

    def write(self, text: str, name: str = "main.tf") -> Path:
        """A file of the module."""
        file = self.module / name
        file.write_text(text, encoding="utf-8")
        return file

    def record_calls(self) -> None:
        """Have the arguments of every call of the runtime written down from now on; forgets the ones before."""
        (self.folder / "calls").unlink(missing_ok=True)
        recorder = self.folder / "recorder"
        calls = shlex.quote(str(self.folder / "calls"))
        recorder.write_text(_RECORDER.format(calls=calls, command=shlex.join(self.runtime.command)), encoding="utf-8")
        recorder.chmod(0o700)
        self.bin = ("--bin", str(recorder))

    def calls(self) -> list[list[str]]:
        """The arguments of every call since `record_calls`."""
        lines = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return [line.split(_SEPARATOR)[:-1] for line in lines]

    def start(self, *args: str, env: Mapping[str, str] | None = None) -> Running:
        """Start a command and go on."""
        process = subprocess.Popen(
            [STACKHOLD, *args],
            env={"NO_COLOR": "1", "STACKHOLD_STATE": self.state, **self.environment, **(env or {})},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(Running(process))
        return self.started[-1]

    def run(self, *args: str, expect: int | None = 0, env: Mapping[str, str] | None = None) -> Result:
        """Run a command to its end; another exit code than `expect` fails the story (None: any)."""
        result = self.start(*args, env=env).finish(PATIENCE_SECONDS)
        if expect is not None:
            assert result.code == expect, f"stackhold {' '.join(args)} exited {result.code}\n{result.out}\n{result.err}"
        assert "Traceback" not in result.err, result.err
        return result

    def tf(
        self, operation: str, *flags: str, expect: int | None = 0, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """`stackhold tf` on the module, with `--json` and `--yes` where it asks; the document."""
        yes = ("--yes",) if operation in ("apply", "destroy", "restore", "force-unlock") else ()
        done = self.run("tf", operation, str(self.module), *flags, *yes, *self.bin, "--json", expect=expect, env=env)
        document: dict[str, Any] = done.json()
        return document

    def job(self, operation: str, *flags: str, expect: int = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`stackhold runner run` on the module; the result document."""
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        places = ("--module", str(self.module), "--workdir", str(self.folder / "work"), "--result", str(result))
        done = self.run("runner", "run", "--op", operation, *places, *self.bin, *flags, expect=expect, env=env)
        written = result.read_bytes()
        assert len(written) <= 4096
        document: dict[str, Any] = json.loads(written)
        assert document["version"] == 1
        assert (document["error"] is None) is (done.code == 0)
        return document

    def tool(self, *args: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
        """Run the runtime itself in the module, as somebody else would; its standard output."""
        done = self.runtime.run(*args, folder=self.module, env={**self.environment, **(env or {})})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def versions(self) -> list[int]:
        """The versions of the state in the store."""
        document = self.run("tf", "restore", str(self.module), "--json").json()
        return [each["version"] for each in document["versions"]]

    def current_state(self) -> dict[str, Any]:
        """The current state in a directory store."""
        document = self.run("tf", "restore", str(self.module), "--json").json()
        number = next(each["version"] for each in document["versions"] if each["isCurrent"])
        (file,) = Path(self.state.removeprefix("file:")).rglob(f"{number:08d}.tfstate")
        found: dict[str, Any] = json.loads(file.read_bytes())
        return found

    def close(self) -> None:
        """End every process that it started."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.kill()
            running.process.communicate()
