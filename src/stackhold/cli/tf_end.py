"""How a Terraform operation ended, beside what every run says: whether anything was changed, and the next step."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from stackhold.engines.terraform.steps import Operation
from stackhold.model.run import Outcome

if TYPE_CHECKING:
    from stackhold.cli.tf_target import Target
    from stackhold.engines.terraform.lock_info import LockInfo
    from stackhold.engines.terraform.report import RunnerReport
    from stackhold.runs.report import RunReport

_CHANGING = frozenset({"apply", "destroy", "refresh", "state push", "force-unlock"})
_DRIFTED = "what there is has changed behind the state's back"


def told(report: RunReport, done: RunnerReport | None, *, operation: Operation, target: Target) -> RunReport:
    """The run's report, completed by what only the runner knows."""
    if done is None:
        return report
    has_begun = any(step.name in _CHANGING for step in done.steps)
    error = report.error
    if operation is Operation.DRIFT and done.failure is None and done.drifted:
        error = error or _DRIFTED
    hint = report.hint or _next_step(report, done, operation=operation, target=target, has_begun=has_begun)
    return replace(report, changed=has_begun, error=error, hint=hint)


def _next_step(report: RunReport, done: RunnerReport, *, operation: Operation, target: Target, has_begun: bool) -> str:
    """The safe next step, where the run knows none; empty when what every run says will do."""
    failure = done.failure
    if failure is None:
        is_drift = operation is Operation.DRIFT and bool(done.drifted)
        return f"Look at what an apply would do: {_command('plan', target)}" if is_drift else ""
    if failure.lock is not None:
        return _about_lock(failure.lock, target)
    if failure.hint:
        return failure.hint
    if report.outcome is Outcome.FAILED and not has_begun:
        return f"Nothing was changed. Mend the cause and run the same tf {operation.value} again."
    return ""


def _about_lock(lock: LockInfo, target: Target) -> str:
    return (
        "It is not of a run of stackhold that is known to have died, so it is left alone. Wait for it, or, only if its "
        f"holder is certainly gone:\n  {_command('force-unlock', target, lock.id)}"
    )


def _command(verb: str, target: Target, *more: str) -> str:
    """A command line about this module, for any folder: with all that decides which runtime and which state are meant.

    What `init` was told of the backend is in the module's data folder by now.
    """
    settings = target.call.settings
    parts = ["stackhold", "tf", verb, str(target.module.directory), *more]
    if target.keys.stack != target.module.directory.name:
        parts += ["--stack", target.keys.stack]
    parts += [word for part in target.runtime for word in ("--bin", part)]
    parts += ["--state", settings.store.value.url_anywhere]
    if settings.state_prefix.source:
        parts += ["--state-prefix", settings.state_prefix.value]
    if settings.profile.value:
        parts += ["--profile", settings.profile.value]
    if settings.allow_network_dir:
        parts.append("--allow-network-dir")
    workspace = target.env.get("TF_WORKSPACE")
    return f"TF_WORKSPACE={shlex.quote(workspace)} {shlex.join(parts)}" if workspace else shlex.join(parts)
