"""Which module a `tf` command is about, and where its stack lies; what can be refused before anything is locked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackhold.cli.options import invocation
from stackhold.cli.settings import DEFAULT_STORE, Setting
from stackhold.cli.store_address import DirectoryAddress, parse_store
from stackhold.cli.wiring import Wiring
from stackhold.engines.terraform.environment import for_laptop
from stackhold.engines.terraform.module import inspect_module
from stackhold.engines.terraform.places import workspace_of
from stackhold.engines.terraform.steps import Operation
from stackhold.errors import InputError
from stackhold.model.ids import stack_name, workspace_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackhold.cli.options import Invocation
    from stackhold.cli.surroundings import Surroundings
    from stackhold.engines.terraform.module import ModuleFacts
    from stackhold.runs.layout import Keys

_ASKING = (Operation.APPLY, Operation.DESTROY, Operation.RESTORE)


@dataclass(frozen=True, slots=True)
class Target:
    """A module, with where its stack lies."""

    call: Invocation
    wiring: Wiring
    module: ModuleFacts
    env: Mapping[str, str]
    keys: Keys
    dropped: Sequence[str]
    runtime: tuple[str, ...] = ()
    """The runtime's command as it was named, good for any folder; empty when none was."""


def find_target(surroundings: Surroundings, options: Mapping[str, Any]) -> Target:
    """Look at the module; raises `InputError` before anything is locked.

    Where no store is named, it is in the module's folder, from wherever the command is called.
    """
    call = invocation(surroundings, dict(options))
    module = inspect_module(surroundings.cwd / str(options["directory"]))
    env, dropped = for_laptop(surroundings.environ)
    if module.backend is None:
        from stackhold.engines.terraform.own_backend import check_workspace

        check_workspace(module.directory, env)
    workspace = workspace_name(workspace_of(module.directory, env))
    named = options.get("stack")
    stack = stack_name(
        str(named or module.directory.name),
        hint="" if named else "The name comes from the module's folder. Give another with --stack NAME.",
    )
    settings = replace(call.settings, workspace=workspace)
    if not settings.store.source:
        store = parse_store(DEFAULT_STORE, base=module.directory, cwd=surroundings.cwd)
        settings = replace(settings, store=Setting(store))
        call = replace(call, settings=settings)
    wiring = Wiring(settings)
    runtime = _anywhere(tuple(options["command"]), surroundings.cwd)
    return Target(call, wiring, module, env, wiring.keys(stack, workspace), dropped, runtime)


def _anywhere(command: tuple[str, ...], cwd: Path) -> tuple[str, ...]:
    """A command whose program is named by a folder, from wherever it is called."""
    if not command or "/" not in command[0]:
        return command
    return (str(cwd / command[0]), *command[1:])


def check_own_state(target: Target, options: Mapping[str, Any]) -> None:
    """What can be seen of a state in the module's folder before anything is locked."""
    if target.module.backend is None:
        from stackhold.engines.terraform.own_backend import check_local_state

        check_local_state(target.module.directory, adopts_local_state=bool(options.get("adopt_local_state")))


def check_restore(target: Target, options: Mapping[str, Any]) -> None:
    """What is to be restored is in the store, or in a file."""
    if options.get("sequence") and options.get("backup"):
        raise InputError("--version and --from name two states; give one of them")
    backend = target.module.backend
    if backend is not None and not options.get("backup"):
        raise InputError(
            f"{backend.where} declares the backend {backend.kind}, so the versions of the state are not in the store",
            hint="Restore a copy of it with --from FILE.",
        )


def check_unlock(target: Target) -> None:
    """Only a backend has a state lock of its own that outlives a run."""
    if target.module.backend is None:
        raise InputError(
            f"{target.module.directory} declares no backend, so no state lock of it outlives a run",
            hint="Leave LOCK_ID out to clear the lock of a run of stackhold that is gone.",
        )


def warnings_of(target: Target) -> Iterator[str]:
    """What is to be said before a run: what the runtime does not get, and whom the lock does not reach."""
    if target.dropped:
        yield f"left out of the runtime's environment: {', '.join(target.dropped)}"
    backend, store = target.module.backend, target.call.settings.store.value
    if backend is not None and backend.kind != "local" and isinstance(store, DirectoryAddress):
        yield (
            f"the state is in the backend {backend.kind} ({backend.where}), and the lock of this run is only in "
            f"{store.url}: it does not keep out runs with another store. Share it with --state s3://BUCKET"
        )


def check_can_ask(operation: Operation, call: Invocation, keys: Keys) -> None:
    """An operation that asks needs somebody who answers."""
    if operation in _ASKING and not call.yes and not call.surroundings.can_ask:
        raise InputError(
            f"nobody can be asked here whether to {operation.value} {keys.stack} ({keys.region}); nothing was changed",
            hint="Say it with --yes.",
        )
