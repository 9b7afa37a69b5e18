"""Fixtures of the faults of Terraform runs: plots on each runtime and each backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtimes.fixtures import mirrors, runtime
from tests.terraform_faults.yard import Plot, Yard, yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runtimes.catalogue import Runtime

    from stackhold.testing.emulators import Emulator

__all__ = ["mirrors", "runtime"]

FLAGS = ("--lock-timeout", "30s", "--lock-ttl", "8s", "--lock-renew", "1s", "--grace", "60s")


@pytest.fixture
def ground(runtime: Runtime, mirrors: Path, ministack: Emulator) -> Iterator[Yard]:
    """A yard with both backends, on each runtime in turn."""
    with yard(runtime, "s3", emulator=ministack) as made:
        yield made


@pytest.fixture
def own(runtime: Runtime, mirrors: Path) -> Iterator[Plot]:
    """A plot with the store as the backend, on each runtime in turn."""
    with yard(runtime, "own") as made, made.plot(*FLAGS) as plot:
        yield plot


@pytest.fixture
def in_bucket(ground: Yard) -> Iterator[Plot]:
    """A plot with its state in a bucket, on each runtime in turn."""
    with ground.plot(*FLAGS) as plot:
        yield plot


@pytest.fixture(params=["own", "s3"])
def plot(request: pytest.FixtureRequest, ground: Yard) -> Iterator[Plot]:
    """A plot on either backend, on each runtime in turn."""
    with ground.plot(*FLAGS, backend=request.param) as made:
        yield made
