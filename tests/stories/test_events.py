"""What runs leave behind and show while they work: `stackhold events`, and the check of both clocks before a run."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import Watched, owner_of
from tests.stories.scene import wait_until
from tests.stories.slow_chain import STACK, Chain, chain_in

from stackhold._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.stories.scene import Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def test_events_reads_back_who_ran_what_under_which_clocks_and_how_it_ended(chain: Chain) -> None:
    held = chain.hold()
    first = Watched(chain.deploy("--deadline", "10m", "--lock-timeout", "20s"))
    held.wait_reached()
    second = Watched(chain.deploy("--lock-timeout", "50s"))
    second.wait_said("waiting for the lock")
    held.release()
    assert first.finish().code == 0
    assert second.finish().code == 0
    destroyed = Watched(chain.destroy())
    assert destroyed.finish().code == 0

    runs = chain.scene.run("events", STACK, "--json").json()["runs"]
    assert [(each["operation"], each["outcome"], each["exitCode"]) for each in runs] == [
        ("deploy", "succeeded", 0),
        ("deploy", "succeeded", 0),
        ("destroy", "succeeded", 0),
    ]
    assert [each["owner"] for each in runs] == [owner_of(run) for run in (first, second, destroyed)]
    assert {(each["engine"], each["stackholdVersion"]) for each in runs} == {("cloudformation", __version__)}
    assert all(each["startedAt"] <= each["endedAt"] for each in runs)
    assert [(each["deadlineMs"], each["lockWait"]) for each in runs] == [
        (600_000, "20 s"),
        (3_600_000, "50 s"),
        (3_600_000, "no wait"),
    ]
    assert runs[0]["waitedMs"] == 0 < runs[1]["waitedMs"]
    timings = {each["logicalId"]: each["durationMs"] for each in runs[0]["summary"]["resources"]}
    assert timings.keys() == {"First", "Second", "Third"}
    assert timings["Second"] > timings["Third"] >= 0

    listed = chain.scene.run("events", STACK).out.splitlines()
    assert [line.split()[3] for line in listed[1:]] == ["deploy", "deploy", "destroy"]
    shown = chain.scene.run("events", STACK, "--run", runs[1]["runId"][:-3]).out
    assert f"deploy of {STACK} (us-east-1) by {owner_of(second)}" in shown
    assert f"cloudformation, stackhold {__version__}" in shown
    assert "deadline 1 h 0 m; lock wait 50 s, waited " in shown
    waiting = next(line for line in shown.splitlines() if "waiting for the lock" in line)
    assert owner_of(first) in waiting
    assert "succeeded after " in shown


def test_events_names_how_a_run_was_stopped_and_which_were_killed(chain: Chain) -> None:
    held = chain.hold(skip=0)
    running = chain.deploy()
    held.wait_reached()
    running.signal(signal.SIGTERM)
    chain.wait_told("stopping")
    held.release()
    assert running.finish().code == 143
    killed_at = chain.hold(skip=0)
    killed = chain.deploy()
    killed_at.wait_reached()
    wait_until(lambda: len(chain.runs()) == 2, "the second run's log")
    killed.signal(signal.SIGKILL)
    killed.finish()

    listed = chain.scene.run("events", STACK).out.splitlines()
    assert "interrupted" in listed[1]
    assert "no end" in listed[2]
    assert [each.get("outcome") for each in chain.runs()] == ["interrupted", None]
    assert "stopped by SIGTERM" in chain.runs()[0]["error"]


def test_follow_shows_a_slow_deploy_live_and_ends_with_it(chain: Chain) -> None:
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    follower = Watched(chain.scene.start("events", STACK, "--follow"))
    for_programs = Watched(chain.scene.start("events", STACK, "--follow", "--json"))
    follower.wait_said("create   First  AWS::SSM::Parameter  done")
    follower.wait_said("create   Second  AWS::SSM::Parameter  started")
    for_programs.wait_said("create   Second  AWS::SSM::Parameter  started")
    assert "Third" not in follower.said
    assert follower.running.process.poll() is None
    held.release()
    assert running.finish().code == 0

    shown = follower.finish()
    assert shown.code == 0
    assert shown.err == ""
    assert shown.out.count("create   First  AWS::SSM::Parameter  started") == 1
    assert "create   Third  AWS::SSM::Parameter  done" in shown.out
    assert shown.out.splitlines()[-1].startswith("succeeded after ")
    document = for_programs.finish().json()
    assert (document["outcome"], document["exitCode"], document["isKilled"]) == ("succeeded", 0, False)
    refused = chain.scene.run("events", STACK, "--follow", expect=1)
    assert f"no run is at work on {STACK} (us-east-1)" in refused.err


def test_follow_ends_when_the_run_was_killed_and_its_lock_cleared(chain: Chain) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy()
    held.wait_reached()
    follower = Watched(chain.scene.start("events", STACK, "--follow", "--json"))
    follower.wait_said("create   Second")
    running.signal(signal.SIGKILL)
    running.finish()
    chain.scene.run("force-unlock", STACK, "--yes")
    result = follower.finish()
    assert result.code == 0
    assert json.loads(result.out)["isKilled"] is True


@pytest.mark.parametrize(
    ("flags", "env", "wait", "deadline"),
    [
        (["--lock-timeout", "20s", "--deadline", "20"], {}, "20 s, from --lock-timeout", "20 s, from --deadline"),
        (
            ["--deadline", "5s"],
            {"STACKHOLD_LOCK_TIMEOUT": "7"},
            "7 s, from STACKHOLD_LOCK_TIMEOUT",
            "5 s, from --deadline",
        ),
        (["--deadline", "6"], {}, "6 s, the built-in default", "6 s, from --deadline"),
    ],
)
def test_a_lock_wait_that_is_not_below_the_deadline_starts_no_run_and_names_both_with_their_source(
    chain: Chain, flags: list[str], env: Mapping[str, str], wait: str, deadline: str
) -> None:
    result = chain.deploy(*flags, env=dict(env)).finish()
    assert result.code == 1
    assert result.err.splitlines()[0] == (
        f"stackhold: the lock wait ({wait}) must be less than the deadline ({deadline})"
    )
    assert not chain.scene.file(STACK, "").exists()
    assert chain.proxy.count(operation="Put*") == 0


def test_the_file_is_named_when_a_clock_is_set_there_and_a_destroy_is_not_held_back(chain: Chain) -> None:
    chain.deployed()
    path = chain.scene.write("stackhold.toml", 'deadline = "1m"\nlock_timeout = "5m"\n')
    refused = chain.deploy("--json").finish()
    assert refused.code == 1
    error = refused.json()["error"]
    assert error["kind"] == "PolicyInvalid"
    assert f"the lock wait (300 s, from lock_timeout in {path})" in error["message"]
    assert f"the deadline (60 s, from deadline in {path})" in error["message"]
    assert len(chain.runs()) == 1
    assert chain.destroy().finish().code == 0
    assert not chain.in_cloud()
