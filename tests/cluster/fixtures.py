"""Fixtures of the tests on a real control plane: it is started once for each test process."""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING

import pytest
from tests.cluster.control_plane import ControlPlane

from stackhold.testing.kube_node import Api, ApiError, KubeNode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COUNT = itertools.count(1)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane; an error where it is not built, for it belongs to `make test-cluster`."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane")) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Api:
    """Requests to its API server, as the administrator."""
    return control_plane.api()


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """An empty namespace with its service account; deleted at the end, without waiting for it."""
    name = f"test-{next(_COUNT)}"
    api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        wait_until_there(api, f"/api/v1/namespaces/{name}/{path}")
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def node(control_plane: ControlPlane, tmp_path: Path) -> Iterator[KubeNode]:
    """A test node of the test's own, the only one that runs; skipped where the tests do not run as root."""
    if os.geteuid() != 0:
        pytest.skip("a test node needs root: it runs containers in namespaces of their own")
    name = f"node-{next(_COUNT)}"
    with KubeNode(control_plane.access(), tmp_path / name, name=name) as node:
        yield node
    control_plane.api().delete(f"/api/v1/nodes/{name}")


def wait_until_there(api: Api, path: str, *, seconds: float = 60.0) -> None:
    """Wait until an object exists."""
    give_up = time.monotonic() + seconds
    while True:
        try:
            api.get(path)
        except ApiError as error:
            if error.status != 404 or time.monotonic() > give_up:
                raise
        else:
            return
        time.sleep(0.05)
