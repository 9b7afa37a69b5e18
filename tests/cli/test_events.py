from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.cli.typing_scene import Shell
from tests.runs.lock_scene import OWNER, RUN, LockScene

from stackhold.adapters.clock import SystemClock
from stackhold.adapters.files import DirectoryStore
from stackhold.model.events import Event, EventKind
from stackhold.model.ids import LogicalId, RunId
from stackhold.model.instant import Instant
from stackhold.model.run import Outcome

if TYPE_CHECKING:
    from pathlib import Path

LATER = RunId("20250101T000000000Z-00000000")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def scene(shell: Shell) -> LockScene:
    clock = SystemClock()
    scene = LockScene(store=DirectoryStore(shell.cwd / ".stackhold", clock=clock), clock=clock)
    log = scene.log()
    done = Event(
        EventKind.OPERATION_DONE,
        Instant(log.started_at + 900),
        LogicalId("Orders"),
        data={"type": "AWS::SQS::Queue", "operation": "create", "durationMs": 800},
    )
    scene.write_log(
        replace(
            log,
            events=(done,),
            ended_at=Instant(log.started_at + 5_000),
            outcome=Outcome.SUCCEEDED,
            exit_code=0,
        )
    )
    scene.log(LATER)
    return scene


def test_runs_are_listed_oldest_first_with_their_outcome(shell: Shell, scene: LockScene) -> None:
    lines = shell.type("events", "payments").out.splitlines()
    assert [line.split()[2] for line in lines[1:]] == [RUN, LATER]
    assert "succeeded  5 s" in lines[1]
    assert "no end" in lines[2]
    assert lines[1].endswith(OWNER)


def test_one_run_is_shown_in_full(shell: Shell, scene: LockScene) -> None:
    text = shell.type("events", "payments", "--run", RUN).out
    assert f"deploy of payments (eu-west-1) by {OWNER}" in text
    assert "create   Orders  AWS::SQS::Queue  done in 0.8 s" in text
    assert text.endswith("succeeded after 5 s, exit code 0\n")
    assert shell.type("events", "payments", "--run", RUN, "--json").json()["outcome"] == "succeeded"


def test_the_beginning_of_a_run_id_will_do_when_it_is_unique(shell: Shell, scene: LockScene) -> None:
    assert shell.type("events", "payments", "--run", "2024").code == 0
    typed = shell.type("events", "payments", "--run", "20")
    assert (typed.code, "begins 2 runs" in typed.err) == (1, True)
    assert shell.type("events", "payments", "--run", "x").code == 1


def test_following_a_run_that_has_ended_shows_it_and_ends(shell: Shell, scene: LockScene) -> None:
    typed = shell.type("events", "payments", "--follow", "--run", RUN, "--json")
    assert typed.code == 0
    assert typed.json()["isKilled"] is False
    assert "create   Orders" in typed.err


def test_with_no_run_at_work_there_is_nothing_to_follow(shell: Shell, scene: LockScene) -> None:
    typed = shell.type("events", "payments", "--follow")
    assert (typed.code, "no run is at work on payments" in typed.err) == (1, True)


def test_a_damaged_log_is_a_row_that_says_so_and_hides_no_other(shell: Shell, scene: LockScene) -> None:
    scene.store.write(scene.keys.event(RunId("20260101T000000000Z-11111111")), b"{ not", expect=None)
    shown = shell.type("events", "payments")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [line.split()[0] for line in lines[1:4]].count("-") == 1
    assert "unreadable" in next(line for line in lines[1:4] if "11111111" in line)
    assert lines[-1].startswith("unreadable: ")
    assert "11111111.json" in lines[-1]
    runs = shell.type("events", "payments", "--json").json()["runs"]
    assert [run["runId"] for run in runs if "unreadable" in run] == ["20260101T000000000Z-11111111"]
    assert len(runs) == 3


def test_a_damaged_log_does_not_keep_the_run_at_work_from_being_found(shell: Shell, scene: LockScene) -> None:
    scene.store.write(scene.keys.event(RunId("99990101T000000000Z-11111111")), b"{ not", expect=None)
    assert "no run is at work" in shell.type("events", "payments", "--follow").err
