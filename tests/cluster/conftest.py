"""Fixtures of the tests on a real control plane."""

from __future__ import annotations

from tests.cluster.fixtures import api, control_plane, namespace, node

__all__ = ["api", "control_plane", "namespace", "node"]
