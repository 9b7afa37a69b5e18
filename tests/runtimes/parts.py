"""What `make test-runtimes` builds from Go modules, and the mirror of providers that is made of it.

Nothing here builds.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.gobuild.part import NotBuilt, Part, Shelf, platform_name

__all__ = ["HOSTS", "PARTS", "PROVIDERS", "SHELF", "NotBuilt", "mirror", "mirror_folder", "platform_name"]

HERE = Path(__file__).parent
HOSTS = ("registry.terraform.io", "registry.opentofu.org")
"""The provider namespaces that a source without a host stands for, in Terraform and in OpenTofu."""

SHELF = Shelf(name="runtimes", target="test-runtimes")
TOFU = Part(
    name="tofu",
    version="1.12.6",
    shelf=SHELF,
    module=HERE / "tofu",
    package="github.com/opentofu/opentofu/cmd/tofu",
    file="tofu",
    ldflags="-s -w -X github.com/opentofu/opentofu/version.dev=no",
)
TIME = Part(
    name="time",
    version="0.14.2",
    shelf=SHELF,
    module=HERE / "time",
    package="github.com/hashicorp/terraform-provider-time",
    file="terraform-provider-time_v0.14.2",
)
PROBE = Part(
    name="probe",
    version="1.0.0",
    shelf=SHELF,
    module=HERE / "provider",
    package=".",
    file="terraform-provider-probe_v1.0.0",
)
PARTS = (PROBE, TIME, TOFU)
PROVIDERS = {"hashicorp/time": TIME, "stackhold/probe": PROBE}
"""The providers of the mirror, by their source without a host."""


def mirror_folder() -> Path:
    """Where the mirror of the current providers lies, made or not."""
    keys = "\0".join(part.key for part in PROVIDERS.values())
    return SHELF.path / f"mirror-{hashlib.sha256(keys.encode()).hexdigest()[:12]}"


def mirror() -> Path:
    """The filesystem mirror of all providers, under both hosts. Raises `NotBuilt`."""
    if not mirror_folder().is_dir():
        raise NotBuilt("the provider mirror is not made; `make test-runtimes` makes it")
    return mirror_folder()
