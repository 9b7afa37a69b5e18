"""Puts our kinds into the API server of the tests, and says where their objects are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stackhold.kube.api import definitions
from stackhold.kube.names import API_VERSION, GROUP, VERSION
from stackhold.testing.kube_node import ApiError

if TYPE_CHECKING:
    from stackhold.testing.kube_node import Api

Document = dict[str, Any]
_ALL = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RESOURCES = {each["spec"]["names"]["kind"]: each["spec"] for each in definitions()}


def install(api: Api, *, seconds: float = 60.0) -> None:
    """Create or leave the definitions, and wait until their kinds are served."""
    for each in definitions():
        try:
            api.create(_ALL, each)
        except ApiError as error:
            if error.status != 409:
                raise
    give_up = time.monotonic() + seconds
    for kind in _RESOURCES:
        while not _is_served(api, kind):
            assert time.monotonic() < give_up, f"{kind} is not served"
            time.sleep(0.05)


def path_of(kind: str, namespace: str, name: str = "") -> str:
    """Where objects of a kind are, or one of them."""
    spec = _RESOURCES[kind]
    where = f"/namespaces/{namespace}" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{GROUP}/{VERSION}{where}/{spec['names']['plural']}" + (f"/{name}" if name else "")


def thing(kind: str, name: str, spec: Document, **metadata: Any) -> Document:
    """An object of a kind."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def _is_served(api: Api, kind: str) -> bool:
    try:
        api.get(path_of(kind, "default"), {"limit": "1"})
    except ApiError:
        return False
    return True
