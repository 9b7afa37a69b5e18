from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.cli.typing_scene import Shell
from tests.runs.lock_scene import OWNER, LockScene

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.ports.store import Absent

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def scene(shell: Shell) -> LockScene:
    clock = SystemClock()
    return LockScene(store=DirectoryStore(shell.cwd / ".stackhold", clock=clock), clock=clock)


def test_the_holder_is_shown_and_a_live_lock_called_live(shell: Shell, scene: LockScene) -> None:
    scene.lock()
    typed = shell.type("force-unlock", "payments", "--yes")
    assert typed.code == 0
    assert typed.out == "payments (eu-west-1) is unlocked\n"
    assert f"holder   {OWNER}, deploy, since" in typed.err
    assert "WARNING: this lock is LIVE" in typed.err
    assert isinstance(scene.store.read(scene.keys.lock), Absent)


def test_without_yes_and_with_nobody_to_ask_the_lock_stays(shell: Shell, scene: LockScene) -> None:
    scene.lock()
    typed = shell.type("force-unlock", "payments")
    assert typed.code == 1
    assert "nobody can be asked here" in typed.err
    assert not isinstance(scene.store.read(scene.keys.lock), Absent)


def test_a_holder_on_this_host_is_pointed_out(shell: Shell, scene: LockScene) -> None:
    scene.lock(owner=f"maria@{socket.gethostname()}:{os.getpid()}")
    typed = shell.type("force-unlock", "payments", "--yes")
    assert f"its process {os.getpid()} is running on this very host" in typed.err


def test_a_holder_that_has_ended_on_this_host_is_said_to_be_gone_and_not_called_live(
    shell: Shell, scene: LockScene
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    scene.lock(owner=f"maria@{socket.gethostname()}:{ended.pid}")
    assert f":{ended.pid} (process gone), deploy" in shell.type("state", "list", "--long").out
    assert "may not hear this" in shell.type("cancel", "payments").err
    typed = shell.type("force-unlock", "payments", "--yes")
    assert f"process  {ended.pid} is no longer running on this host" in typed.err
    assert "WARNING" not in typed.err


def test_a_lock_that_is_no_json_is_shown_as_such_and_cleared(shell: Shell, scene: LockScene) -> None:
    scene.put(scene.keys.lock, b"{")
    typed = shell.type("force-unlock", "payments", "--yes", "--json")
    assert typed.code == 0
    assert typed.json()["result"] == "deleted"
    assert "not readable" in typed.err


def test_without_a_lock_there_is_nothing_to_do(shell: Shell, scene: LockScene) -> None:
    scene.record()
    typed = shell.type("force-unlock", "payments", "--yes")
    assert (typed.code, typed.out) == (0, "payments (eu-west-1) is not locked\n")
