"""What stands for container images on a test node: folders of files, registered under image references.

A pull takes what is registered at that moment, and can be told to fail. As on a kubelet, an image that was pulled once
is there for pods that do not insist on pulling again.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """What a container sees and runs: `files` laid over the base, and what its image says about the process.

    The base is this machine's own files, so that its interpreter and shell are there, or nothing at all. Writes go to
    a layer that is thrown away with the container. `mounts` puts single files or folders, read-only, at absolute paths.
    """

    files: Path | None = None
    base: Literal["host", "empty"] = "host"
    mounts: Mapping[str, Path] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": HOST_PATH})
    working_dir: str = "/"
    user: int = 0
    group: int = 0


class PullFailed(Exception):
    """An image cannot be had; `reason` is the one that the container's waiting state shows."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Images:
    """The images that a node can pull, and those that it has pulled. Safe to share between threads and nodes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Image] = {}
        self._present: dict[str, Image] = {}
        self._failing: dict[str, str] = {}

    def register(self, reference: str, image: Image) -> None:
        """Make `image` what the next pull of `reference` brings."""
        with self._lock:
            self._known[reference] = image

    def fail_pulls(self, reference: str, message: str) -> None:
        """Let every pull of `reference` fail with `message` until `heal_pulls`; a node that has it keeps it."""
        with self._lock:
            self._failing[reference] = message

    def heal_pulls(self, reference: str) -> None:
        """Let `reference` be pulled again."""
        with self._lock:
            self._failing.pop(reference, None)

    def needs_pull(self, reference: str, policy: str) -> bool:
        """Whether a container with this pull policy makes the node ask the registry."""
        with self._lock:
            return policy == "Always" or (policy != "Never" and reference not in self._present)

    def take(self, reference: str, policy: str) -> Image:
        """The image for a container that is about to be made, pulled if its policy says so. Raises `PullFailed`."""
        with self._lock:
            if policy == "Never" and reference not in self._present:
                raise PullFailed("ErrImageNeverPull", f'Container image "{reference}" is not present')
            if policy != "Always" and reference in self._present:
                return self._present[reference]
            if reference in self._failing:
                raise PullFailed("ErrImagePull", f'failed to pull image "{reference}": {self._failing[reference]}')
            if reference not in self._known:
                raise PullFailed("ErrImagePull", f'failed to pull image "{reference}": not found')
            self._present[reference] = self._known[reference]
            return self._known[reference]


def image_id(reference: str) -> str:
    """The reference with a digest, as a container's status shows it; the digest is made from the reference."""
    if "@" in reference:
        return reference
    name, slash, last = reference.rpartition("/")
    repository = name + slash + last.partition(":")[0]
    return f"{repository}@sha256:{hashlib.sha256(reference.encode()).hexdigest()}"
