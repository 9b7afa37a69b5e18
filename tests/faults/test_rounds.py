"""A few rounds of each kind; `make faults` plays 200 and 50. And: they notice what they are there to notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.faults import ci_runner, sigterm
from tests.faults.looks import misjournalled, unrecorded
from tests.faults.rounds import Ground, ground

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.testing.emulators import Emulator

A = {"physicalId": "a", "properties": {"x": 1}}
B = {"physicalId": "b", "properties": {"x": 1}}
CREATED_A = {"logicalId": "A", "changeType": "CREATE", "physicalId": "a"}
DELETED_B = {"logicalId": "B", "changeType": "DELETE", "previousState": B}


@pytest.fixture
def shared(ministack: Emulator) -> Iterator[Ground]:
    with ground(ministack) as made:
        yield made


@pytest.mark.emulator
@pytest.mark.story
@pytest.mark.slow
def test_a_deploy_that_is_asked_to_stop_at_any_moment_leaves_a_whole_record_and_no_lock(shared: Ground) -> None:
    stopping = sigterm.stopping(shared)
    outcomes = [stopping.play(seed) for seed in (1, 2, 3)]
    assert [outcome.problems for outcome in outcomes] == [(), (), ()]


@pytest.mark.emulator
@pytest.mark.story
@pytest.mark.slow
def test_a_deploy_that_a_ci_runner_cancels_leaves_no_lock(shared: Ground) -> None:
    cancelling = ci_runner.cancelling(shared)
    assert cancelling.play(2).problems == ()


@pytest.mark.parametrize(
    ("operations", "problem"),
    [
        ([CREATED_A, DELETED_B], ""),
        ([CREATED_A], "the journal says nothing of B, the records say DELETE"),
        ([CREATED_A, DELETED_B, CREATED_A], "the journal tells of a resource twice"),
        ([{**CREATED_A, "physicalId": "c"}, DELETED_B], "the journal calls A c, not a"),
        ([CREATED_A, {**DELETED_B, "previousState": A}], "the journal does not hold B as it was"),
        (
            [CREATED_A, DELETED_B, {**DELETED_B, "logicalId": "C"}],
            "the journal says DELETE of C, the records say nothing",
        ),
        ([CREATED_A, DELETED_B, {**DELETED_B, "leftover": True}], ""),
    ],
)
def test_a_journal_is_held_against_the_records(operations: list[dict[str, Any]], problem: str) -> None:
    journal = {"segments": [{"operations": []}, {"operations": operations}]}
    found = misjournalled(journal, {"resources": {"B": B}}, {"resources": {"A": A}})
    assert found == ([problem] if problem else [])


def test_what_exists_is_held_against_the_record() -> None:
    held = {"queues": ["http://host/1/a", "http://host/1/b"], "targets": ["rule x"]}
    assert unrecorded(held, ["http://other/1/a"]) == ["not recorded: http://host/1/b (queues)"]
