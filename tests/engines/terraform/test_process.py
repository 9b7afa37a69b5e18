"""Starting, following, stopping and sweeping real processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform.company import mark
from stackhold.engines.terraform.process import Child, Command, is_process_alive, kill_marked, run_child
from stackhold.engines.terraform.tail import LONGEST_LINE
from stackhold.errors import InputError
from stackhold.model.run import StopCause
from stackhold.ports.engine import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackhold.engines.terraform.process import ChildEnd

CLOCK = SystemClock()
ASKED = Stop(StopCause.SIGTERM)
OVER = Stop(StopCause.SIGTERM, is_over=True)
WAIT_S = 20
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the parent-death signal")


@dataclass
class Bench:
    """A folder with one command after the other."""

    folder: Path
    lines: list[str] = field(default_factory=list)
    _count: int = 0

    def command(self, *argv: str) -> Command:
        self._count += 1
        name = f"{self._count:02d}"
        env = {"PATH": os.environ["PATH"], "FOLDER": str(self.folder)}
        return Command(argv, self.folder, env, self.folder / f"{name}.out", self.folder / f"{name}.err")

    def sh(self, script: str) -> Command:
        return self.command("/bin/sh", "-c", script)

    def py(self, script: str) -> Command:
        return self.command(sys.executable, "-I", "-S", "-c", script)

    def run(
        self,
        command: Command,
        stopping: Callable[[], Stop | None] = lambda: None,
        on_line: Callable[[str], None] | None = None,
    ) -> ChildEnd:
        return run_child(command, clock=CLOCK, stopping=stopping, on_line=on_line or self.lines.append)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > until:
            pytest.fail(f"never happened: {what}")
        time.sleep(0.01)


def state_of(pid: int) -> str:
    """The letter that the system has for the state of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z", "X")


def zombies_of(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] == "Z" and int(fields[1]) == parent:
            found.append(int(folder.name))
    return found


# What comes out


def test_no_line_of_a_hundred_thousand_is_lost_nor_the_last_unfinished_one(bench: Bench) -> None:
    end = bench.run(bench.py("for n in range(100_000): print(n, 'x' * 40)\nprint('unfinished', end='')"))
    assert end.exit_code == 0
    assert bench.lines == [*(f"{n} {'x' * 40}" for n in range(100_000)), "unfinished"]


def test_lines_are_handed_over_while_the_child_runs(bench: Bench) -> None:
    def go_on(line: str) -> None:
        bench.lines.append(line)
        (bench.folder / "seen").touch()

    end = bench.run(bench.sh("echo first; while [ ! -e seen ]; do sleep 0.01; done; echo second"), on_line=go_on)
    assert (end.exit_code, bench.lines) == (0, ["first", "second"])


def test_a_line_longer_than_any_is_cut_and_the_next_one_is_whole(bench: Bench) -> None:
    bench.run(bench.py(f"print('x' * {LONGEST_LINE + 99})\nprint('next')"))
    assert [len(line) for line in bench.lines] == [LONGEST_LINE, len("next")]
    assert bench.lines[1] == "next"


def test_what_is_no_text_is_handed_over_all_the_same(bench: Bench) -> None:
    bench.run(bench.sh(r"printf 'a\377b\n\nc\n'"))
    assert bench.lines == ["a\ufffdb", "", "c"]


def test_of_standard_error_the_end_is_kept(bench: Bench) -> None:
    end = bench.run(bench.py("import sys\nsys.stderr.write('x' * 200_000 + 'end')"))
    assert len(end.stderr) == 64 * 1024
    assert end.stderr.endswith("xend")


def test_both_files_are_for_us_alone(bench: Bench) -> None:
    command = bench.sh("echo; echo >&2")
    bench.run(command)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (command.stdout, command.stderr)] == [0o600, 0o600]


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", -signal.SIGTERM)])
def test_the_exit_code_is_the_childs(bench: Bench, script: str, code: int) -> None:
    end = bench.run(bench.sh(script))
    assert (end.exit_code, end.was_interrupted, end.was_killed, end.swept) == (code, False, False, 0)


