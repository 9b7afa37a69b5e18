"""Where a module keeps what the runtime needs: its data folder, the selected workspace, the backend that was set up."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_WORKSPACE: Final = "default"
_LARGEST: Final = 1024 * 1024
_SECRET: Final = frozenset(
    {"access_key", "secret_key", "token", "password", "sas_token", "client_secret", "credentials", "conn_str", "secret"}
)


def data_dir(directory: Path, env: Mapping[str, str]) -> Path:
    """The folder in which the runtime keeps its own files for this module."""
    named = env.get("TF_DATA_DIR") or ".terraform"
    return directory / Path(named).expanduser()


def workspace_of(directory: Path, env: Mapping[str, str]) -> str:
    """The workspace that is selected: by the environment, else by the module's data folder."""
    if env.get("TF_WORKSPACE"):
        return env["TF_WORKSPACE"]
    file = data_dir(directory, env) / "environment"
    try:
        return _text(file).strip() or DEFAULT_WORKSPACE
    except (FileNotFoundError, NotADirectoryError):
        return DEFAULT_WORKSPACE
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}, which names the workspace, cannot be read: {error}") from error


def module_name(directory: Path) -> str:
    """Which module this is: its path in its repository, else in its machine.

    Two checkouts of one repository are one module; two folders of one name are not.
    """
    whole = directory.resolve()
    for folder in (whole, *whole.parents):
        if (folder / ".git").exists():
            return str(whole.relative_to(folder)) if whole != folder else folder.name
    return str(whole)


def backend_digest(directory: Path, env: Mapping[str, str]) -> str:
    """Tells the place of one state from that of another, without secrets; empty when `init` has set up none."""
    try:
        document: Any = json.loads(_text(data_dir(directory, env) / "terraform.tfstate"))
        backend = document["backend"]
        config = {name: value for name, value in (backend["config"] or {}).items() if name not in _SECRET}
        place = [backend["type"], config, workspace_of(directory, env), _address(backend["type"], env)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return hashlib.sha256(json.dumps(place, sort_keys=True).encode()).hexdigest()


def _address(kind: str, env: Mapping[str, str]) -> str:
    """What the environment adds to where a state is."""
    return env.get("TF_HTTP_ADDRESS", "") if kind == "http" else ""


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_LARGEST).decode()
