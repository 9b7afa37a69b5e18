"""How a run stops: every row of the guarded run's table, with real processes and real signals."""

from __future__ import annotations

import contextlib
import fcntl
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.stories.scene import wait_until
from tests.stories.slow_chain import NAMES, STACK, Chain, chain_in

from stackhold.testing.proxy import Answer, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.stories.scene import Running, Scene

pytestmark = [pytest.mark.emulator, pytest.mark.story]

SIGNALS = [
    pytest.param(signal.SIGINT, 130, id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
]


@pytest.fixture
def chain(scene: Scene) -> Iterator[Chain]:
    with chain_in(scene) as made:
        yield made


def test_a_run_that_finishes_exits_0_and_leaves_neither_lock_nor_journal(chain: Chain) -> None:
    result = chain.deploy("--json").finish()
    assert result.code == 0
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "succeeded"
    assert chain.in_cloud() == chain.recorded() == set(NAMES)
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    assert not chain.has("rollback-journal.json")


@pytest.mark.parametrize(("signum", "code"), SIGNALS)
def test_a_first_signal_lets_calls_in_flight_finish_and_starts_nothing_new(
    chain: Chain, signum: signal.Signals, code: int
) -> None:
    held = chain.hold()
    running = chain.deploy("--json")
    held.wait_reached()
    running.signal(signum)
    stopping = chain.wait_told("stopping")
    assert stopping["data"]["cause"] == signum.name
    assert chain.scene.lock(STACK) is not None
    held.release()
    result = running.finish()

    assert result.code == result.json()["exitCode"] == code
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "interrupted"
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 2
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    segment = chain.stored("rollback-journal.json")["segments"][-1]
    assert segment["reason"] == "interrupted"
    assert {each["logicalId"] for each in segment["operations"]} == {"First", "Second"}
    assert f"stopped by {signum.name}" in result.err
    assert "Run the same deploy again" in result.err
    chain.converges()
    assert not chain.has("rollback-journal.json")


@pytest.mark.parametrize(
    ("flags", "code", "left"),
    [pytest.param([], 1, set(), id="rolled-back"), pytest.param(["--no-rollback"], 2, {"First"}, id="no-rollback")],
)
def test_a_failed_step_exits_1_when_all_went_back_and_2_when_it_was_left(
    chain: Chain, flags: list[str], code: int, left: set[str]
) -> None:
    refusal = Answer(400, code="ValidationException", reason="no such thing here")
    chain.proxy.add(Rule(service="ssm", operation="PutParameter", skip=1, times=1, answer=refusal))
    result = chain.deploy(*flags, "--json").finish()

    assert result.code == code
    assert result.json()["outcome"] == chain.last_run()["outcome"] == "failed"
    assert "no such thing here" in result.err
    assert chain.in_cloud() == chain.recorded() == left
    assert chain.scene.lock(STACK) is None
    assert chain.has("rollback-journal.json") is bool(left)
    chain.converges()


def test_a_deadline_stops_as_a_signal_does_and_is_reported_as_a_deadline(chain: Chain) -> None:
    held = chain.hold()
    running = chain.deploy("--deadline", "3", "--lock-timeout", "1")
    held.wait_reached()
    assert chain.wait_told("stopping")["data"]["cause"] == "deadline"
    held.release()
    result = running.finish()

    assert result.code == 124
    assert "the deadline (3 s, from --deadline) passed; not everything was done" in result.err
    assert "interrupted" not in result.out + result.err
    assert chain.last_run()["outcome"] == "deadline-exceeded"
    assert chain.last_run()["exitCode"] == 124
    assert chain.in_cloud() == chain.recorded() == {"First", "Second"}
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 2
    assert chain.scene.lock(STACK) is None
    assert not chain.has("run.json")
    assert chain.stored("rollback-journal.json")["segments"][-1]["reason"] == "deadline"
    chain.converges()


def stop_by_interrupt(running: Running) -> None:
    running.signal(signal.SIGINT)


def wait_for_the_deadline(_: Running) -> None:
    """Nothing to do."""


@pytest.mark.parametrize(
    ("flags", "stop", "code", "outcome"),
    [
        pytest.param([], stop_by_interrupt, 130, "interrupted", id="SIGINT"),
        pytest.param(
            ["--deadline", "3", "--lock-timeout", "1"], wait_for_the_deadline, 124, "deadline-exceeded", id="deadline"
        ),
    ],
)
def test_when_the_grace_runs_out_calls_in_flight_become_intents_that_the_next_run_carries_on(
    chain: Chain, flags: list[str], stop: Callable[[Running], None], code: int, outcome: str
) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy("--grace", "4", *flags)
    held.wait_reached()
    stop(running)
    chain.wait_told("stopping")
    result = running.finish(timeout=6)

    assert result.code == code
    assert chain.last_run()["outcome"] == outcome
    assert chain.recorded() == {"First"}
    assert chain.scene.lock(STACK) is None
    left = chain.stored("run.json")["intents"]
    assert [(each["logicalId"], each["kind"], each["name"]) for each in left] == [("Second", "create", "chain-second")]
    assert {each["logicalId"]: each.get("status") for each in journal_of(chain)} == {"First": None, "Second": "unknown"}

    held.release()
    again = chain.scene.run("deploy", "chain.yaml", "--json")
    assert chain.in_cloud() == chain.recorded() == set(NAMES)
    warning = next(each for each in again.json()["warnings"] if "did not settle" in each)
    assert "Second (create chain-second)" in warning
    assert warning in again.err
    assert "Second" in {each["logicalId"] for each in chain.stored("run.json")["intents"]}


def test_a_ci_runner_that_kills_after_ten_seconds_finds_the_run_over_in_time(chain: Chain) -> None:
    held = chain.hold()
    running = chain.deploy("--grace", "8")
    held.wait_reached()
    running.signal(signal.SIGINT)
    result = running.finish(timeout=7.5)
    assert result.code == 130
    assert chain.recorded() == {"First"}
    assert chain.scene.lock(STACK) is None
    assert [each["logicalId"] for each in chain.stored("run.json")["intents"]] == ["Second"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process_at_once_and_releases_the_lock_if_it_can(
    chain: Chain, signum: signal.Signals
) -> None:
    held = chain.hold()
    running = chain.deploy()
    held.wait_reached()
    running.signal(signum)
    chain.wait_told("stopping")
    running.signal(signum)
    result = running.finish(timeout=5)

    assert result.code == 130
    assert unlock_command(chain) in result.err
    assert chain.scene.lock(STACK) is None
    assert chain.recorded() <= {"First"}
    assert {each["logicalId"] for each in chain.stored("run.json")["intents"]} == set(NAMES)


def test_a_second_signal_does_not_wait_for_a_store_that_hangs_and_the_printed_command_clears_the_lock(
    chain: Chain,
) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy()
    held.wait_reached()
    chain.wait_told("operation-done")
    running.signal(signal.SIGTERM)
    chain.wait_told("stopping")
    with busy_store(chain):
        running.signal(signal.SIGINT)
        result = running.finish(timeout=5)

    assert result.code == 130
    assert "the lock may still be there" in result.err
    assert chain.scene.lock(STACK) is not None
    assert chain.recorded() == {"First"}
    held.release()
    command = result.err.strip().splitlines()[-1].split()
    assert command[0] == "stackhold"
    chain.scene.run(*command[1:], "--yes")
    assert chain.scene.lock(STACK) is None
    assert "did not settle" in chain.scene.run("deploy", "chain.yaml").out
    assert chain.in_cloud() == chain.recorded() == set(NAMES)


def test_a_killed_run_leaves_its_lock_which_expires_and_is_taken_over_with_a_warning(chain: Chain) -> None:
    held = chain.hold(drop="before")
    running = chain.deploy("--lock-ttl", "6s", "--lock-renew", "1s")
    held.wait_reached()
    wait_until(lambda: chain.recorded() == {"First"}, "the save of the first")
    running.signal(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL
    held.release()

    lock = chain.scene.lock(STACK)
    assert lock is not None
    assert lock["owner"].endswith(f":{running.process.pid}")
    assert chain.recorded() == {"First"}
    assert {each["logicalId"] for each in chain.stored("run.json")["intents"]} == set(NAMES)
    assert chain.last_run().get("outcome") is None
    refused = chain.scene.run("deploy", "chain.yaml", "--lock-timeout", "0", expect=1)
    assert lock["owner"] in refused.err

    again = chain.scene.run("deploy", "chain.yaml", "--lock-timeout", "30s", "--json")
    assert again.json()["waitedMs"] > 0
    warnings = " ".join(again.json()["warnings"])
    assert f"took over the lock of {lock['owner']} (deploy)" in warnings
    assert "Second (create chain-second)" in warnings
    assert f"took over the lock of {lock['owner']}" in again.err
    assert chain.in_cloud() == chain.recorded() == set(NAMES)
    assert chain.scene.lock(STACK) is None


def test_a_run_that_lost_its_lock_starts_nothing_new_and_names_the_holder(chain: Chain) -> None:
    first, second = chain.hold(), chain.hold(skip=3)
    loser = chain.deploy("--lock-ttl", "60s", "--lock-renew", "1s", "--json")
    first.wait_reached()
    wait_until(lambda: chain.recorded() == {"First"}, "the save of the first")
    loser.signal(signal.SIGSTOP)
    assert "running on this very host" in chain.scene.run("force-unlock", STACK, "--yes").err
    winner = chain.deploy("--json")
    second.wait_reached()
    lock = chain.scene.lock(STACK)
    assert lock is not None
    loser.signal(signal.SIGCONT)
    wait_until(lambda: any(told_of(run, "stopping") for run in chain.runs()), "the loss to be noticed")
    first.release()
    lost = loser.finish()

    assert lost.code == 1
    assert lost.json()["outcome"] == "lock-lost"
    assert lost.json()["holder"] == lock["owner"]
    assert f"{lock['owner']} holds it now" in lost.err
    assert chain.proxy.count(service="ssm", operation="PutParameter") == 4
    assert chain.stored("state.json")["lockId"] == lock["id"]
    held_now = chain.scene.lock(STACK)
    assert held_now is not None
    assert held_now["id"] == lock["id"]
    second.release()
    won = winner.finish()
    assert won.code == 0
    assert chain.in_cloud() == chain.recorded() == set(NAMES)
    assert chain.stored("state.json")["lockId"] == lock["id"]


def unlock_command(chain: Chain) -> str:
    """The command that clears this stack's lock, as it must be printed."""
    return f"stackhold force-unlock {STACK} --region us-east-1 --state {chain.scene.state}"


@contextlib.contextmanager
def busy_store(chain: Chain) -> Iterator[None]:
    """Another process writes to the stack's folder, and takes its time."""
    with chain.scene.file(STACK, ".lock").open("rb") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def told_of(run: dict[str, Any], kind: str) -> bool:
    """Whether a run's log has an event of a kind."""
    return any(each["kind"] == kind for each in run.get("events", []))


def journal_of(chain: Chain) -> list[dict[str, Any]]:
    """The operations of the journal's last segment."""
    operations: list[dict[str, Any]] = chain.stored("rollback-journal.json")["segments"][-1]["operations"]
    return operations