# What goes in


@linux_only
def test_it_starts_with_default_signals_an_empty_mask_and_no_file_of_ours(bench: Bench) -> None:
    leak = os.open(bench.folder, os.O_RDONLY)
    os.set_inheritable(leak, True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        bench.run(bench.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | wc -l; wc -c"))
        assert signal.SIGUSR2 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
        os.close(leak)
    masks, (files, from_input) = bench.lines[:2], bench.lines[2:]
    libc_own = 1 << 31 | 1 << 32  # signals 32 and 33: the C library lets nobody set them
    assert [int(line.split()[1], 16) & ~libc_own for line in masks] == [0, 0]
    assert int(files) == 4, "the three standard ones, and the folder that ls reads"
    assert int(from_input) == 0


def test_it_leads_a_group_and_a_session_of_its_own(bench: Bench) -> None:
    bench.run(bench.py("import os\nprint(os.getpid() == os.getpgid(0) == os.getsid(0))"))
    assert bench.lines == ["True"]


def test_what_cannot_be_started_is_named_with_the_reason(bench: Bench) -> None:
    plain = bench.folder / "plain"
    plain.write_text("no program")
    garbage = bench.folder / "garbage"
    garbage.write_bytes(b"\x00\x01\x02\x03")
    garbage.chmod(0o700)
    orphan = bench.folder / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o700)
    for program, reason in [
        ("/no/such/program", "there is no such program"),
        ("no-such-program", "there is no such program"),
        (str(plain), "may not be executed"),
        (str(garbage), "no program for this machine"),
        (str(orphan), "the program that it names to be run with is not there"),
        ("a\0b", "null byte"),
    ]:
        command = bench.command(program)
        with pytest.raises(InputError, match=reason):
            Child.start(command)
        assert not command.stdout.exists()
        assert not command.stderr.exists()


def test_neither_a_missing_folder_nor_a_file_that_is_there_already_is_accepted(bench: Bench) -> None:
    command = bench.sh("exit 0")
    with pytest.raises(InputError, match="is not a directory"):
        Child.start(Command(command.argv, bench.folder / "no", command.env, command.stdout, command.stderr))
    command.stderr.write_text("kept")
    with pytest.raises(InputError, match="cannot write"):
        Child.start(command)
    assert not command.stdout.exists()
    assert command.stderr.read_text() == "kept"


IGNORING = """
import signal, sys, threading
from pathlib import Path
sys.path[:0] = {path!r}
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform.process import Command, run_child
here = Path({folder!r})
command = Command(("/bin/sh", "-c", "exit 3"), here, {{}}, here / "o", here / "e")
def run():
    print(run_child(command, clock=SystemClock(), stopping=lambda: None, on_line=print).exit_code)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


def test_the_exit_code_is_not_lost_where_we_were_started_to_ignore_ended_children(bench: Bench) -> None:
    code = IGNORING.format(path=sys.path, folder=str(bench.folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"


# Stopping

COUNTING = """
import os, signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
until = time.monotonic() + 20
while not seen and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.3)
print("interrupted", len(seen))
"""


def test_the_first_stop_is_one_interrupt_and_it_may_end_well_all_the_same(bench: Bench) -> None:
    end = bench.run(bench.py(COUNTING), lambda: ASKED if bench.lines else None)
    assert bench.lines == ["ready", "interrupted 1"]
    assert (end.exit_code, end.was_interrupted, end.was_killed) == (0, True, False)


def test_only_the_child_itself_is_interrupted_not_what_it_started(bench: Bench) -> None:
    script = (
        "trap 'echo child' INT; (trap 'echo grandchild' INT; echo ready; sleep 0.2; sleep 0.2; exit 0) & wait; wait"
    )
    end = bench.run(bench.sh(script), lambda: ASKED if bench.lines else None)
    assert bench.lines == ["ready", "child"]
    assert end.exit_code == 0


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            "import os, signal\nprint('ready', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)", id="frozen"
        ),
        pytest.param(
            "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)\n"
            "time.sleep(60)",
            id="deaf",
        ),
    ],
)
def test_a_child_that_does_not_stop_is_killed_once_the_stop_is_over(bench: Bench, script: str) -> None:
    began: list[float] = []

    def stopping() -> Stop | None:
        if not bench.lines:
            return None
        began.append(time.monotonic())
        return OVER if began[-1] - began[0] > 0.3 else ASKED

    end = bench.run(bench.py(script), stopping)
    assert (end.exit_code, end.was_interrupted, end.was_killed) == (-signal.SIGKILL, True, True)
    assert end.ms < WAIT_S * 1000


@linux_only
def test_a_kill_takes_the_whole_group_though_all_of_it_is_frozen(bench: Bench) -> None:
    script = "sleep 60 & echo $!; kill -STOP $! $$"
    end = bench.run(bench.sh(script), lambda: OVER if bench.lines else None)
    assert end.was_killed
    wait_until(lambda: not is_alive(int(bench.lines[0])), "it is gone")


ENDLESS = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    print('x' * 1000)
"""


