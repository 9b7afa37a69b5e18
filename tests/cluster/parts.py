"""What `make test-cluster` builds from Go modules: the control plane of Kubernetes, its command line, and etcd.

One module pins the three binaries of Kubernetes, another pins etcd, so that neither chooses the other's dependencies.
If KUBEBUILDER_ASSETS names a folder, the binaries in it are used and nothing is built.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.gobuild.part import NotBuilt, Part, Shelf

_HERE = Path(__file__).parent
_KUBERNETES = "1.36.3"
_STAMP = "k8s.io/component-base/version"
_LDFLAGS = " ".join(
    [
        "-s -w",
        f"-X {_STAMP}.gitVersion=v{_KUBERNETES}",
        f"-X {_STAMP}.gitMajor={_KUBERNETES.split('.')[0]}",
        f"-X {_STAMP}.gitMinor={_KUBERNETES.split('.')[1]}",
        f"-X {_STAMP}.gitTreeState=clean",
    ]
)

SHELF = Shelf(name="cluster", target="test-cluster")


def _kubernetes(name: str) -> Part:
    return Part(
        name=name,
        version=_KUBERNETES,
        shelf=SHELF,
        module=_HERE / "kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        file=name,
        ldflags=_LDFLAGS,
    )


ETCD = Part(
    name="etcd",
    version="3.6.16",
    shelf=SHELF,
    module=_HERE / "etcd",
    package="go.etcd.io/etcd/server/v3",
    file="etcd",
)
API_SERVER = _kubernetes("kube-apiserver")
CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBECTL = _kubernetes("kubectl")
PARTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, KUBECTL)


def assets() -> Path | None:
    """The folder of ready binaries that the user named, if they did."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(named) if named else None


def binary(part: Part) -> Path:
    """Where the part's binary is: in the named folder, else in the cache. Raises `NotBuilt`."""
    folder = assets()
    if folder is None:
        return part.built()
    path = folder / part.file
    if not os.access(path, os.X_OK):
        raise NotBuilt(f"KUBEBUILDER_ASSETS is {folder}, which has no {part.file}")
    return path
