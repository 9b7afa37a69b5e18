"""Which environment the runtime gets: from ours to its. Pure.

On a laptop and in CI a root module runs as it is, so nearly all stays; dropped is what would change what a step does
behind our back (arguments from the environment), what would spoil its streams (its logs), or what makes it crash.
In a Job nothing of the runtime's own is taken from outside. The names that are dropped are given back to be logged,
their values never are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OURS: Final = {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
"""No advice for people at a terminal, no questions, no look for newer versions."""
_CONFIG: Final = "TF_CLI_CONFIG_FILE"
_OLD_CONFIG: Final = "TERRAFORM_CONFIG"
_DROPPED: Final = frozenset({"TF_REATTACH_PROVIDERS", "TF_STATE_PERSIST_INTERVAL"})
_DROPPED_PREFIXES: Final = ("TF_CLI_ARGS", "TF_LOG")
_JOB_PREFIXES: Final = ("TF_", "KUBE_")
_JOB_KEPT: Final = frozenset({"KUBE_NAMESPACE", *_OURS})
_SECRET_PREFIXES: Final = ("TF_VAR_", "TF_TOKEN_")
_SECRET_NAMES: Final = frozenset(
    {
        "TF_HTTP_PASSWORD",
        "TF_ENCRYPTION",
        "KUBE_TOKEN",
        "KUBE_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "ARM_CLIENT_SECRET",
        "ARM_ACCESS_KEY",
        "ARM_SAS_TOKEN",
        "GOOGLE_CREDENTIALS",
        "GOOGLE_ENCRYPTION_KEY",
        "PG_CONN_STR",
        "CONSUL_HTTP_TOKEN",
    }
)
_SHORTEST_SECRET: Final = 4
"""Shorter values are in every text by chance."""


def for_laptop(
    environ: Mapping[str, str], *, is_file: Callable[[str], bool] | None = None, empty_config: str = ""
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment for a module run as it is, and the names that were dropped, sorted.

    A configuration file that is named but not there makes OpenTofu print text into its stream; with `is_file` and an
    existing `empty_config`, that one is named in its place.
    """
    dropped = tuple(sorted(name for name in environ if name in _DROPPED or name.startswith(_DROPPED_PREFIXES)))
    env = {name: value for name, value in environ.items() if name not in dropped} | _OURS
    named = env.get(_CONFIG) or env.get(_OLD_CONFIG)
    if named and empty_config and is_file is not None and not is_file(named):
        env[_CONFIG] = empty_config
    return env, dropped


def for_job(
    environ: Mapping[str, str], *, workdir: str, config_file: str = "", extra: Mapping[str, str] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment in a Kubernetes Job, and the names that were dropped, sorted.

    `config_file` is an existing file (`mirror_config` makes its text, or it is empty); `extra` is what the runner
    itself sets, a backend's address for one.
    """
    dropped = tuple(sorted(name for name in environ if name.startswith(_JOB_PREFIXES) and name not in _JOB_KEPT))
    env = {name: value for name, value in environ.items() if name not in dropped} | _OURS
    env |= {"HOME": workdir, "TF_DATA_DIR": f"{workdir.rstrip('/')}/.terraform"}
    if config_file:
        env[_CONFIG] = config_file
    return env | dict(extra or {}), dropped


def mirror_config(folder: str) -> str:
    """The runtime's configuration that makes a mirror on disk the only source of providers."""
    return f"provider_installation {{\n  filesystem_mirror {{\n    path = {json.dumps(folder)}\n  }}\n}}\n"


def secret_values(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be seen in a text that came out of the runtime, the longest first."""
    found = {
        value
        for name, value in environ.items()
        if (name in _SECRET_NAMES or name.startswith(_SECRET_PREFIXES)) and len(value) >= _SHORTEST_SECRET
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))