def test_a_stop_is_seen_while_output_comes_without_end(bench: Bench) -> None:
    looks: list[int] = []

    def stopping() -> Stop | None:
        looks.append(1)
        return OVER if bench.lines and len(looks) > 3 else None

    end = bench.run(bench.py(ENDLESS), stopping, on_line=lambda line: bench.lines.append(line[:1]))
    assert end.was_killed


def test_what_the_listener_raises_comes_out_after_the_child_was_asked_to_stop_and_has_ended(bench: Bench) -> None:
    def fail(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match="ready"):
        bench.run(bench.py(COUNTING + "open('ended', 'w')"), on_line=fail)
    assert bench.has("ended")


@linux_only
def test_when_nobody_can_say_any_more_whether_to_stop_nothing_is_left_running(bench: Bench) -> None:
    def stopping() -> Stop | None:
        if bench.lines:
            raise RuntimeError("lost")
        return None

    with pytest.raises(RuntimeError, match="lost"):
        bench.run(bench.sh("echo $$; sleep 60"), stopping)
    assert state_of(int(bench.lines[0])) == ""


# Sweeping


@linux_only
def test_a_grandchild_that_outlives_the_child_is_swept_though_it_holds_the_output_open(bench: Bench) -> None:
    end = bench.run(bench.sh("sleep 60 & echo $!; exit 0"))
    assert (end.exit_code, end.swept, end.was_killed) == (0, 1, False)
    wait_until(lambda: not is_alive(int(bench.lines[0])), "it is gone")


@linux_only
def test_one_in_a_group_of_its_own_in_the_same_session_is_swept_too(bench: Bench) -> None:
    end = bench.run(
        bench.py(
            "import os, time\npid = os.fork()\nif not pid:\n  time.sleep(60)\n"
            "os.setpgid(pid, pid)\nprint(pid, flush=True)\nos._exit(0)"
        )
    )
    assert end.swept == 1
    wait_until(lambda: not is_alive(int(bench.lines[0])), "it is gone")


@linux_only
def test_the_last_words_of_a_grandchild_are_not_lost(bench: Bench) -> None:
    bench.run(bench.sh("(echo one; echo two; printf three; sleep 60) & while [ ! -s 01.out ]; do :; done; sleep 0.1"))
    assert bench.lines == ["one", "two", "three"]


