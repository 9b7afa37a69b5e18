"""Starts, signals, follows and reaps the runtime: the only file that does.

The child writes to files, never to a pipe: a pipe that closes kills it in the middle of a change, one that fills up
stops it. It leads a session and a process group of its own, and where the system can do that (Linux) it gets the
same SIGINT when its parent is killed as when it is asked to stop (`watch.py`).

A child that has ended keeps its process id until `sweep`: until then no signal can reach another's process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stackhold.engines.terraform.company import company, is_at_work, mark, marked_pid
from stackhold.engines.terraform.tail import Tail
from stackhold.engines.terraform.watch import Watch
from stackhold.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stackhold.ports.clock import Clock
    from stackhold.ports.engine import Stop

_LAST_ERRORS: Final = 64 * 1024
_SHORTEST_POLL_MS: Final = 2
_KILL_WAIT_MS: Final = 5000
_SWEEP_WAIT_MS: Final = 1000
_SWEEP_POLL_MS: Final = 5
_PR_SET_PDEATHSIG: Final = 1
_ORPHANED: Final = 125
_LOST: Final = 125
"""Stands for the exit code of a child that somebody else has reaped."""
_HAS_WAITID: Final = hasattr(os, "waitid")


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. The two files must not exist yet, their folder must; they hold what may be secret.

    Beside the first, with the ending `.pid`, a file says which process it is for as long as it has not been reaped.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    stdout: Path
    stderr: Path


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """How a child ended."""

    exit_code: int
    """Below zero: ended by that signal."""
    ms: int
    was_interrupted: bool
    """We sent it the SIGINT. That proves nothing: it may have finished all the same."""
    was_killed: bool
    """We killed it and its group: its last write may be lost."""
    swept: int
    """How many processes that it had started outlived it and were killed."""
    stderr: str
    """The last 64 KiB."""


class Child:
    """One process with what it starts. `close` comes last; all methods belong to the thread that started it."""

    def __init__(self, process: subprocess.Popen[bytes], command: Command, watch: Watch | None) -> None:
        self.pid = process.pid
        self._watch = watch
        self._process = process
        self._exit_code: int | None = None
        self._is_closed = False
        self._lines = Tail(command.stdout)
        self._stderr = command.stderr
        self._mark = _mark_of(command)

    @classmethod
    def start(cls, command: Command) -> Child:
        """Start it, with default signals, nothing on standard input, and no open file of ours."""
        if not command.cwd.is_dir():
            raise InputError(f"{command.cwd} is not a directory")
        with _created(command.stdout) as out, _created(command.stderr) as err:
            watch = Watch.start()
            try:
                child = cls(_spawn(command, out, err, watch), command, watch)
            except BaseException:
                if watch is not None:
                    watch.end()
                raise
        mark(child.pid, _mark_of(command))
        return child

    def poll(self) -> int | None:
        """The exit code once it has ended, below zero for a signal; None while it runs."""
        if self._exit_code is None:
            self._exit_code = _peek(self.pid) if _HAS_WAITID else self._process.poll()
        return self._exit_code

    def lines(self) -> Iterator[str]:
        """The complete lines of standard output that came since the last call: a few MiB of them in one call until
        `close`, then all and an unfinished last one. A line longer than 16 MiB is cut."""
        return self._lines.rest() if self._is_closed else self._lines.more()

    def errors(self) -> str:
        """Standard error so far, at most the last 64 KiB."""
        with suppress(OSError), self._stderr.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LAST_ERRORS))
            return file.read(_LAST_ERRORS).decode(errors="replace")
        return ""

    def interrupt(self) -> None:
        """Ask it to stop as soon as it can: one SIGINT, to the child alone, and none after it whatever befalls us."""
        if self.poll() is None:
            if self._watch is not None:
                self._watch.dismiss()
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill it and everything in its group, now."""
        if not self._is_closed:
            _kill_group(self.pid)

    def sweep(self) -> int:
        """After the exit: kill what is left of what it started, and say how many processes that were. May be
        repeated until nothing is left; what leads a session of its own is out of reach."""
        if self._is_closed or self.poll() is None:
            return 0
        left = company(self.pid)
        _kill_group(self.pid)
        for member in left:
            with suppress(ProcessLookupError, PermissionError, ChildProcessError):
                if member.is_dead:
                    os.waitpid(member.pid, os.WNOHANG) if member.is_ours else None
                else:
                    os.kill(member.pid, signal.SIGKILL)
        return sum(not member.is_dead for member in left)

    def close(self) -> None:
        """After the exit and the last `sweep`: reap it and let its process id go."""
        if self.poll() is not None:
            self._process.wait()
            self._is_closed = True
            self._mark.unlink(missing_ok=True)
            if self._watch is not None:
                self._watch.end()


def is_process_alive(mark_file: Path) -> bool:
    """Whether the process that such a `.pid` file names, or anything left of its group, is still at work here."""
    return is_at_work(mark_file)


def kill_marked(folder: Path) -> None:
    """Kill what the `.pid` files of a folder name and is at work yet, with its groups: this process ends at once."""
    for file in sorted(folder.glob("*.pid")):
        pid = marked_pid(file)
        if pid is not None and is_at_work(file):
            _kill_group(pid)


def run_child(
    command: Command,
    *,
    clock: Clock,
    stopping: Callable[[], Stop | None],
    on_line: Callable[[str], None],
    poll_ms: int = 50,
) -> ChildEnd:
    """Run a command to its end, handing over its output line by line as it comes.

    At the first stop it gets one SIGINT, and once the stop is over it is killed with its group. Whatever it or its
    leftovers do, this returns soon after that. What `on_line` raises is raised here, after the command has been
    asked to stop and has ended: it may be in the middle of a change.
    """
    started = clock.boot()
    return _Following(Child.start(command), clock, on_line, started).run(stopping, poll_ms)


