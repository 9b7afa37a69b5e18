"""The store as the backend of a module that declares none: server, override file, and a local state taken in.

The runtime's own `http` backend talks to a server inside this process. Its settings go by environment, so that
nothing of it stays in the module's data folder; the override file that names the backend is gone when the run is.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.engine import Place
from stackhold.engines.terraform.module import backend_override
from stackhold.engines.terraform.places import DEFAULT_WORKSPACE, workspace_of
from stackhold.engines.terraform.state_keeper import StateKeeper
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from stackhold.engines.terraform.module import ModuleFacts
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run
    from stackhold.ports.state_versions import StateVersions

LOCAL_STATE: Final = "terraform.tfstate"
BACKUP: Final = "terraform.tfstate.before-stackhold"


@contextmanager
def own_backend(
    module: ModuleFacts,
    env: Mapping[str, str],
    versions: StateVersions,
    record: StateRecord | None,
    run: Run,
    *,
    scratch: Path,
    adopts_local_state: bool = False,
) -> Iterator[Place]:
    """A place where the module's state is in the store, for as long as this is entered.

    `scratch` is where an overlay of a module goes that cannot be written.
    """
    check_workspace(module.directory, env)
    from stackhold.engines.terraform.backend import BackendServer  # brings an HTTP server along

    keeper = StateKeeper(versions, record, run)
    _take_in_local_state(module.directory, keeper, adopts_local_state=adopts_local_state)
    with (
        BackendServer(keeper, run.clock) as server,
        backend_override(module.directory, run.identity.run_id, scratch=scratch) as directory,
    ):
        yield Place(
            directory,
            server.over(env),
            module.directory,
            forget_lock=server.forget_lock,
            refusals=lambda: server.refusals,
        )


def check_workspace(directory: Path, env: Mapping[str, str]) -> None:
    """Raises `InputError` for another workspace than the default one: the store has no others."""
    workspace = workspace_of(directory, env)
    if workspace != DEFAULT_WORKSPACE:
        raise InputError(
            f"the workspace {workspace} is selected, and a module that declares no backend has only the default one: "
            "its state is in stackhold's store, one per stack",
            hint="Select the default workspace and tell stacks apart with --stack NAME, or declare a backend.",
        )


def check_local_state(directory: Path, *, adopts_local_state: bool) -> None:
    """A state in the module's folder is from before: raises `InputError` unless it is to be taken in."""
    file = directory / LOCAL_STATE
    if file.exists() and not adopts_local_state:
        raise InputError(
            f"{file} holds the state of an earlier run without stackhold",
            hint="Take it into the store with --adopt-local-state (it is kept as a backup), or move it away.",
        )


def _take_in_local_state(directory: Path, keeper: StateKeeper, *, adopts_local_state: bool) -> None:
    check_local_state(directory, adopts_local_state=adopts_local_state)
    file = directory / LOCAL_STATE
    if not file.exists():
        return
    if keeper.current() is not None:
        raise InputError(
            f"{file} cannot be taken in: the store has a state of this stack already",
            hint="Choose another --stack NAME, or move the file away.",
        )
    keeper.put(file.read_bytes())
    file.rename(directory / BACKUP)
