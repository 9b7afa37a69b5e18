"""Root modules for the tests on the real runtimes, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROVIDERS = """\
terraform {
  required_providers {
    probe = { source = "stackhold/probe" }
    time  = { source = "hashicorp/time" }
  }
}
"""

CHAIN = (
    PROVIDERS
    + """
variable "value" {
  type    = string
  default = "one"
}

resource "probe_thing" "first" {
  name   = "first"
  value  = var.value
  secret = "s3cr3t-of-first"
}

resource "time_static" "made" {
  triggers = { first = probe_thing.first.id }
}

resource "probe_thing" "second" {
  name  = "second"
  value = probe_thing.first.id
  kind  = "plain"

  depends_on = [time_static.made]
}

output "first" {
  value = probe_thing.first.id
}
"""
)
"""Two things one after the other, with a resource of another provider between them."""

THING = (
    PROVIDERS
    + """
resource "probe_thing" "only" {
  name = "only"
}
"""
)
"""One thing."""


def write(folder: Path, text: str) -> Path:
    """Make the folder a root module of this one file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "main.tf").write_text(text, encoding="utf-8")
    return folder
