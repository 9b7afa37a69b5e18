"""A machine that sleeps: the boot clock goes on and the monotonic one does not, which a time namespace shows.

Moving one of the two clocks ahead, and not the other, is what a sleep does, or its opposite; a pause by SIGSTOP lets
both go on. Namespaces need Linux and root.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.scene import STACKHOLD, Result, wait_until
from tests.stories.slow_chain import STACK, chain_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.scene import Scene
    from tests.stories.slow_chain import Chain

HOUR = "3600"
# A process moves itself into a new time namespace, in which one clock is an hour ahead: only one without threads may.
JUMP = """
import ctypes, json, os, sys
from stackhold.adapters.clock import SystemClock
from stackhold.model.instant import Millis, Span
from stackhold.runs.control import Control
from stackhold.runs.settings import RunSettings
from stackhold.runs.stops import Stops

CLONE_NEWTIME = 0x80
clock = SystemClock()
control = Control(clock=clock, settings=RunSettings(deadline=Span(Millis(1_800_000))), stops=Stops())
before = control.cause
began = clock.boot()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWTIME):
    sys.exit(77)
try:
    with open("/proc/self/timens_offsets", "w") as offsets:
        offsets.write(f"{sys.argv[1]} 3600 0\\n")
    inside = os.open("/proc/self/ns/time_for_children", os.O_RDONLY)
except OSError:
    sys.exit(77)
if libc.setns(inside, CLONE_NEWTIME):
    sys.exit(77)
print(json.dumps({"before": before, "after": control.cause, "moved": clock.boot() - began >= 3_600_000}))
"""


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


@pytest.mark.parametrize(("clock", "cause"), [("boottime", "deadline"), ("monotonic", None)])
def test_the_deadline_counts_on_the_clock_that_goes_on_while_the_machine_sleeps(clock: str, cause: str | None) -> None:
    done = subprocess.run([sys.executable, "-c", JUMP, clock], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("a time namespace is not permitted here")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"before": None, "after": cause, "moved": cause is not None}


@pytest.mark.emulator
@pytest.mark.story
def test_a_lock_is_silent_for_as_long_as_the_machine_slept(chain: Chain) -> None:
    """A holder that is dead, its lock with half an hour to live; then the machine sleeps for an hour."""
    held = chain.hold(drop="before")
    first = chain.deploy()
    held.wait_reached()
    first.signal(signal.SIGKILL)
    first.finish()
    held.release()
    awake = after_an_hour(chain, "monotonic")
    assert awake.code == 1
    assert f"{STACK} (us-east-1) is locked" in awake.err
    slept = after_an_hour(chain, "boottime")
    assert slept.code == 0, slept.err
    assert "took over the lock of" in slept.out + slept.err
    assert chain.scene.lock(STACK) is None
    assert chain.in_cloud() == chain.recorded() == {"First", "Second", "Third"}


def after_an_hour(chain: Chain, clock: str) -> Result:
    """A deploy by a process whose clock of that name is an hour ahead."""
    namespace = ["unshare", "--time", f"--{clock}", HOUR]
    try:
        subprocess.run([*namespace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a time namespace is not permitted here")
    done = subprocess.run(
        [*namespace, STACKHOLD, "deploy", "chain.yaml", "--lock-timeout", "0"],
        env=chain.scene.env(),
        cwd=chain.scene.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.emulator
@pytest.mark.story
@pytest.mark.slow
def test_a_run_that_was_paused_past_its_deadline_starts_nothing_new_when_it_wakes(chain: Chain) -> None:
    held = chain.hold()
    running = chain.deploy("--deadline", "3s", "--lock-timeout", "0", "--json")
    held.wait_reached()
    running.signal(signal.SIGSTOP)
    until = time.monotonic() + 3.5
    wait_until(lambda: time.monotonic() >= until, "the deadline to pass")
    running.signal(signal.SIGCONT)
    held.release()
    woken = running.finish()
    assert woken.code == 124, woken.err
    assert woken.json()["outcome"] == "deadline-exceeded"
    assert chain.recorded() == chain.in_cloud() == {"First", "Second"}
    assert chain.scene.lock(STACK) is None
    assert reasons(chain.stored("rollback-journal.json")) == ["deadline"]
    chain.converges()


def reasons(journal: dict[str, Any]) -> list[str]:
    """Why each segment of a journal was written."""
    return [segment["reason"] for segment in journal["segments"]]
