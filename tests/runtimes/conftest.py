"""Fixtures of the tests on the real runtimes."""

from __future__ import annotations

from tests.runtimes.fixtures import mirrors, probe, probe_session, runtime, runtime_env, tofu

__all__ = ["mirrors", "probe", "probe_session", "runtime", "runtime_env", "tofu"]
