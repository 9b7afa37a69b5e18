from __future__ import annotations

import os
import re
import shlex
import socket
from typing import TYPE_CHECKING

import pytest

from stackhold.cli.running import run_settings
from stackhold.cli.settings import load_settings
from stackhold.cli.signals import exit_code_after
from stackhold.cli.wiring import Wiring, owner
from stackhold.model.ids import Region, StackName
from stackhold.model.run import StopCause
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
        ({}, "--state file:.stackhold"),
        ({"state": "s3://acme-state"}, "--state s3://acme-state"),
        ({"state": "s3://acme-state", "state_prefix": "cdkd"}, "--state s3://acme-state --state-prefix cdkd"),
        ({"profile": "my profile"}, "--state file:.stackhold --profile 'my profile'"),
        ({"allow_network_dir": "true"}, "--state file:.stackhold --allow-network-dir"),
    ],
)
def test_the_printed_command_has_every_flag_that_decides_which_lock_it_means(
    tmp_path: Path, flags: Mapping[str, str], rest: str
) -> None:
    command = wiring(tmp_path, **flags).command("force-unlock", STACK, REGION)
    assert command == f"stackhold force-unlock payments --region eu-west-1 {rest}"


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


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (StopCause.SIGINT, 130),
        (StopCause.SIGTERM, 143),
        (StopCause.CANCEL, 143),
        (StopCause.DEADLINE, 130),
        (None, 130),
    ],
)
def test_a_second_signal_exits_with_the_code_of_the_first(cause: StopCause | None, code: int) -> None:
    assert exit_code_after(cause) == code
