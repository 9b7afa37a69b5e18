"""Runs one operation as the program of a Job: no store, no questions, one result document whatever happens."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import traceback
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stackhold.cli import signals
from stackhold.cli.durations import parse_duration
from stackhold.cli.render_tf import result_of
from stackhold.cli.run_view import event_line
from stackhold.engines.terraform import result
from stackhold.engines.terraform.approval import PlanPolicy, judge_plan
from stackhold.engines.terraform.environment import for_job, mirror_config
from stackhold.engines.terraform.evidence import STREAMS
from stackhold.engines.terraform.module import inspect_module
from stackhold.engines.terraform.report import Failure, RunnerReport
from stackhold.engines.terraform.runner import Runner
from stackhold.engines.terraform.runtime import find_embedded, find_runtime
from stackhold.engines.terraform.state_facts import facts_of
from stackhold.engines.terraform.steps import Approval, Operation, Script
from stackhold.engines.terraform.taking import Workshop
from stackhold.errors import InputError, StackholdError
from stackhold.ports.engine import Stop
from stackhold.runs.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TextIO

    from stackhold.cli.surroundings import Surroundings
    from stackhold.engines.terraform.approval import Decision
    from stackhold.engines.terraform.planfile import PlanSummary
    from stackhold.model.events import Event
    from stackhold.model.instant import BootInstant
    from stackhold.ports.clock import Clock

OK, FAILED = 0, 1
"""The exit codes of this one command; a usage error has 2."""
_VARIABLES: Final = "terraform.tfvars.json"
_ROOT: Final = "root"
_LARGEST_STATE: Final = 64 * 1024 * 1024


def run_job(surroundings: Surroundings, options: Mapping[str, Any]) -> int:
    """Do it; the exit code."""
    from stackhold.adapters.clock import SystemClock

    host = JobHost(
        clock=SystemClock(),
        stops=Stops(),
        stop_timeout_ms=parse_duration(options["stop_timeout"]),
        policy=PlanPolicy(
            guard_deletes=options["guard_deletes"],
            inputs_hash=options["inputs_hash"],
            allow_deletes_hash=options["allow_deletes_hash"],
            expect_plan=options["expect_plan"],
        ),
        stderr=surroundings.stderr,
    )
    job = _Job(surroundings, options, host)
    with signals.handled(host.stops, afterwards="the run was over already"):
        host.stops.listen()
        try:
            report = job.run()
        except Exception as error:
            report = RunnerReport(failure=_failed(error))
            if surroundings.is_debug:
                job.say(traceback.format_exc())
        return job.conclude(report)


def _failed(error: Exception) -> Failure:
    """What went wrong outside of any step. The document is written whatever it was."""
    match error:
        case _ImageLayout():
            return Failure("image-layout", "", error.message, tail=error.message, hint=error.hint)
        case StackholdError():
            return Failure("step", "", error.message, tail=error.message, hint=error.hint)
        case OSError():
            message = f"{error.filename or 'a file'}: {error.strerror or error}"
            return Failure("step", "", message, tail=message)
        case _:
            message = f"internal error: {type(error).__name__}"
            hint = "This is a bug. Run again with STACKHOLD_DEBUG=1 to see where, and please report it."
            return Failure("step", "", f"{message}: {error}", tail=message, hint=hint)


class _ImageLayout(InputError):
    """The image does not hold what it should."""


@dataclass(slots=True)
class JobHost:
    """A Job as the runner's host: the deadline is Kubernetes', the lock the manager's lease."""

    clock: Clock
    stops: Stops
    stop_timeout_ms: int
    policy: PlanPolicy
    stderr: TextIO
    _stopped_at: BootInstant | None = field(default=None)

    def __post_init__(self) -> None:
        self.stops.subscribe(self._note_stop)

    def stopping(self) -> Stop | None:
        """A signal came; over when the stop timeout has passed since."""
        cause, at = self.stops.cause, self._stopped_at
        if cause is None:
            return None
        return Stop(cause, is_over=at is not None and self.clock.boot() - at >= self.stop_timeout_ms)

    def tell(self, event: Event) -> None:
        """A line in the pod's log."""
        line = event_line(event, is_verbose=True)
        if line is not None:
            with contextlib.suppress(OSError, ValueError):
                self.stderr.write(line + "\n")
                self.stderr.flush()

    def note(self, step: str) -> None:
        """The manager knows which Job runs; there is nothing to write down."""

    def approve(self, plan: PlanSummary) -> Decision:
        """By what the flags say."""
        return judge_plan(plan, self.policy)

    def _note_stop(self, _: object) -> None:
        self._stopped_at = self.clock.boot()


