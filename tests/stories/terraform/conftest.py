"""Fixtures of the Terraform stories: a scene per runtime, with a module and a store of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtimes import catalogue, parts
from tests.runtimes.fixtures import mirrors, probe, probe_session
from tests.stories.terraform.tf_scene import TfScene, path_without_runtimes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.runtimes.probe_server import ProbeServer

    from stackhold.testing import emulators

__all__ = ["mirrors", "probe", "probe_session"]

RUNTIMES = [
    "embedded",
    pytest.param("terraform", marks=pytest.mark.runtimes),
    pytest.param("opentofu", marks=pytest.mark.runtimes),
]


@pytest.fixture(params=RUNTIMES)
def any_runtime(request: pytest.FixtureRequest) -> catalogue.Runtime:
    """Each runtime in turn; those that `make test` can do without need `make test-runtimes`."""
    if request.param == "opentofu":
        parts.TOFU.built()
    found = catalogue.find(request.param)
    if found is None:
        pytest.skip(f"this machine has no runtime {request.param!r}")
    return found


def scene_of(runtime: catalogue.Runtime, folder: Path, environment: dict[str, str]) -> TfScene:
    """A scene on this runtime, with a directory store."""
    names = () if runtime.name == "embedded" else tuple(f"--bin={word}" for word in runtime.command)
    return TfScene(
        runtime,
        folder,
        f"file:{folder / 'store'}",
        {**environment, "PATH": path_without_runtimes(), "XDG_CACHE_HOME": str(folder / "cache")},
        bin=names,
    )


@pytest.fixture
def tf(any_runtime: catalogue.Runtime, tmp_path: Path) -> Iterator[TfScene]:
    """A scene without any provider but the runtime's own."""
    made = scene_of(any_runtime, tmp_path, catalogue.environment(catalogue.bare_cli_config(tmp_path)))
    yield made
    made.close()


@pytest.fixture
def probed(any_runtime: catalogue.Runtime, tmp_path: Path, mirrors: Path, probe: ProbeServer) -> Iterator[TfScene]:
    """A scene whose things live in `probe`."""
    made = scene_of(
        any_runtime, tmp_path, catalogue.environment(catalogue.cli_config(tmp_path), PROBE_ENDPOINT=probe.url)
    )
    yield made
    made.close()


@pytest.fixture
def bucket(ministack: emulators.Emulator) -> emulators.Emulator:
    """ministack with the buckets `store` and `states`."""
    import boto3

    s3 = boto3.client(
        "s3",
        endpoint_url=ministack.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    for name in ("store", "states"):
        s3.create_bucket(Bucket=name)
    s3.close()
    return ministack
