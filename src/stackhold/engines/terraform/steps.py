"""Which steps an operation takes and how each is asked for: operation to arguments. Pure.

The arguments are those after the runtime's own command. Only steps that take or wait for the state lock are given
`-lock-timeout`, with its unit; the runtimes reject the flag elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Operation(StrEnum):
    """What is done with a root module."""

    APPLY = "apply"
    PLAN = "plan"
    DESTROY = "destroy"
    REFRESH = "refresh"
    DRIFT = "drift"
    RESTORE = "restore"
    FORCE_UNLOCK = "force-unlock"


class Approval(StrEnum):
    """Whether what is planned is looked at before it is done."""

    NONE = "none"
    """Plan and apply are one step of the runtime."""
    PLAN = "plan"
    """The plan is saved, judged, and that very file is applied."""


class When(StrEnum):
    """What must have been before for a step to be taken."""

    ALWAYS = "always"
    CHANGES = "changes"
    """The plan before it found something to do (exit 2)."""
    APPROVED = "approved"
    """The plan before it found something to do, and that was approved."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the runtime."""

    name: str
    """As it is told and recorded: `init`, `plan`, `state push`, …"""
    args: tuple[str, ...]
    has_stream: bool = False
    """Whether standard output is the runtime's stream of JSON events."""
    takes_lock: bool = False
    """Whether it takes the state lock and waits for it."""
    changes: bool = False
    """Whether it may change infrastructure or the state."""
    finds_changes: bool = False
    """Whether exit 2 is good and means that there is something to do."""
    when: When = When.ALWAYS


@dataclass(frozen=True, slots=True)
class Script:
    """What the steps of one operation need to be told."""

    operation: Operation
    lock_timeout_s: int
    plan_file: str = ""
    """Where a plan is saved, in full."""
    approval: Approval = Approval.NONE
    expects_plan: bool = False
    """Whether a certain plan was approved, so that finding nothing to do is another one."""
    backend_config: tuple[str, ...] = ()
    """For `init`, each `key=value` or a file."""
    var_files: tuple[str, ...] = ()
    """Files of input variables, beside those that the runtime finds by itself."""
    targets: tuple[str, ...] = ()
    """Addresses to which planning is limited."""
    replaces: tuple[str, ...] = ()
    """Addresses that are planned to be replaced."""
    backup: str = ""
    """For a restore: the state to push, in full."""
    recorded: int = 0
    """For a restore: how many resources the backup records."""
    is_renumbered: bool = False
    """For a restore: whether the backup gets a serial above the state's before it is pushed."""
    unlock: str = ""
    """The id of a stale lock that is cleared right after `init`."""


_PLAIN: Final = ("-no-color", "-input=false")
_REFRESH_ONLY: Final = "-refresh-only"


def version_step() -> Step:
    """Asked first, for information only."""
    return Step("version", ("version", "-json"))


def init_step(script: Script) -> Step:
    """Makes the module ready. It succeeds while the lock is held."""
    settings = tuple(f"-backend-config={each}" for each in script.backend_config)
    return Step("init", ("init", *_PLAIN, _lock_timeout(script), *settings), takes_lock=True)


def force_unlock_step(lock_id: str) -> Step:
    """Clears the state lock that has this id."""
    return Step("force-unlock", ("force-unlock", "-force", lock_id))


def state_pull_step() -> Step:
    """Reads the state without its lock."""
    return Step("state pull", ("state", "pull"))


def show_plan_step(script: Script) -> Step:
    """Prints a saved plan as people read it."""
    return Step("show plan", ("show", "-no-color", script.plan_file))


def push_step(script: Script, file: str, *, force: bool) -> Step:
    """Makes a file the state."""
    flags = ("-force",) if force else ()
    return Step("state push", ("state", "push", *flags, _lock_timeout(script), file), takes_lock=True, changes=True)


def steps(script: Script) -> tuple[Step, ...]:
    """All steps of an operation in order, from `init` on."""
    unlock = (force_unlock_step(script.unlock),) if script.unlock else ()
    return (init_step(script), *unlock, *_STEPS[script.operation](script))


def without_waiting(step: Step) -> Step:
    """The same step, failing at once on a held lock."""
    args = tuple("-lock-timeout=0s" if arg.startswith("-lock-timeout=") else arg for arg in step.args)
    return Step(
        step.name,
        args,
        has_stream=step.has_stream,
        takes_lock=step.takes_lock,
        changes=step.changes,
        finds_changes=step.finds_changes,
        when=step.when,
    )


def _apply(script: Script) -> tuple[Step, ...]:
    if script.approval is Approval.PLAN:
        return (_validate(), *_plan(script), _apply_plan(script))
    return _validate(), _change("apply", script)


def _plan_only(script: Script) -> tuple[Step, ...]:
    return (_validate(), *_plan(script))


def _destroy(script: Script) -> tuple[Step, ...]:
    if script.approval is Approval.PLAN:
        return (*_plan(script, "-destroy"), _apply_plan(script))
    return (_change("destroy", script),)


def _refresh(script: Script) -> tuple[Step, ...]:
    return (_change("apply", script, _REFRESH_ONLY, name="refresh"),)


def _drift(script: Script) -> tuple[Step, ...]:
    return (*_refresh(script), *_plan(script, "-refresh=false"))


def _restore(script: Script) -> tuple[Step, ...]:
    return push_step(script, script.backup, force=True), Step("state list", ("state", "list"))


def _force_unlock(_: Script) -> tuple[Step, ...]:
    return ()


_STEPS: Final = {
    Operation.APPLY: _apply,
    Operation.PLAN: _plan_only,
    Operation.DESTROY: _destroy,
    Operation.REFRESH: _refresh,
    Operation.DRIFT: _drift,
    Operation.RESTORE: _restore,
    Operation.FORCE_UNLOCK: _force_unlock,
}


def _validate() -> Step:
    return Step("validate", ("validate", "-json"))


def _plan(script: Script, *flags: str) -> tuple[Step, ...]:
    saved = f"-out={script.plan_file}"
    return (
        Step(
            "plan",
            (
                "plan",
                "-json",
                "-input=false",
                "-detailed-exitcode",
                *flags,
                *_chosen(script),
                _lock_timeout(script),
                saved,
            ),
            has_stream=True,
            takes_lock=True,
            finds_changes=True,
        ),
        Step("show", ("show", "-json", script.plan_file), when=When.CHANGES),
    )


def _apply_plan(script: Script) -> Step:
    return Step(
        "apply",
        ("apply", "-json", "-input=false", _lock_timeout(script), script.plan_file),
        has_stream=True,
        takes_lock=True,
        changes=True,
        when=When.APPROVED,
    )


def _change(command: str, script: Script, *flags: str, name: str = "") -> Step:
    return Step(
        name or command,
        (command, "-json", "-input=false", *flags, "-auto-approve", *_chosen(script), _lock_timeout(script)),
        has_stream=True,
        takes_lock=True,
        changes=True,
    )


def _chosen(script: Script) -> tuple[str, ...]:
    """What limits or feeds a plan; a saved plan has all of it in itself."""
    is_refresh = script.operation in (Operation.REFRESH, Operation.DRIFT)
    replaces = () if is_refresh else tuple(f"-replace={address}" for address in script.replaces)
    targets = tuple(f"-target={address}" for address in script.targets)
    return (*(f"-var-file={file}" for file in script.var_files), *targets, *replaces)


def _lock_timeout(script: Script) -> str:
    return f"-lock-timeout={script.lock_timeout_s}s"