@linux_only
def test_no_zombie_is_left_of_thirty_children_at_once_and_no_line_is_lost(bench: Bench) -> None:
    commands = [bench.sh("sleep 60 & seq 3000; exit 7") for _ in range(30)]
    lines: list[list[str]] = [[] for _ in commands]
    ends: list[ChildEnd] = []
    threads = [
        threading.Thread(target=lambda c=command, seen=seen: ends.append(bench.run(c, on_line=seen.append)))
        for command, seen in zip(commands, lines, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(end.exit_code, end.swept) for end in ends] == [(7, 1)] * 30
    assert all(seen == [str(n) for n in range(1, 3001)] for seen in lines)
    assert zombies_of(os.getpid()) == []


FIRST_PROCESS = """
import ctypes, sys
from pathlib import Path
sys.path[:0] = {path!r}
from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform.process import Command, run_child
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
here = Path({folder!r})
command = Command(("/bin/sh", "-c", "(sleep 60 & echo $!; echo $$) ; exit 0"), here, {{}}, here / "o", here / "e")
end = run_child(command, clock=SystemClock(), stopping=lambda: None, on_line=print)
print(end.swept, flush=True)
sys.stdin.read()
"""


@linux_only
def test_who_inherits_the_orphans_as_the_first_process_of_a_container_does_reaps_them(bench: Bench) -> None:
    code = FIRST_PROCESS.format(path=sys.path, folder=str(bench.folder))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        orphan, child, swept = (int(first.stdout.readline()) for _ in range(3))
        assert swept == 1
        assert (state_of(orphan), state_of(child)) == ("", "")
        assert zombies_of(first.pid) == []
        first.communicate("")
    assert first.returncode == 0


# When the parent dies

PARENT = """
import os, signal, sys, threading
from pathlib import Path
sys.path[:0] = {path!r}
from stackhold.adapters.clock import SystemClock
from stackhold.engines.terraform.process import Command, run_child
here = Path({folder!r})
command = Command((sys.executable, "-I", "-S", "-c", {child!r}), here, {{}}, here / "child.out", here / "child.err")
thread = threading.Thread(
    target=run_child,
    args=[command],
    kwargs=dict(clock=SystemClock(), stopping=lambda: None, on_line=lambda line: print(line, flush=True)),
)
thread.start()
thread.join()
"""
SURVIVOR = """
import os, signal, time
def interrupted(*_):
    open('interrupted', 'w').close()
    print('last words', flush=True)
    time.sleep(0.2)
    open('state', 'w').close()
    os._exit(1)
signal.signal(signal.SIGINT, interrupted)
print(os.getpid(), flush=True)
time.sleep(60)
open('never', 'w')
"""


@linux_only
def test_a_parent_that_is_killed_leaves_a_child_that_stops_by_itself_and_in_order(bench: Bench) -> None:
    code = PARENT.format(path=sys.path, folder=str(bench.folder), child=SURVIVOR)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        mark_file = bench.folder / "child.pid"
        wait_until(lambda: is_process_alive(mark_file), "the child is marked as alive")
        parent.kill()
        parent.wait()
    wait_until(lambda: bench.has("interrupted"), "the child gets SIGINT")
    assert is_process_alive(mark_file) or bench.has("state")
    wait_until(lambda: not is_alive(child), "the child ends")
    assert bench.has("state")
    assert not bench.has("never")
    assert (bench.folder / "child.out").read_text() == f"{child}\nlast words\n"
    assert not is_process_alive(mark_file)


CROWDED = """
import threading, time
for _ in range(60):
    threading.Thread(target=time.sleep, args=[60], daemon=True).start()
"""
LISTENING = """
import os, signal, time
count = 0
def interrupted(*_):
    global count
    count += 1
    open('heard', 'w').close()
signal.signal(signal.SIGINT, interrupted)
print(os.getpid(), flush=True)
while not count:
    time.sleep(0.01)
until = time.monotonic() + 1
while time.monotonic() < until:
    time.sleep(0.01)
with open('count.new', 'w') as out:
    out.write(str(count))
os.rename('count.new', 'count')
"""


def test_a_parent_of_many_threads_that_is_killed_leaves_one_interrupt_and_no_second(bench: Bench) -> None:
    code = CROWDED + PARENT.format(path=sys.path, folder=str(bench.folder), child=LISTENING)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        parent.kill()
        parent.wait()
    wait_until(lambda: bench.has("count"), "the child counts what it gets")
    assert (bench.folder / "count").read_text() == "1"


def test_a_child_that_was_asked_to_stop_is_not_asked_again_when_its_parent_is_killed(bench: Bench) -> None:
    imports = f"import sys\nsys.path[:0] = {sys.path!r}\nfrom stackhold.model.run import StopCause\n"
    imports += "from stackhold.ports.engine import Stop\n"
    code = PARENT.format(path=sys.path, folder=str(bench.folder), child=LISTENING).replace(
        "stopping=lambda: None", "stopping=lambda: Stop(StopCause.SIGTERM) if (here / 'asks').exists() else None"
    )
    with subprocess.Popen([sys.executable, "-c", imports + code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (bench.folder / "asks").touch()
        wait_until(lambda: bench.has("heard"), "the child is asked to stop")
        parent.kill()
        parent.wait()
    wait_until(lambda: bench.has("count"), "the child counts what it gets")
    assert (bench.folder / "count").read_text() == "1"


@linux_only
def test_a_child_whose_parent_was_gone_before_it_could_be_told_so_ends_at_once() -> None:
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom stackhold.engines.terraform import process\n"
    for parent, ends in ((os.getpid(), 0), (os.getpid() + 1, 125)):
        done = subprocess.run([sys.executable, "-c", f"{code}process._preparation({parent})()"], check=False)
        assert done.returncode == ends


# Whether a child of an earlier run is at work


@linux_only
def test_a_child_is_marked_as_alive_until_it_is_reaped(bench: Bench) -> None:
    command = bench.sh("echo; sleep 60")
    mark_file = command.stdout.with_suffix(".pid")
    child = Child.start(command)
    assert is_process_alive(mark_file)
    assert stat.S_IMODE(mark_file.stat().st_mode) == 0o600
    child.kill()
    wait_until(lambda: child.poll() is not None, "the killed child ends")
    wait_until(lambda: not is_process_alive(mark_file), "all of the group is gone")
    child.sweep()
    child.close()
    assert not mark_file.exists()
    assert not is_process_alive(mark_file)


@linux_only
def test_what_is_left_of_the_group_of_a_dead_child_is_still_at_work(bench: Bench) -> None:
    child = Child.start(bench.sh("sleep 60 & exit 0"))
    mark_file = bench.folder / "01.pid"
    wait_until(lambda: child.poll() is not None, "the child ends")
    assert is_process_alive(mark_file)
    assert child.sweep() == 1
    wait_until(lambda: not is_process_alive(mark_file), "the grandchild is gone")
    child.close()


@linux_only
def test_all_that_a_folder_marks_as_at_work_is_killed_with_its_groups_and_nothing_else(bench: Bench) -> None:
    child = Child.start(bench.sh("sleep 60 & echo $!; wait"))
    wait_until(lambda: (bench.folder / "01.out").stat().st_size > 1, "the grandchild starts")
    (bench.folder / "99.pid").write_text("no mark")
    kill_marked(bench.folder)
    wait_until(lambda: child.poll() == -signal.SIGKILL, "the child is killed")
    wait_until(lambda: not is_alive(int((bench.folder / "01.out").read_text())), "the grandchild is killed")
    child.close()
    kill_marked(bench.folder)


@linux_only
def test_another_process_with_the_same_id_is_not_taken_for_the_child(tmp_path: Path) -> None:
    mark_file = tmp_path / "me.pid"
    mark(os.getpid(), mark_file)
    assert is_process_alive(mark_file)
    text = mark_file.read_text()
    started = text.split('"started": "')[1].split('"')[0]
    mark_file.write_text(text.replace(started, str(int(started) + 1)))
    assert not is_process_alive(mark_file)
    mark_file.write_text("{")
    assert not is_process_alive(mark_file)
