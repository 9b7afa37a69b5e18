"""A test node for a real Kubernetes control plane: it plays kubelet, and runs containers as processes of this machine.

What it does, it does as a kubelet: namespaces, volumes, environment, identities, deletion with grace, statuses,
termination messages. What it does not do it refuses in the pod's status: restarts, probes, hooks, other volumes. It
keeps no limits of memory, CPU or disk, has no network of its own for a pod, and serves no logs to the API server.
"""

from __future__ import annotations

from stackhold.testing.kube_node.api import Access, Api, ApiError, ApiUnreachable
from stackhold.testing.kube_node.container_run import Pace
from stackhold.testing.kube_node.images import Image, Images
from stackhold.testing.kube_node.node import KubeNode, NotRoot

__all__ = ["Access", "Api", "ApiError", "ApiUnreachable", "Image", "Images", "KubeNode", "NotRoot", "Pace"]
