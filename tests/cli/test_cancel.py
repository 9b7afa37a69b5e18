from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.typing_scene import Shell
from tests.runs.lock_scene import LOCK_ID, OWNER, LockScene

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.model.codec import decode_stop_request
from stackhold.ports.store import Stored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def scene(shell: Shell) -> LockScene:
    clock = SystemClock()
    return LockScene(store=DirectoryStore(shell.cwd / ".stackhold", clock=clock), clock=clock)


def test_the_holder_is_asked(shell: Shell, scene: LockScene) -> None:
    scene.lock()
    typed = shell.type("cancel", "payments", "--json")
    assert typed.code == 0
    assert typed.json()["asked"] == OWNER
    found = scene.store.read(scene.keys.stop_request)
    assert isinstance(found, Stored)
    assert decode_stop_request(found.data, key="x").lock_id == LOCK_ID


def test_nobody_to_ask_is_said_and_exits_1(shell: Shell, scene: LockScene) -> None:
    scene.record()
    typed = shell.type("cancel", "payments")
    assert (typed.code, "there is no run to stop" in typed.err) == (1, True)


def test_another_tools_lock_cannot_be_asked(shell: Shell, scene: LockScene) -> None:
    scene.lock(lock_id=None)
    typed = shell.type("cancel", "payments")
    assert (typed.code, "whose lock has no id" in typed.err) == (1, True)
