"""Fixtures of the tests on the real runtimes."""

from __future__ import annotations

from tests.runtimes.fixtures import (
    bare_env,
    chain,
    embedded,
    mirrors,
    module,
    probe,
    probe_session,
    runtime,
    runtime_env,
    thing,
    tofu,
)

__all__ = [
    "bare_env",
    "chain",
    "embedded",
    "mirrors",
    "module",
    "probe",
    "probe_session",
    "runtime",
    "runtime_env",
    "thing",
    "tofu",
]
