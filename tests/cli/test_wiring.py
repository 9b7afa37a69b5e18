from __future__ import annotations

import fcntl
import os
import re
import shlex
import socket
from typing import TYPE_CHECKING

import pytest

from stackhold.cli.running import run_settings
from stackhold.cli.settings import load_settings
from stackhold.cli.wiring import Wiring, owner
from stackhold.decide.fence import margins
from stackhold.errors import StoreUnreachable
from stackhold.model.ids import Region, StackName
from stackhold.runs.settings import FixedWait, RetryWait

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STACK, REGION = StackName("payments"), Region("eu-west-1")


def wiring(cwd: Path, **flags: str) -> Wiring:
    return Wiring(load_settings(flags, environ={}, cwd=cwd))


@pytest.mark.parametrize(
    ("flags", "rest"),
    [
        ({}, "--state file:{cwd}/.stackhold"),
        ({"state": "s3://acme-state"}, "--state s3://acme-state"),
        ({"state": "s3://acme-state", "state_prefix": "cdkd"}, "--state s3://acme-state --state-prefix cdkd"),
        ({"state_prefix": "stackhold"}, "--state file:{cwd}/.stackhold --state-prefix stackhold"),
        ({"profile": "my profile"}, "--state file:{cwd}/.stackhold --profile 'my profile'"),
        ({"allow_network_dir": "true"}, "--state file:{cwd}/.stackhold --allow-network-dir"),
    ],
)
def test_the_printed_command_has_every_flag_that_decides_which_lock_it_means(
    tmp_path: Path, flags: Mapping[str, str], rest: str
) -> None:
    command = wiring(tmp_path, **flags).command("force-unlock", STACK, REGION)
    assert command == f"stackhold force-unlock payments --region eu-west-1 {rest.format(cwd=tmp_path)}"


def test_a_directory_that_is_not_the_default_is_named_absolutely_and_quoted(tmp_path: Path) -> None:
    command = wiring(tmp_path, state="file:my state").command("force-unlock", STACK, REGION)
    assert shlex.split(command)[-1] == f"file:{tmp_path / 'my state'}"


def test_the_owner_is_user_host_and_pid() -> None:
    assert re.fullmatch(rf"[^@]+@{re.escape(socket.gethostname())}:{os.getpid()}", owner())


def test_run_ids_sort_by_time_and_never_repeat(tmp_path: Path) -> None:
    made = [
        wiring(tmp_path).identity(stack=STACK, region=REGION, operation="deploy", engine="cloudformation").run_id
        for _ in range(3)
    ]
    assert all(re.fullmatch(r"\d{8}T\d{9}Z-[0-9a-f]{8}", run_id) for run_id in made)
    assert len(set(made)) == 3
    assert [run_id[:19] for run_id in made] == sorted(run_id[:19] for run_id in made)


@pytest.mark.parametrize(
    ("operation", "flags", "wait"),
    [
        ("deploy", {}, RetryWait(attempts=3, pause_ms=2_000)),
        ("destroy", {}, FixedWait(0)),
        ("deploy", {"lock_timeout": "5m"}, FixedWait(300_000, "--lock-timeout")),
        ("destroy", {"lock_timeout": "0"}, FixedWait(0, "--lock-timeout")),
    ],
)
def test_each_command_waits_for_the_lock_in_its_own_way(
    tmp_path: Path, operation: str, flags: Mapping[str, str], wait: object
) -> None:
    settings = load_settings(flags, environ={}, cwd=tmp_path)
    assert run_settings(settings, operation=operation, unlock_command="x").lock_wait == wait


def test_no_call_to_the_cloud_or_to_a_store_outlasts_the_margin_of_a_short_ttl(tmp_path: Path) -> None:
    ttl_ms, budget_ms = 6_000, 800
    assert budget_ms == margins(ttl_ms).call_budget_ms
    made = wiring(tmp_path, lock_ttl="6", lock_renew="1", region="us-east-1")
    timeouts = made.session.timeouts
    assert timeouts.budget == budget_ms
    assert timeouts.connect + min(timeouts.read, timeouts.budget - timeouts.connect) <= budget_ms

    folder = tmp_path / ".stackhold" / "payments"
    made.store.write("payments/lock.json", b"1", expect=None)
    with (folder / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        before = made.clock.boot()
        with pytest.raises(StoreUnreachable):
            made.store.write("payments/lock.json", b"2", expect=None)
    assert budget_ms <= made.clock.boot() - before < ttl_ms


def test_with_the_usual_ttl_a_call_has_four_minutes(tmp_path: Path) -> None:
    assert wiring(tmp_path, region="us-east-1").session.timeouts.budget == 240_000


@pytest.mark.parametrize(
    ("named", "keys", "insists"),
    [
        ({"AWS_PROFILE": "team"}, "", "team"),
        ({"AWS_PROFILE": "team"}, "AKIA", None),
        ({"STACKHOLD_PROFILE": "team"}, "AKIA", "team"),
    ],
)
def test_keys_in_the_environment_count_more_than_a_profile_that_only_aws_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: Mapping[str, str], keys: str, insists: str | None
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys)
    made = Wiring(load_settings({}, environ=named, cwd=tmp_path))
    assert made.session.profile == insists


def test_the_region_of_new_stacks_comes_with_what_says_so(tmp_path: Path) -> None:
    made = Wiring(load_settings({}, environ={"AWS_REGION": "eu-west-1"}, cwd=tmp_path))
    assert made.region_and_source() == ("eu-west-1", "AWS_REGION")
