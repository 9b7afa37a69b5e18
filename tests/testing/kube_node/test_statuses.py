"""The status of a pod from the states of its containers, and how messages are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackhold.testing.kube_node.statuses import (
    Container,
    Running,
    Terminated,
    Waiting,
    cut_log,
    cut_message,
    ended,
    never_ran,
    phase,
    pod_status,
    share_of_message,
)

if TYPE_CHECKING:
    from stackhold.testing.kube_node.statuses import State

WAITING = Waiting("ContainerCreating")
RUNNING = Running("2026-01-01T00:00:00Z", "testnode://uid/name")


def end(code: int, message: str = "") -> Terminated:
    return ended(
        exit_code=code,
        message=message,
        started_at="2026-01-01T00:00:00Z",
        finished_at="2026-01-01T00:00:05Z",
        container_id="testnode://uid/name",
    )


def named(*states: State) -> list[Container]:
    return [Container(f"c{number}", "image", "image@sha256:0", state) for number, state in enumerate(states)]


@pytest.mark.parametrize(
    ("inits", "mains", "expected"),
    [
        ((), (WAITING,), "Pending"),
        ((), (RUNNING, WAITING), "Pending"),
        ((), (RUNNING, end(1)), "Running"),
        ((), (end(0), end(0)), "Succeeded"),
        ((), (end(0), end(143)), "Failed"),
        ((RUNNING,), (WAITING,), "Pending"),
        ((end(0), WAITING), (WAITING,), "Pending"),
        ((end(0),), (WAITING,), "Pending"),
        ((end(3),), (WAITING,), "Failed"),
        ((end(0),), (end(0),), "Succeeded"),
    ],
)
def test_the_phase_follows_from_the_containers(
    inits: tuple[State, ...], mains: tuple[State, ...], expected: str
) -> None:
    assert phase(named(*inits), named(*mains)) == expected


def test_a_container_that_never_ran_counts_as_killed_when_the_pod_is_over() -> None:
    assert never_ran(end(0)) == end(0)
    lost = never_ran(WAITING)
    assert isinstance(lost, Terminated)
    assert (lost.exit_code, lost.reason) == (137, "ContainerStatusUnknown")
    assert phase([], named(lost)) == "Failed"


def test_a_status_names_every_container_and_says_since_when_each_condition_is_so() -> None:
    since = {"Initialized": "i", "ContainersReady": "c", "Ready": "r"}
    status = pod_status(named(end(0)), named(RUNNING), started_at="s", since=since)
    assert (status["phase"], status["startTime"]) == ("Running", "s")
    assert {one["type"]: (one["status"], one["lastTransitionTime"]) for one in status["conditions"]} == {
        "Initialized": ("True", "i"),
        "ContainersReady": ("True", "c"),
        "Ready": ("True", "r"),
    }
    (main,) = status["containerStatuses"]
    assert (main["ready"], main["started"], main["state"]) == (
        True,
        True,
        {"running": {"startedAt": RUNNING.started_at}},
    )
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@given(st.binary(max_size=9000))
def test_a_message_keeps_its_end_and_at_most_4096_bytes(text: bytes) -> None:
    cut = cut_message(text)
    assert text.endswith(cut)
    assert len(cut) == min(len(text), 4096)


@given(st.integers(1, 9), st.integers(0, 5000))
def test_the_messages_of_a_pod_share_12288_bytes(containers: int, size: int) -> None:
    message = "m" * size
    states = [end(0, cut_message(message.encode()).decode()) for _ in range(containers)]
    since = {"Initialized": "", "ContainersReady": "", "Ready": ""}
    status = pod_status([], named(*states), started_at="", since=since)
    kept = [one["state"]["terminated"]["message"] for one in status["containerStatuses"]]
    assert sum(map(len, kept)) <= 12288
    assert kept == [message[: min(size, 4096, 12288 // containers)]] * containers


def test_a_share_that_ends_within_a_letter_is_still_text() -> None:
    assert share_of_message("é" * 5000, containers=5) == "é" * 1228 + "\ufffd"


def test_a_log_that_stands_for_a_message_is_its_last_80_lines_and_2048_bytes() -> None:
    assert cut_log(b"".join(b"%d\n" % number for number in range(200))).split()[0] == b"120"
    assert len(cut_log(b"x" * 5000)) == 2048
