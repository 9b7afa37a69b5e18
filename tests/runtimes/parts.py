"""What `make test-runtimes` builds from Go modules, and where a built part lies in the user's cache.

A part's key holds its version, its platform and a digest of everything that its build reads here, so a changed pin or
provider is another part, and two checkouts share what they have in common. Nothing here builds.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
HOSTS = ("registry.terraform.io", "registry.opentofu.org")
"""The provider namespaces that a source without a host stands for, in Terraform and in OpenTofu."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class NotBuilt(Exception):
    """A part is not in the cache; `make test-runtimes` builds it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One binary: the module folder under this one that pins it, the package in it, and the file that comes out."""

    name: str
    version: str
    folder: str
    package: str
    file: str
    ldflags: str = "-s -w"

    @property
    def module(self) -> Path:
        """The folder with its go.mod and go.sum."""
        return HERE / self.folder

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
        return cache() / self.key / self.file

    def built(self) -> Path:
        """The path of its binary. Raises `NotBuilt`."""
        if not self.path.is_file():
            raise NotBuilt(f"{self.name} {self.version} is not built; `make test-runtimes` builds it")
        return self.path


TOFU = Part(
    name="tofu",
    version="1.12.6",
    folder="tofu",
    package="github.com/opentofu/opentofu/cmd/tofu",
    file="tofu",
    ldflags="-s -w -X github.com/opentofu/opentofu/version.dev=no",
)
TIME = Part(
    name="time",
    version="0.14.2",
    folder="time",
    package="github.com/hashicorp/terraform-provider-time",
    file="terraform-provider-time_v0.14.2",
)
PROBE = Part(
    name="probe",
    version="1.0.0",
    folder="provider",
    package=".",
    file="terraform-provider-probe_v1.0.0",
)
PARTS = (PROBE, TIME, TOFU)
PROVIDERS = {"hashicorp/time": TIME, "stackhold/probe": PROBE}
"""The providers of the mirror, by their source without a host."""


def cache() -> Path:
    """The folder of all built parts."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "stackhold" / "runtimes"


def platform_name() -> str:
    """This machine as Go and the mirrors name it, such as linux_amd64."""
    machine = platform.machine().lower()
    return f"{sys.platform}_{_ARCHITECTURES.get(machine, machine)}"


def mirror_folder() -> Path:
    """Where the mirror of the current providers lies, made or not."""
    keys = "\0".join(part.key for part in PROVIDERS.values())
    return cache() / f"mirror-{hashlib.sha256(keys.encode()).hexdigest()[:12]}"


def mirror() -> Path:
    """The filesystem mirror of all providers, under both hosts. Raises `NotBuilt`."""
    if not mirror_folder().is_dir():
        raise NotBuilt("the provider mirror is not made; `make test-runtimes` makes it")
    return mirror_folder()
