"""The control plane by itself: it serves, it admits by RBAC, and each part may go and come back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cluster import parts
from tests.cluster.cost import control_plane_lines
from tests.cluster.waiting import wait_for

from stackhold.testing.kube_node import Access, Api, ApiError, ApiUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.control_plane import ControlPlane

pytestmark = pytest.mark.cluster


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane, all of it running again afterwards."""
    yield control_plane
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        if name not in control_plane.resident_bytes():
            control_plane.start(name)


def test_it_serves_the_version_that_is_pinned_and_tells_what_it_costs(control_plane: ControlPlane) -> None:
    version = json.loads(control_plane.kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == f"v{parts.API_SERVER.version}"
    assert version["clientVersion"]["gitVersion"] == f"v{parts.KUBECTL.version}"
    assert len(control_plane_lines(control_plane)) == len(parts.PARTS)


def test_a_service_account_may_only_do_what_rbac_lets_it(control_plane: ControlPlane, api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.create(path, request)["status"]["token"]
    own = Api(Access(control_plane.url, control_plane.ca_file, token))
    with pytest.raises(ApiError) as caught:
        own.get(f"/api/v1/namespaces/{namespace}/secrets")
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")


def test_objects_outlive_the_api_server(plane: ControlPlane, api: Api, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}
    api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)
    plane.kill("kube-apiserver")
    with pytest.raises(ApiUnreachable):
        api.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")
    plane.start("kube-apiserver")
    assert api.get(f"/api/v1/namespaces/{namespace}/configmaps/kept")["data"] == {"a": "b"}


def test_garbage_is_collected_by_the_controller_manager(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    meta = {"name": "owned", "ownerReferences": [reference]}
    api.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    api.delete(f"{path}/owner", {"propagationPolicy": "Background"})

    def is_gone() -> bool:
        return "owned" not in [one["metadata"]["name"] for one in api.get(path)["items"]]

    assert wait_for(lambda: is_gone() or None, "the collection of what nobody owns any more")