@dataclass(slots=True)
class _Job:
    """One Job's work: where things are, and what its flags ask for."""

    surroundings: Surroundings
    options: Mapping[str, Any]
    host: JobHost
    command: tuple[str, ...] = ()

    @property
    def operation(self) -> Operation:
        return Operation(self.options["operation"])

    @property
    def _is_judged(self) -> bool:
        """Whether the plan is looked at before it is applied."""
        is_guarded = bool(self.options["guard_deletes"] or self.options["expect_plan"])
        return is_guarded and self.operation is Operation.APPLY

    def run(self) -> RunnerReport:
        options, cwd = self.options, self.surroundings.cwd
        workdir = cwd / options["workdir"]
        root = self._root(workdir)
        streams = workdir / STREAMS / self.host.clock.nonce()[:8]
        streams.mkdir(mode=0o700, parents=True)
        env, dropped = for_job(
            self.surroundings.environ, workdir=str(workdir), config_file=str(self._runtime_config(workdir))
        )
        if dropped:
            self.say(f"left out of the runtime's environment: {', '.join(dropped)}")
        runtime = find_runtime(options["command"], env.get("PATH", ""), find_embedded, cwd=cwd)
        self.command = runtime.command
        runner = Runner(
            Workshop(runtime.command, root, env, streams, self.host, module=root),
            self._script(workdir),
            self._plan_key(),
        )
        report = runner.run()
        shutil.rmtree(streams, ignore_errors=True)
        return report

    def conclude(self, report: RunnerReport) -> int:
        """Write the result document; the exit code."""
        options = self.options
        image = result.Image(options["image"], options["providers"])
        document = result_of(report, self.operation, self.command, image=image)
        for note in report.notes:
            self.say(note)
        for each in report.unrecorded:
            self.say(each.sentence("terraform"))
        if report.failure is not None:
            self.say(f"{self.operation.value}: {report.failure.message}")
            if report.failure.hint:
                self.say(report.failure.hint)
        try:
            _write(self.surroundings.cwd / options["result_file"], result.encode(document))
        except OSError as error:
            self.say(f"the result cannot be written to {options['result_file']}: {error.strerror}")
            return FAILED
        return OK if report.failure is None else FAILED

    def _root(self, workdir: Path) -> Path:
        """The root module: the rendered files beside the module, or the module itself."""
        options, cwd = self.options, self.surroundings.cwd
        module = cwd / str(options["module"])
        try:
            inspect_module(module)
        except InputError as error:
            raise _ImageLayout(f"the image has no module: {error.message}") from error
        workdir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not options["config"]:
            return module
        root, config = workdir / _ROOT, cwd / str(options["config"])
        root.mkdir(mode=0o700, exist_ok=True)
        try:
            for file in sorted(config.glob("*.tf.json")):
                shutil.copyfile(file, root / file.name)
        except OSError as error:
            raise InputError(f"{config} cannot be read: {error.strerror}") from error
        inspect_module(root)
        return root

    def _runtime_config(self, workdir: Path) -> Path:
        """The runtime's configuration: the mirror as the only source of providers, or nothing."""
        mirror = self.surroundings.cwd / self.options["providers"] if self.options["providers"] else None
        file = workdir / "runtime.tfrc"
        has_mirror = mirror is not None and mirror.is_dir()
        _write(file, mirror_config(str(mirror)).encode() if has_mirror else b"")
        return file

    def _script(self, workdir: Path) -> Script:
        options, operation = self.options, self.operation
        variables = self.surroundings.cwd / options["config"] / _VARIABLES if options["config"] else None
        return Script(
            operation=operation,
            lock_timeout_s=parse_duration(options["lock_timeout"]) // 1000,
            plan_file=str(workdir / "plan"),
            approval=Approval.PLAN if self._is_judged else Approval.NONE,
            expects_plan=bool(options["expect_plan"]) and operation is Operation.APPLY,
            backend_config=options["backend_config"],
            var_files=(str(variables),) if variables is not None and variables.is_file() else (),
            backup=str(self._backup(workdir)) if operation is Operation.RESTORE else "",
            unlock=options["unlock"],
            recorded=options["restore_resources"],
        )

    def _plan_key(self) -> bytes:
        file = self.options["plan_key_file"]
        if not file:
            if self._is_judged:
                raise InputError(
                    "an apply with --guard-deletes or --expect-plan needs the key of the plan's hash",
                    hint="Name it with --plan-key-file.",
                )
            return self.host.clock.nonce().encode()
        try:
            key = (self.surroundings.cwd / str(file)).read_bytes()
        except OSError as error:
            raise InputError(f"the plan key {file} cannot be read: {error.strerror}") from error
        if not key:
            raise InputError(f"the plan key {file} is empty")
        return key

    def _backup(self, workdir: Path) -> Path:
        """The state to be restored, put together from its parts."""
        chunks = self.options["restore_chunks"]
        if not chunks:
            raise InputError("a restore needs the backup", hint="Name its parts with --restore-chunks.")
        try:
            packed = b"".join((self.surroundings.cwd / chunk).read_bytes() for chunk in chunks)
            with gzip.open(io.BytesIO(packed)) as stream:
                state = stream.read(_LARGEST_STATE + 1)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise InputError(f"the backup cannot be unpacked: {error}") from error
        if len(state) > _LARGEST_STATE:
            raise InputError("the backup is larger than 64 MiB")
        facts_of(state, what="the backup")
        file = workdir / "backup.tfstate"
        _write(file, state)
        return file

    def say(self, text: str) -> None:
        """A line in the pod's log."""
        with contextlib.suppress(OSError, ValueError):
            self.host.stderr.write(text + "\n")
            self.host.stderr.flush()


def _write(file: Path, data: bytes) -> None:
    """Write in place, since it may be mounted by itself; 0600 when it is new."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as stream:
        stream.write(data)
