"""What is read of a run that died: its streams, in the order of its steps."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from stackhold.engines.terraform.company import mark
from stackhold.engines.terraform.evidence import STREAMS, evidence_of, redact_dumps
from stackhold.engines.terraform.leftovers import StepNote
from stackhold.model.instant import Instant

GOLDEN = Path(__file__).parents[2] / "golden/terraform"
RUNTIMES = sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir())


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    (tmp_path / STREAMS).mkdir()
    return tmp_path


def note(workdir: Path, step: str) -> StepNote:
    return StepNote("run-1", step, Instant(0), "maria@ci", "b", "/job/net", str(workdir))


def put(workdir: Path, name: str, recording: Path) -> None:
    shutil.copyfile(recording, workdir / STREAMS / name)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_was_touched_and_when_the_lock_was_held_come_from_the_streams(workdir: Path, runtime: str) -> None:
    put(workdir, "03-plan.out", GOLDEN / runtime / "plan-blocks.jsonl")
    put(workdir, "05-apply.out", GOLDEN / runtime / "apply.jsonl")
    found = evidence_of(note(workdir, "apply"))
    assert {each.action for each in found.touched} == {"create"}
    assert found.first_past_lock is not None
    assert not found.is_running


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_stream_of_another_step_proves_nothing(workdir: Path, runtime: str) -> None:
    put(workdir, "03-plan.out", GOLDEN / runtime / "plan-blocks.jsonl")
    assert evidence_of(note(workdir, "apply")).first_past_lock is None


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_state_that_is_only_in_a_stream_is_found_and_then_taken_out_of_it(workdir: Path, runtime: str) -> None:
    put(workdir, "05-apply.out", GOLDEN / runtime / "emergency-dump.jsonl")
    state = evidence_of(note(workdir, "apply")).emergency_state
    assert state is not None
    assert b'"lineage"' in state
    redact_dumps(workdir / STREAMS)
    left = (workdir / STREAMS / "05-apply.out").read_bytes()
    assert b"lineage" not in left
    after = evidence_of(note(workdir, "apply"))
    assert after.emergency_state is None
    assert after.touched


def test_without_streams_the_note_is_all(tmp_path: Path) -> None:
    found = evidence_of(note(tmp_path / "gone", "apply"))
    assert found.touched == ()
    assert found.first_past_lock is None


def test_a_process_that_is_alive_is_still_at_work(workdir: Path) -> None:
    mark(os.getpid(), workdir / STREAMS / "05-apply.pid")
    assert evidence_of(note(workdir, "apply")).is_running
