"""Fixtures of the stories: a scene per test, on either emulator."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import Line, in_bucket, line_in
from tests.stories.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.testing import emulators


@pytest.fixture
def scene(ministack: emulators.Emulator, tmp_path: Path) -> Iterator[Scene]:
    """A scene on ministack with a directory store; ends every process that it started."""
    made = Scene(emulator=ministack, folder=tmp_path, state=f"file:{tmp_path / 'state'}")
    yield made
    _end(made)


@pytest.fixture
def moto_scene(moto: emulators.Emulator, tmp_path: Path) -> Iterator[Scene]:
    """A scene on moto with a directory store."""
    made = Scene(emulator=moto, folder=tmp_path, state=f"file:{tmp_path / 'state'}")
    yield made
    _end(made)


@pytest.fixture(params=["directory", "s3"])
def line(request: pytest.FixtureRequest, scene: Scene) -> Iterator[Line]:
    """The stack `line` on either store."""
    with line_in(scene if request.param == "directory" else in_bucket(scene)) as made:
        yield made


@pytest.fixture
def bucket_line(scene: Scene) -> Iterator[Line]:
    """The stack `line` with its state in a bucket."""
    with line_in(in_bucket(scene)) as made:
        yield made


def _end(scene: Scene) -> None:
    for running in scene.started:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGCONT)
            running.process.kill()
        running.process.communicate()


@pytest.fixture
def cases() -> Path:
    """The folder of real templates and records; skipped where nobody names it."""
    named = os.environ.get("STACKHOLD_CASES")
    if not named:
        pytest.skip("STACKHOLD_CASES does not name the folder of real templates and records")
    return Path(named)
