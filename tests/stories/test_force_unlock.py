"""`force-unlock` with a live holder, with none, with a lock that nobody can read, and with one that changes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import STACK, Landed, owner_of
from tests.stories.scene import PATIENCE_SECONDS, STACKHOLD, wait_until

from stackhold.testing.proxy import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.both_stores import Line

pytestmark = [pytest.mark.emulator, pytest.mark.story]

LIVE = "WARNING: this lock is LIVE"
QUICK_RENEWALS = ("--lock-renew", "1s")


def test_after_a_force_unlock_of_a_live_deploy_the_new_runs_record_survives(line: Line) -> None:
    landed = Landed()
    line.proxy.add(Rule(service="ssm", operation="PutParameter", skip=1, times=1, after=landed.hold))
    old = line.deploy("--json", by=line.proxy)
    landed.wait(old)
    wait_until(lambda: set(line.objects.recorded()) == {"First"}, "the first save")

    unlocked = line.scene.run("force-unlock", STACK, "--yes")
    assert unlocked.out == f"{STACK} (us-east-1) is unlocked\n"
    assert f"holder   {owner_of(old)}, deploy" in unlocked.err
    assert f"WARNING: its process {old.pid} is running on this very host." in unlocked.err
    assert LIVE in unlocked.err
    assert "stackhold cancel" in unlocked.err
    assert line.objects.lock() is None

    new = line.deploy(made="two").finish()
    assert new.code == 0, new.err
    left = {name: line.objects.read(name) for name in ("state.json", "lock.json", "run.json")}

    landed.release()
    stopped = old.finish()
    assert stopped.code == stopped.json()["exitCode"] == 1
    assert stopped.json()["outcome"] == "lock-lost"
    assert stopped.json()["unsaved"] == ["Second line-second-one"]
    successor = line.objects.runs()[-1]["owner"]
    assert f"the lock was lost; nobody holds it now; {successor} ran since" in stopped.err
    assert "These exist and are in no record:\n  Second line-second-one" in stopped.err
    assert {name: line.objects.read(name) for name in left} == left
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.in_cloud() >= {"line-first-two", "line-second-two"}


def test_the_old_run_stops_at_its_next_renewal_before_it_does_anything_more(line: Line) -> None:
    held = line.hold()
    old = line.deploy(*QUICK_RENEWALS, by=line.proxy)
    old.wait_caught(held)
    wait_until(lambda: set(line.objects.recorded()) == {"First"}, "the first save")
    line.scene.run("force-unlock", STACK, "--yes")
    old.wait_said("the lock is lost; nobody holds it now: nothing new is started")
    held.release()
    stopped = old.finish()
    assert stopped.code == 1
    assert "the lock was lost; nobody holds it now" in stopped.err
    assert line.objects.lock() is None
    assert line.proxy.count(service="ssm", operation="PutParameter") == 2
    assert line.proxy.count(service="ssm", operation="Delete*") == 0
    assert "Second" in line.objects.recorded()


def test_nothing_locked_is_said_and_nothing_is_deleted(line: Line) -> None:
    assert line.deploy().finish().code == 0
    before = line.objects.read("state.json")
    answer = line.scene.run("force-unlock", STACK, "--yes")
    assert answer.out == f"{STACK} (us-east-1) is not locked\n"
    assert line.objects.read("state.json") == before
    elsewhere = {"STACKHOLD_STATE_PREFIX": "other"}
    unknown = line.scene.start("force-unlock", STACK, "--yes", env=elsewhere).finish()
    assert unknown.code == 1
    assert unknown.err.startswith(f"stackhold: no stack {STACK} in us-east-1 in ")


def test_a_lock_that_is_no_json_counts_as_held_until_it_is_cleared(line: Line) -> None:
    line.objects.put("lock.json", b'{"owner": "half a lo')
    refused = line.deploy("--lock-timeout", "0").finish()
    assert refused.code == 1
    assert "holder   not readable: " in refused.err
    assert "lock.json" in refused.err
    assert "Only if no run is working on this stack:\n  stackhold force-unlock line " in refused.err
    assert line.objects.read("lock.json") == b'{"owner": "half a lo'
    assert line.in_cloud() == set()

    cleared = line.scene.run("force-unlock", STACK, "--yes")
    assert "not readable" in cleared.err
    assert LIVE in cleared.err
    assert line.objects.lock() is None
    assert line.deploy().finish().code == 0


class Terminal:
    """`stackhold` with a person at a terminal."""

    def __init__(self, line: Line, *args: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [STACKHOLD, *args],
            env=line.scene.env(),
            cwd=line.scene.folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def wait_shown(self, text: str, *, times: int = 1) -> None:
        """Read until a text has been shown so often."""

        def is_shown() -> bool:
            while select.select([self._ours], [], [], 0)[0]:
                try:
                    data = os.read(self._ours, 4096)
                except OSError:
                    break
                if not data:
                    break
                self.shown += data.decode().replace("\r\n", "\n")
            return self.shown.count(text) >= times

        wait_until(is_shown, f"{text!r} on the terminal")

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{text}\n".encode())

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(line: Line) -> Iterator[Terminal]:
    line.objects.put("lock.json", lock_of("maria@ci-7:4711"))
    made = Terminal(line, "force-unlock", STACK)
    yield made
    made.close()


def lock_of(owner: str) -> bytes:
    """A lock that another tool holds for another hour."""
    now = 1_900_000_000_000
    return json.dumps({"owner": owner, "timestamp": now, "expiresAt": now + 3_600_000, "operation": "deploy"}).encode()


def test_a_lock_that_changed_since_it_was_shown_is_shown_and_asked_about_again(line: Line, terminal: Terminal) -> None:
    question = f"Delete this lock of {STACK} (us-east-1)? [y/N]"
    terminal.wait_shown(question)
    assert "holder   maria@ci-7:4711, deploy" in terminal.shown
    assert LIVE in terminal.shown
    line.objects.put("lock.json", lock_of("nora@ci-8:4712"))
    terminal.type("y")

    terminal.wait_shown(question, times=2)
    assert f"The lock of {STACK} (us-east-1) has changed meanwhile; now:" in terminal.shown
    assert "holder   nora@ci-8:4712, deploy" in terminal.shown
    terminal.type("n")
    assert terminal.process.wait(PATIENCE_SECONDS) == 1
    terminal.wait_shown("stays locked; nothing was changed")
    assert line.objects.read("lock.json") == lock_of("nora@ci-8:4712")


def test_a_person_who_says_yes_to_what_was_shown_clears_it(line: Line, terminal: Terminal) -> None:
    terminal.wait_shown("[y/N]")
    terminal.type("yes")
    assert terminal.process.wait(PATIENCE_SECONDS) == 0
    terminal.wait_shown(f"{STACK} (us-east-1) is unlocked")
    assert line.objects.lock() is None


def test_a_script_gets_exactly_the_version_that_was_shown(bucket_line: Line) -> None:
    line = bucket_line
    line.objects.put("lock.json", lock_of("maria@ci-7:4711"))
    changed = threading.Event()

    def change(_: object) -> None:
        if not changed.is_set():
            changed.set()
            line.objects.put("lock.json", lock_of("nora@ci-8:4712"))

    line.proxy.add(Rule(service="s3", operation="DeleteObject", path="*/lock.json", before=change))
    answer = line.scene.run("force-unlock", STACK, "--yes", env={"AWS_ENDPOINT_URL": line.proxy.url})
    assert changed.is_set()
    assert "has changed meanwhile; now:" in answer.err
    assert answer.err.index("maria@ci-7:4711") < answer.err.index("nora@ci-8:4712")
    assert line.objects.lock() is None