class _Following:
    """One run of one child."""

    def __init__(self, child: Child, clock: Clock, on_line: Callable[[str], None], started: int) -> None:
        self._child = child
        self._clock = clock
        self._on_line = on_line
        self._started = started
        self._was_interrupted = False
        self._killed_at: int | None = None
        self._failure: Exception | None = None

    def run(self, stopping: Callable[[], Stop | None], poll_ms: int) -> ChildEnd:
        try:
            self._follow(stopping, poll_ms)
        except BaseException:
            self._child.kill()
            self._wait_killed()
            self._clear()
            raise
        exit_code = self._child.poll()
        ms = self._clock.boot() - self._started
        swept = self._clear()
        self._hand_over()
        if self._failure is not None:
            raise self._failure
        return ChildEnd(
            -signal.SIGKILL if exit_code is None else exit_code,
            ms,
            was_interrupted=self._was_interrupted,
            was_killed=self._killed_at is not None,
            swept=swept,
            stderr=self._child.errors(),
        )

    def _follow(self, stopping: Callable[[], Stop | None], poll_ms: int) -> None:
        while self._child.poll() is None:
            self._hand_over()
            self._obey(stopping())
            now = self._clock.boot()
            if self._killed_at is not None and now - self._killed_at >= _KILL_WAIT_MS:
                return
            self._clock.sleep(min(poll_ms, max(_SHORTEST_POLL_MS, (now - self._started) // 16)))

    def _obey(self, stop: Stop | None) -> None:
        if (stop is not None or self._failure is not None) and not self._was_interrupted:
            self._was_interrupted = True
            self._child.interrupt()
        if stop is not None and stop.is_over and self._killed_at is None and self._child.poll() is None:
            self._killed_at = self._clock.boot()
            self._child.kill()

    def _hand_over(self) -> None:
        if self._failure is not None:
            return
        try:
            for line in self._child.lines():
                self._on_line(line)
        except Exception as error:
            self._failure = error

    def _wait_killed(self) -> None:
        until = self._clock.boot() + _KILL_WAIT_MS
        while self._child.poll() is None and self._clock.boot() < until:
            self._clock.sleep(_SWEEP_POLL_MS)

    def _clear(self) -> int:
        swept = self._child.sweep()
        until = self._clock.boot() + _SWEEP_WAIT_MS
        left = swept
        while left and self._clock.boot() < until:
            self._clock.sleep(_SWEEP_POLL_MS)
            left = self._child.sweep()
        self._child.close()
        return swept


def _mark_of(command: Command) -> Path:
    return command.stdout.with_suffix(".pid")


@contextmanager
def _created(path: Path) -> Iterator[int]:
    """A new file that only we may read, open for as long as the child is being started; gone when that fails."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    try:
        yield fd
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def _spawn(command: Command, out: int, err: int, watch: Watch | None) -> subprocess.Popen[bytes]:
    """Start the process. Signals wait meanwhile: one that meets the child before it is the runtime must neither be
    answered by our handlers in there nor get lost."""
    _keep_the_dead()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=command.env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=_preparation(os.getpid(), watch),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise _not_started(command, error) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _keep_the_dead() -> None:
    """Have children that end wait for us. Whoever started us may have left us to ignore them: then the system throws
    their exit codes away. Python sets signals from the main thread only, so this asks the system itself."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        set_signal = ctypes.PyDLL(None).signal
        set_signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
        set_signal.restype = ctypes.c_void_p
        set_signal(signal.SIGCHLD, None)


def _preparation(parent: int, watch: Watch | None = None) -> Callable[[], None]:
    """What the child does between fork and exec. Another thread may have held any lock at the fork, so everything
    is looked up and made here; there only plain calls are left."""
    prctl = getattr(ctypes.PyDLL(None), "prctl", None) if sys.platform == "linux" and watch is None else None
    if prctl is not None:
        prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    arguments = (_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
    possible = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    resettable = sorted(signum for signum in possible if signal.getsignal(signum) is not signal.SIG_DFL)
    told_by = watch.told_by if watch is not None else None
    reset, default, set_mask, of_all, leave, me, parent_now, tell = (
        signal.signal,
        signal.SIG_DFL,
        signal.pthread_sigmask,
        signal.SIG_SETMASK,
        os._exit,
        os.getpid,
        os.getppid,
        os.write,
    )

    def prepare() -> None:
        for signum in resettable:
            reset(signum, default)
        if told_by is not None:
            tell(told_by, b"%d\n" % me())
        if prctl is not None:
            prctl(*arguments)
        if parent_now() != parent:
            leave(_ORPHANED)
        set_mask(of_all, ())

    return prepare


def _not_started(command: Command, error: Exception) -> InputError:
    name = command.argv[0] if command.argv else "an empty command"
    match error:
        case FileNotFoundError() if Path(name).is_file():
            reason = "the program that it names to be run with is not there"
        case FileNotFoundError():
            reason = "there is no such program"
        case PermissionError():
            reason = "it may not be executed"
        case OSError(errno=errno.ENOEXEC):
            reason = "it is no program for this machine"
        case OSError():
            reason = error.strerror or "the system refused"
        case _:
            reason = str(error)
    return InputError(f"cannot start {name}: {reason}")


def _peek(pid: int) -> int | None:
    """The exit code of a child that has ended, which is left unreaped."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return _LOST
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
