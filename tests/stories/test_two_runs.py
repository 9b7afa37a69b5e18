"""Two or more real processes on one stack: who waits, who fails, what they say, and that no two ever act at once."""

from __future__ import annotations

import itertools
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.both_stores import LINE, STACK, Line, Objects, owner_of
from tests.stories.scene import STACKHOLD

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.story]

REGION = "eu-west-1"
PREFIX = "team/payments"
CONFIG = """
[profile "acme dev"]
aws_access_key_id = test
aws_secret_access_key = test
"""
MANY = 8


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another folder than the one that the runs work in."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def type_in_shell(line: Line, command: str, *, folder: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a printed command as a user would: by a shell, from some folder, without the settings of our own."""
    known = {name: text for name, text in line.scene.env(env).items() if not name.startswith("STACKHOLD_")}
    path = f"{STACKHOLD.rpartition('/')[0]}:{known['PATH']}"
    return subprocess.run(
        command, shell=True, cwd=folder, env={**known, "PATH": path}, capture_output=True, text=True, timeout=60
    )


def test_a_second_deploy_tries_three_times_more_and_prints_the_command_that_clears_this_very_lock(
    line: Line, elsewhere: Path
) -> None:
    env = {"AWS_CONFIG_FILE": str(line.scene.write("aws.ini", CONFIG))}
    flags = ("--region", REGION, "--state-prefix", PREFIX, "--profile", "acme dev")
    locked, other = Objects(line.scene, prefix=PREFIX, region=REGION), Objects(line.scene)
    other.put("lock.json", b'{"owner": "another@stack:1", "timestamp": 1, "expiresAt": 1, "operation": "deploy"}')
    held = line.hold()
    first = line.deploy(*flags, by=line.proxy, env=env)
    first.wait_caught(held)

    second = line.deploy(*flags, env=env).finish()
    assert second.code == 1
    assert re.search(rf"{STACK} \({REGION}\) is locked; tried 4 times in [67] s\b", second.err), second.err
    assert re.search(rf"holder   {re.escape(owner_of(first))}, deploy, since \d\d:\d\d:\d\dZ", second.err)
    assert re.search(r"alive    renewed \d+ s ago; expires \d\d:\d\d:\d\dZ if it falls silent", second.err)
    assert "Nothing was changed. Wait for it, or, only if that process is gone:\n" in second.err
    command = second.err.rstrip().splitlines()[-1].strip()
    assert command.startswith(f"stackhold force-unlock {STACK} --region {REGION} --state ")

    cleared = type_in_shell(line, f"{command} --yes", folder=elsewhere, env=env)
    assert cleared.returncode == 0, cleared.stderr
    assert f"{STACK} ({REGION}) is unlocked" in cleared.stdout
    assert owner_of(first) in cleared.stderr
    assert locked.lock() is None
    assert set(locked.recorded()) == {"First"}
    assert other.lock() is not None


def test_the_printed_command_finds_the_default_folder_from_elsewhere(line: Line, elsewhere: Path) -> None:
    if not line.objects.is_local:
        pytest.skip("only a folder can be named relatively")
    line.scene.state = ""
    lock = line.scene.folder / ".stackhold" / "stackhold" / STACK / "us-east-1" / "lock.json"
    held = line.hold()
    line.deploy(by=line.proxy).wait_caught(held)
    refused = line.scene.run("destroy", STACK, "--yes", expect=1)
    assert lock.exists()
    command = refused.err.rstrip().splitlines()[-1].strip()
    cleared = type_in_shell(line, f"{command} --yes", folder=elsewhere, env={})
    assert cleared.returncode == 0, cleared.stderr
    assert not lock.exists()


def test_a_lock_timeout_waits_and_wins_while_destroy_fails_at_once(line: Line) -> None:
    held = line.hold()
    first = line.deploy(by=line.proxy)
    first.wait_caught(held)

    waiting = line.deploy("--lock-timeout", "50s", made="two")
    waiting.wait_said(f"waiting for the lock, held by {owner_of(first)}, deploy since ")
    refused = line.scene.run("destroy", STACK, "--yes", expect=1)
    assert refused.err.startswith(f"stackhold: {STACK} (us-east-1) is locked\n")
    assert owner_of(first) in refused.err
    assert "waiting" not in refused.out + refused.err
    assert line.in_cloud() == {"line-first-one"}

    held.release()
    assert first.finish().code == 0
    won = waiting.finish()
    assert won.code == 0, won.err
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.in_cloud() == {"line-first-two", "line-second-two"}
    assert line.objects.lock() is None
    assert line.objects.runs()[-1]["waitedMs"] > 0


def test_of_eight_deploys_at_once_each_gets_the_lock_in_turn(line: Line) -> None:
    line.scene.write("line.yaml", LINE.replace("${Made}", "same"))
    started = [line.deploy("--lock-timeout", "60s", made=f"value-{number}") for number in range(MANY)]
    ended = [run.finish(timeout=120) for run in started]
    assert [result.code for result in ended] == [0] * MANY, [result.err for result in ended if result.code]

    runs = line.objects.runs()
    assert {run["owner"] for run in runs} == {owner_of(run) for run in started}
    spans = sorted((moment_of(run, "lock-acquired"), moment_of(run, "run-finished")) for run in runs)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans)), spans
    assert len({run["lockId"] for run in runs}) == MANY

    last = max(runs, key=lambda run: int(moment_of(run, "run-finished")))
    record = line.objects.json("state.json")
    assert record is not None
    assert record["lockId"] == last["lockId"]
    assert record["generation"] == last["generation"] == max(run["generation"] for run in runs)
    values = {name: each["properties"]["Value"] for name, each in record["resources"].items()}
    found = line.scene.client("ssm").get_parameters(Names=["line-first-same", "line-second-same"])["Parameters"]
    assert {each["Value"] for each in found} == set(values.values())
    assert len(found) == len(values) == 2
    assert len(set(values.values())) == 1
    assert line.objects.lock() is None
    assert line.objects.read("run.json") is None


def moment_of(run: dict[str, Any], kind: str) -> int:
    """When a run told an event."""
    return next(int(each["at"]) for each in run["events"] if each["kind"] == kind)
