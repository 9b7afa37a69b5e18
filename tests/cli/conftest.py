"""A scene for commands as real processes against the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.stories.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

    from stackhold.testing import emulators


@pytest.fixture(params=["directory", "bucket"])
def scene(request: pytest.FixtureRequest, ministack: emulators.Emulator, tmp_path: Path) -> Scene:
    """A scene on ministack, its state in a directory and in a bucket made by `bootstrap`."""
    made = Scene(emulator=ministack, folder=tmp_path, state=f"file:{tmp_path / 'state'}")
    if request.param == "bucket":
        made.state = "s3://state-of-commands"
        made.run("bootstrap")
    return made
