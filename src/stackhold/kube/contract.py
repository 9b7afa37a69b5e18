"""What the module contract keeps for itself: the inputs of each role, and the names that no variable may have.

Admission asks for what an object says itself; the controller asks for what ConfigMaps and Secrets say.
"""

from __future__ import annotations

import re

from stackhold.kube.names import Kind

CONTRACT = "v1alpha1"
OUR_PREFIX = "captf_"
META_ARGUMENTS = frozenset({"source", "version", "providers", "count", "for_each", "depends_on", "lifecycle", "locals"})
INPUTS: dict[Kind, frozenset[str]] = {
    Kind.CLUSTER: frozenset(
        {"control_plane_endpoint", "kubernetes_version", "control_plane_initialized", "cluster_network"}
    ),
    Kind.MACHINE: frozenset(
        {
            "machine_name",
            "bootstrap_data",
            "bootstrap_format",
            "failure_domain",
            "kubernetes_version",
            "control_plane",
        }
    ),
    Kind.MACHINE_POOL: frozenset(
        {
            "machinepool_name",
            "replicas",
            "bootstrap_data",
            "bootstrap_format",
            "failure_domains",
            "cluster_failure_domains",
            "kubernetes_version",
            "node_labels",
            "autoscaling",
        }
    ),
}
"""The inputs of a role besides those that begin with `captf_`."""
MOST_VARIABLES = 256

_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")


def variable_refusal(name: str, kind: Kind) -> str | None:
    """Why a variable of a module of this kind may not be called so; None when it may."""
    if not _IDENTIFIER.fullmatch(name):
        return "is no Terraform identifier: a letter or underscore, then letters, digits, underscores and hyphens"
    if name.startswith(OUR_PREFIX):
        return f"begins with {OUR_PREFIX}, which is reserved"
    if name in INPUTS[kind]:
        return f"is an input that {kind.value} modules are given"
    if name in META_ARGUMENTS:
        return "is an argument that every Terraform module block has"
    return None
