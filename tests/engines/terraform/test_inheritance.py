"""What becomes of a state that could not be written, at the end of the run that could not write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from stackhold.engines.terraform.inheritance import Inheritance
from stackhold.engines.terraform.steps import Operation, Script
from stackhold.engines.terraform.taking import Host, StepEnd, Workshop

if TYPE_CHECKING:
    from pathlib import Path

    from stackhold.engines.terraform.steps import Step

STATE = json.dumps({"version": 4, "serial": 3, "lineage": "l", "resources": []})


def nothing_is_taken(step: Step) -> StepEnd:
    raise AssertionError(step)


def inheritance(tmp_path: Path, directory: Path) -> Inheritance:
    streams = tmp_path / "runs/one/streams"
    streams.mkdir(parents=True)
    workshop = Workshop((), directory, {}, streams, cast("Host", None), module=tmp_path / "module")
    return Inheritance(workshop, Script(Operation.APPLY, 0), (), nothing_is_taken)


@pytest.fixture
def left(tmp_path: Path, request: Any) -> Path:
    for name in ("module", "overlay"):
        (tmp_path / name).mkdir()
    file = tmp_path / str(request.param) / "errored.tfstate"
    file.write_text(STATE)
    file.chmod(0o644)
    return file


@pytest.mark.parametrize("left", ["module"], indirect=True)
def test_a_state_that_is_left_in_the_module_is_for_its_owner_alone_and_named(tmp_path: Path, left: Path) -> None:
    kept = inheritance(tmp_path, left.parent)
    kept.rescue()
    assert left.stat().st_mode & 0o777 == 0o600
    assert str(left) in kept.notes[0]


@pytest.mark.parametrize("left", ["overlay"], indirect=True)
def test_a_state_that_is_left_in_an_overlay_comes_to_the_module(tmp_path: Path, left: Path) -> None:
    inheritance(tmp_path, left.parent).rescue()
    assert not left.exists()
    found = tmp_path / "module/errored.tfstate"
    assert found.read_text() == STATE
    assert found.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("left", ["module"], indirect=True)
def test_where_nothing_is_left_nothing_is_said(tmp_path: Path, left: Path) -> None:
    left.unlink()
    kept = inheritance(tmp_path, left.parent)
    kept.rescue()
    assert kept.notes == []
