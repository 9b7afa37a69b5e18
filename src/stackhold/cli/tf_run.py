"""Runs one operation on a Terraform root module from the command line: module, runtime, store, lock, the question."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackhold.cli import render_tf
from stackhold.cli.confirm import ask
from stackhold.cli.force_unlock import unlock_stack
from stackhold.cli.running import TERRAFORM_WAIT_MS, Running, finish, run_guarded
from stackhold.cli.tf_end import told
from stackhold.cli.tf_restore import restore_in_store
from stackhold.cli.tf_target import (
    check_can_ask,
    check_own_state,
    check_restore,
    check_unlock,
    find_target,
    warnings_of,
)
from stackhold.cli.wiring import owner
from stackhold.engines.terraform.approval import APPROVED, Decision, PlanPolicy, judge_plan
from stackhold.engines.terraform.engine import EMPTY_CONFIG, Place, TerraformEngine
from stackhold.engines.terraform.environment import for_laptop
from stackhold.engines.terraform.places import module_name
from stackhold.engines.terraform.runtime import find_embedded, find_runtime
from stackhold.engines.terraform.steps import Approval, Operation, Script, show_plan_step
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackhold.cli.progress import RunReporter
    from stackhold.cli.surroundings import Surroundings
    from stackhold.cli.tf_target import Target
    from stackhold.engines.terraform.planfile import PlanSummary
    from stackhold.engines.terraform.taking import Workshop
    from stackhold.model.ids import RunId
    from stackhold.model.record import StateRecord
    from stackhold.ports.engine import Run


def run_tf(operation: Operation, surroundings: Surroundings, options: Mapping[str, Any]) -> int:
    """Do it; the exit code."""
    target = find_target(surroundings, options)
    if operation is Operation.FORCE_UNLOCK:
        if not options.get("lock_id"):
            return unlock_stack(target.call, target.wiring, target.keys)
        check_unlock(target)
    if operation is Operation.RESTORE:
        check_restore(target, options)
        if target.module.backend is None:
            return restore_in_store(target, options)
    check_own_state(target, options)
    check_can_ask(operation, target.call, target.keys)
    return _run(operation, target, options)


def _run(operation: Operation, target: Target, options: Mapping[str, Any]) -> int:
    call, wiring, keys = target.call, target.wiring, target.keys
    began = wiring.clock.boot()
    identity = wiring.identity(
        stack=keys.stack, region=keys.region, operation=f"tf {operation.value}", engine="terraform"
    )
    running = Running(call, began)
    approval = _Asking(running, operation, PlanPolicy(expect_plan=str(options.get("expect_plan") or "")))
    engine = _engine(operation, target, options, identity.run_id, approval)
    for warning in warnings_of(target):
        call.output.warn(f"warning: {warning}")
    report = run_guarded(
        running,
        wiring,
        identity=identity,
        engine=engine,
        approve=lambda _: True,
        watched=approval.watched_by,
        abandon=engine.abandon,
    )
    done = engine.report
    document = None
    if done is not None:
        if trouble := render_tf.trouble_text(done):
            call.output.warn(trouble)
        call.output.say(render_tf.end_text(done, operation))
        document = render_tf.result_document(done, operation, engine.command)
    report = told(report, done, operation=operation, target=target)
    return finish(call, report, plan=document, refusal=approval.refusal, took_ms=wiring.clock.boot() - began)


def _engine(
    operation: Operation, target: Target, options: Mapping[str, Any], run_id: RunId, approval: _Asking
) -> TerraformEngine:
    """The engine, with a runtime and a folder for this run. Raises `InputError` when there is no runtime."""
    call, wiring = target.call, target.wiring
    cwd, wait = call.surroundings.cwd, call.settings.lock_timeout
    runtime = find_runtime(tuple(options["command"]), target.env.get("PATH", ""), find_embedded, cwd=cwd)
    workdir = wiring.run_folder(target.keys, run_id)
    env, _ = for_laptop(
        call.surroundings.environ, is_file=lambda name: Path(name).is_file(), empty_config=str(workdir / EMPTY_CONFIG)
    )
    wait_s = (TERRAFORM_WAIT_MS if wait is None else wait.ms) // 1000
    return TerraformEngine(
        script=_script(operation, options, cwd, workdir=workdir, lock_timeout_s=wait_s),
        command=runtime.command,
        workdir=workdir,
        holder=owner().rpartition(":")[0],
        prepare=_Preparing(replace(target, env=env), bool(options.get("adopt_local_state"))),
        approve=approval,
        module=module_name(target.module.directory),
        is_named=bool(options.get("stack")),
        versions=wiring.state_versions(target.keys) if target.module.backend is None else None,
    )


def _script(
    operation: Operation, options: Mapping[str, Any], cwd: Path, *, workdir: Path, lock_timeout_s: int
) -> Script:
    return Script(
        operation=operation,
        lock_timeout_s=lock_timeout_s,
        plan_file=str(workdir / "plan"),
        approval=Approval.PLAN,
        expects_plan=bool(options.get("expect_plan")),
        backend_config=tuple(_setting(text, cwd) for text in options["backend_config"]),
        var_files=tuple(str(_existing(cwd / text)) for text in options.get("var_files", ())),
        targets=tuple(options.get("targets", ())),
        replaces=tuple(options.get("replaces", ())),
        backup=str(_existing(cwd / options["backup"])) if options.get("backup") else "",
        unlock=options.get("lock_id") or "",
        is_renumbered=True,
    )


def _setting(text: str, cwd: Path) -> str:
    """A backend setting: one pair as it is, or a file by its whole path, since the runtime starts elsewhere."""
    return text if "=" in text else str(_existing(cwd / text))


def _existing(file: Path) -> Path:
    if not file.is_file():
        raise InputError(f"{file} is no file")
    return file.resolve()


@dataclass(slots=True)
class _Asking:
    """Shows a plan, and asks before it is applied; with the lock held, so what is shown is what is done."""

    running: Running
    operation: Operation
    policy: PlanPolicy
    refusal: str = ""
    _reporter: RunReporter | None = field(default=None)

    def watched_by(self, reporter: RunReporter) -> None:
        """Whose view must stand aside for a question."""
        self._reporter = reporter

    def __call__(self, plan: PlanSummary, workshop: Workshop, script: Script) -> Decision:
        """Show it as the runtime does; whether to go on."""
        call = self.running.call
        decision = judge_plan(plan, self.policy)
        assert self._reporter is not None
        with self._reporter.paused():
            if self.operation is not Operation.DRIFT:
                end = workshop.take(show_plan_step(script))
                call.output.say(render_tf.plan_text(plan, end.output.decode(errors="replace") if end.is_good else ""))
            if not decision.is_yes or self.operation not in (Operation.APPLY, Operation.DESTROY):
                return decision
            verb = "Destroy all of it" if self.operation is Operation.DESTROY else "Apply this plan"
            if ask(call.surroundings, f"{verb}?", yes=call.yes, is_over=self.running.is_over):
                return APPROVED
        if self.running.is_over():
            return Decision("interrupted", "stopped at the question")
        return Decision("blocked", "the plan was not approved")


@dataclass(frozen=True, slots=True)
class _Preparing:
    """Makes the module ready: as it is, or with the store as the backend that it does not declare."""

    target: Target
    adopts_local_state: bool

    @contextmanager
    def __call__(self, run: Run, record: StateRecord | None) -> Iterator[Place]:
        from stackhold.engines.terraform.own_backend import own_backend

        module = self.target.module
        if module.backend is not None:
            yield Place(module.directory, self.target.env, module.directory)
            return
        versions = self.target.wiring.state_versions(self.target.keys)
        with own_backend(
            module,
            self.target.env,
            versions,
            record,
            run,
            scratch=self.target.wiring.run_folder(self.target.keys, run.identity.run_id),
            adopts_local_state=self.adopts_local_state,
        ) as place:
            yield place
