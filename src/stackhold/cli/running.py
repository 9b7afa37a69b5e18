"""Runs one guarded run from the command line: settings, signals, the view, the question, the report.

Shared by every verb that takes the lock. The verb brings its engine and says what its plan means; nothing here knows
what is being changed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackhold.cli import signals
from stackhold.cli.paint import Paint
from stackhold.cli.progress import RunReporter, reporter_for
from stackhold.cli.render_report import report_document, report_text, trouble_text
from stackhold.cli.run_view import RunView
from stackhold.decide.stopping import end_of, leaves_after
from stackhold.model.exit_codes import ExitCode
from stackhold.model.instant import words
from stackhold.model.run import Outcome
from stackhold.runs.guard import FixedWait, GuardedRun, LockWait, RetryWait, RunReport, RunSettings, Stops

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from stackhold.cli.options import Invocation
    from stackhold.cli.settings import Settings
    from stackhold.cli.wiring import Wiring
    from stackhold.model.instant import BootInstant
    from stackhold.model.run import RunIdentity, StopCause
    from stackhold.model.values import JsonMap
    from stackhold.ports.engine import Engine, JournalEngine, Work


TERRAFORM_WAIT_MS = 300_000
"""How long a `tf` operation waits for a lock unless `--lock-timeout` says otherwise."""


@dataclass(frozen=True, slots=True)
class Running:
    """A run in the making, and what its verb may do while it asks."""

    call: Invocation
    began: BootInstant
    """When the command began: its deadline counts from then."""
    stops: Stops = field(default_factory=Stops)

    def is_over(self) -> bool:
        """Whether the run was asked to stop, so that a question has lost its point."""
        return self.stops.cause is not None


def run_settings(settings: Settings, *, operation: str, unlock_command: str) -> RunSettings:
    """The settings of a run. Without `--lock-timeout` each command has its own way to wait (spec 2)."""
    wait: LockWait
    if settings.lock_timeout is not None:
        wait = FixedWait(settings.lock_timeout.ms, settings.lock_timeout.source)
    else:
        wait = _own_wait(operation)
    return RunSettings(
        deadline=settings.deadline,
        lock_wait=wait,
        grace_ms=settings.grace.ms,
        ttl_ms=settings.lock_ttl.ms,
        renew_every_ms=settings.lock_renew.ms,
        stop_poll_ms=settings.stop_poll.ms,
        unlock_command=unlock_command,
    )


def _own_wait(operation: str) -> LockWait:
    if operation in ("deploy", "rollback"):
        return RetryWait()
    return FixedWait(TERRAFORM_WAIT_MS if operation.startswith("tf ") else 0)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """The two ways to end the process without waiting for the run."""

    run: GuardedRun
    reporter: RunReporter
    settings: RunSettings
    stderr: TextIO
    abandon: Callable[[], None]

    def on_second_signal(self) -> None:
        self._leave("on a second signal", ExitCode.INTERRUPTED, signals.RELEASE_MS)

    def out_of_time(self, cause: StopCause) -> None:
        grace_ms = self.settings.grace_ms
        code = end_of(cause, outcome=Outcome.FAILED, exit_code=ExitCode.FAILED)[1]
        why = f"because the grace ({words(grace_ms)}) is used up and the run still hangs"
        self._leave(why, code, min(signals.RELEASE_MS, (grace_ms - leaves_after(grace_ms)) // 2))

    def _leave(self, why: str, code: ExitCode, release_ms: int) -> None:
        signals.leave_at_once(
            why=why,
            code=code,
            give_back=self.reporter.close,
            release=lambda: self._release(release_ms),
            seconds=release_ms / 1000,
            unlock_command=self.settings.unlock_command,
            stderr=self.stderr,
        )

    def _release(self, release_ms: int) -> bool:
        self.abandon()
        return self.run.best_effort_release(release_ms)


def run_guarded(
    running: Running,
    wiring: Wiring,
    *,
    identity: RunIdentity,
    engine: Engine | JournalEngine,
    approve: Callable[[Work], bool],
    watched: Callable[[RunReporter], None] = lambda _: None,
    abandon: Callable[[], None] = lambda: None,
) -> RunReport:
    """Do it under the lock, watched and interruptible; the report, or what it raised.

    `watched` is told who shows the run, for an engine that asks while it works. `abandon` is called before the lock is
    released because the process ends at once: nothing that the engine has started may be at work after that.

    Signals are the run's before its view is there, and until the view has given the terminal back.
    """
    call, store, clock = running.call, wiring.store, wiring.clock
    unlock_command = wiring.command("force-unlock", identity.stack, identity.region)
    settings = run_settings(call.settings, operation=identity.operation, unlock_command=unlock_command)
    title = f"{identity.operation} of {identity.stack} ({identity.region})"
    view = RunView(title=title, deadline_ms=settings.deadline.ms, lock_wait=str(settings.lock_wait))
    over = f"the run was over already; see it with: {wiring.command('events', identity.stack, identity.region)}"
    with (
        signals.handled(running.stops, afterwards=over),
        closing(reporter_for(call.surroundings, call.output.human, view=view, clock=clock)) as reporter,
    ):
        watched(reporter)
        run = GuardedRun(
            store=store,
            prefix=wiring.prefix,
            clock=clock,
            reporter=reporter,
            settings=settings,
            identity=identity,
            stops=running.stops,
            started_at=running.began,
        )
        leaving = _Leaving(run, reporter, settings, call.surroundings.stderr, abandon)
        last_resort = signals.LastResort(after_ms=leaves_after(settings.grace_ms), leave=leaving.out_of_time)

        def approve_unwatched(work: Work) -> bool:
            with reporter.paused():
                return approve(work)

        running.stops.on_second(leaving.on_second_signal)
        running.stops.subscribe(last_resort.arm)
        try:
            return run.run(engine, approve=approve_unwatched)
        finally:
            last_resort.disarm()


def finish(
    call: Invocation, report: RunReport, *, plan: JsonMap | None, refusal: str, took_ms: int, undo_command: str = ""
) -> int:
    """Say how a run ended; its exit code. `undo_command` takes back what it left, where there is such a command."""
    if report.outcome is Outcome.BLOCKED and refusal:
        report = replace(report, error=f"{refusal}; nothing was changed", hint="Say yes to it with --yes.")
    trouble = trouble_text(report, undo_command=undo_command)
    if trouble:
        call.surroundings.stdout.flush()
        call.output.warn(trouble)
    paint = Paint(call.surroundings.color_on(call.output.human))
    text = report_text(report, took_ms=took_ms, paint=paint)
    if call.output.as_json:
        call.output.say(text)
    call.output.answer({**report_document(report, plan=plan), "tookMs": took_ms}, text)
    return report.exit_code
