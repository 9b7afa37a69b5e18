"""The kinds that the cluster's API server keeps for us, as types, and the definitions generated from them.

The types say what an object may look like; `definitions` turns them into CustomResourceDefinitions. There are no
defaults in them: what is unset stays unset in the stored object, and is resolved at every reconcile. Names here are
those of the API, so that manifests, dashboards and runbooks keep working.
"""

from stackhold.kube.api.definitions import definition, definitions
from stackhold.kube.api.manifest import manifest

__all__ = ["definition", "definitions", "manifest"]
