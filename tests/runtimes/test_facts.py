"""What the engine's design takes for granted about the runtimes, held against the real ones.

When one of these fails on a new version, the engine has to be looked at, not the test alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Literal

import pytest
from tests.runtimes.probe_server import Fault, ProbeServer

if TYPE_CHECKING:
    from tests.runtimes import modules

pytestmark = pytest.mark.runtimes


def test_only_steps_that_take_the_lock_know_the_lock_timeout(thing: modules.Module) -> None:
    knows = "-lock-timeout=7s"
    thing.tf("init", knows)
    thing.tf("plan", knows, "-out=plan")
    thing.tf("apply", knows, "plan")
    thing.tf("apply", "-refresh-only", "-auto-approve", knows)
    (thing.folder / "pushed").write_text(thing.tf("state", "pull"))
    thing.tf("state", "push", "-force", knows, "pushed")
    thing.tf("destroy", "-auto-approve", knows)
    for refusing in (
        ("validate", knows, "-json"),
        ("show", knows, "-json", "plan"),
        ("state", "list", knows),
        ("force-unlock", knows, "-force", "some-id"),
        ("version", knows, "-json"),
    ):
        done = thing.runtime.run(*refusing, folder=thing.folder, env=thing.env)
        assert done.returncode != 0, refusing
        assert "lock-timeout" in done.stdout + done.stderr, refusing


@pytest.fixture
def held(thing: modules.Module, probe: ProbeServer) -> modules.Module:
    """A module whose lock an apply holds, in the middle of its create."""
    probe.add(Fault("create", "only", times=1, hang=True))
    thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: bool(server.requests("create")))
    return thing


def planned(module: modules.Module, *arguments: str) -> tuple[float, int, list[dict[str, Any]]]:
    begun = time.monotonic()
    done = module.runtime.run("plan", "-json", *arguments, folder=module.folder, env=module.env)
    took = time.monotonic() - begun
    return took, done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def errors(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one["diagnostic"] for one in events if one.get("diagnostic", {}).get("severity") == "error"]


def test_a_held_lock_is_named_at_once_or_when_the_wait_is_over(held: modules.Module) -> None:
    _, code, events = planned(held, "-lock-timeout=0s")
    assert code == 1
    assert [one["summary"] for one in errors(events)] == ["Error acquiring the state lock"]
    detail = errors(events)[0]["detail"]
    assert "Lock Info:\n  ID: " in detail
    assert "OperationTypeApply" in detail
    waited, code, events = planned(held, "-lock-timeout=3s")
    assert code == 1
    assert [one["summary"] for one in errors(events)] == ["Error acquiring the state lock"]
    assert waited >= 3


def test_init_succeeds_while_the_lock_is_held(held: modules.Module) -> None:
    held.tf("init", "-lock-timeout=0s")


def test_a_wait_for_the_lock_ends_by_a_signal_as_a_held_lock(held: modules.Module) -> None:
    process = subprocess.Popen(
        [*held.runtime.command, "plan", "-json", "-lock-timeout=300s"],
        cwd=held.folder,
        env=held.env,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(2.0)
    process.send_signal(signal.SIGTERM)
    events = [json.loads(line) for line in [first, *process.communicate(timeout=60)[0].splitlines()]]
    assert process.returncode == 1
    assert "Error acquiring the state lock" in [one["summary"] for one in errors(events)]


def test_a_broken_variables_file_may_end_as_a_good_plan_with_an_error_in_its_stream(thing: modules.Module) -> None:
    (thing.folder / "terraform.tfvars").write_text("value = \n")
    _, code, events = planned(thing, "-detailed-exitcode", "-out=plan")
    assert errors(events)
    is_good = thing.runtime.name == "embedded"
    assert code == (2 if is_good else 1)
    assert (thing.folder / "plan").exists() == is_good


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_frees_the_lock_and_writes_what_was_made(
    chain: modules.Module, probe: ProbeServer, signum: signal.Signals
) -> None:
    probe.add(Fault("create", "second", times=1, hang=True))
    process = chain.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: len(server.requests("create")) == 2)
    process.send_signal(signum)
    assert process.wait(60) == 1
    assert chain.resources() == ["probe_thing.first", "time_static.made"]
    assert errors(chain.events())
    chain.tf("plan", "-lock-timeout=0s")


def test_the_stream_names_what_was_made_and_what_may_exist(chain: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "second", times=1, hang=True))
    process = chain.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: len(server.requests("create")) == 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    hooks = [(one["type"], one["hook"]) for one in chain.events() if one["type"].startswith("apply_")]
    made = {hook["resource"]["addr"]: hook.get("id_value") for kind, hook in hooks if kind == "apply_complete"}
    begun = {hook["resource"]["addr"] for kind, hook in hooks if kind == "apply_start"}
    assert made["probe_thing.first"] == probe.things()[0].id
    assert begun - set(made) == {"probe_thing.second"}


def test_a_local_state_has_each_resource_at_once_only_on_terraform(chain: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "second", times=1, hang=True))
    process = chain.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: len(server.requests("create")) == 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)
    state = chain.folder / "terraform.tfstate"
    text = state.read_text() if state.exists() else ""
    assert ('"first"' in text) != chain.runtime.is_opentofu
    chain.tf("plan", "-lock-timeout=0s")


def test_a_second_signal_ends_a_runtime_whose_provider_hangs(thing: modules.Module, probe: ProbeServer) -> None:
    process = signalled_twice(thing, probe, "hang")
    assert process.wait(30) == 1
    probe.wait_until(lambda server: not server.providers())


def test_a_runtime_whose_provider_is_stopped_outlives_a_second_signal(
    thing: modules.Module, probe: ProbeServer
) -> None:
    process = signalled_twice(thing, probe, "stop")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(5)
    process.kill()
    process.wait(30)
    assert len(probe.providers()) == 1


def signalled_twice(
    module: modules.Module, probe: ProbeServer, how: Literal["stop", "hang"]
) -> subprocess.Popen[bytes]:
    probe.add(Fault("create", "only", times=1, freeze=how))
    process = module.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: len(server.frozen()) == 1)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)
    return process


def test_the_provider_of_a_killed_runtime_ends_by_itself(thing: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "only", times=1, hang=True))
    process = thing.start("apply", "-auto-approve", "-json")
    probe.wait_until(lambda server: bool(server.requests("create")))
    assert len(probe.providers()) == 1
    process.kill()
    process.wait(30)
    probe.wait_until(lambda server: not server.providers())


def test_a_saved_plan_is_refused_after_another_apply(thing: modules.Module, probe: ProbeServer) -> None:
    thing.tf("plan", "-out=plan")
    thing.tf("apply", "-auto-approve")
    assert "stale" in thing.runtime.run("apply", "plan", folder=thing.folder, env=thing.env).stderr
    assert probe.created("only") == 1


def test_arguments_from_the_environment_have_effect(thing: modules.Module, probe: ProbeServer) -> None:
    thing.tf("apply", "-auto-approve")
    thing.env["TF_CLI_ARGS_plan"] = "-destroy"
    thing.tf("plan", "-out=plan")
    thing.tf("apply", "plan")
    assert probe.things() == []


def test_a_closed_output_pipe_kills_in_the_middle_of_an_apply(thing: modules.Module, probe: ProbeServer) -> None:
    probe.add(Fault("create", "only", times=1, hang=True))
    process = subprocess.Popen(
        [*thing.runtime.command, "apply", "-auto-approve", "-json"],
        cwd=thing.folder,
        env=thing.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    probe.wait_until(lambda server: bool(server.requests("create")))
    assert process.stdout is not None
    process.stdout.close()
    probe.release()
    assert process.wait(60) == -signal.SIGPIPE
    assert (thing.folder / ".terraform.tfstate.lock.info").exists()
    assert probe.names() == ["only"]
    assert "probe_thing" not in (thing.folder / "terraform.tfstate").read_text()
