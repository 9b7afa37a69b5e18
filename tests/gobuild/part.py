"""A binary that tests need and that is built from a Go module, and where it lies in the user's cache.

A part's key holds its version, its platform and a digest of everything that its build reads in this repository, so a
changed pin or source is another part, and two checkouts share what they have in common. Nothing here builds.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class NotBuilt(Exception):
    """A part is not in the cache; its text names the command that builds it."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of built parts in the user's cache, and the make target that fills it."""

    name: str
    target: str

    @property
    def path(self) -> Path:
        """Where it lies, made or not."""
        named = os.environ.get("XDG_CACHE_HOME")
        return (Path(named) if named else Path.home() / ".cache") / "stackhold" / self.name


@dataclass(frozen=True, slots=True)
class Part:
    """One binary: the folder with the go.mod and go.sum that pin it, the package in it, and the file that comes out."""

    name: str
    version: str
    shelf: Shelf
    module: Path
    package: str
    file: str
    ldflags: str = "-s -w"

    @property
    def key(self) -> str:
        """The name of its folder in the cache."""
        return f"{self.name}-{self.version}-{platform_name()}-{self._digest()}"

    def _digest(self) -> str:
        digest = hashlib.sha256(f"{self.package}\0{self.file}\0{self.ldflags}\0".encode())
        for path in sorted(one for one in self.module.iterdir() if one.suffix in (".go", ".mod", ".sum")):
            text = path.read_bytes()
            digest.update(f"{path.name}\0{len(text)}\0".encode() + text)
        return digest.hexdigest()[:12]

    @property
    def path(self) -> Path:
        """Where its binary lies once built."""
        return self.shelf.path / self.key / self.file

    def built(self) -> Path:
        """The path of its binary. Raises `NotBuilt`."""
        if not self.path.is_file():
            raise NotBuilt(f"{self.name} {self.version} is not built; `make {self.shelf.target}` builds it")
        return self.path


def platform_name() -> str:
    """This machine as Go and the provider mirrors name it, such as linux_amd64."""
    machine = platform.machine().lower()
    return f"{sys.platform}_{_ARCHITECTURES.get(machine, machine)}"
