"""A few requests of each operation, killed; `make faults` kills at every one of them.

Also: the bench notices what it is there to notice.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from tests.faults.bench import Bench
from tests.faults.points import Point
from tests.faults.stage import Ended, Stage, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.disturb import Fault

    from stackhold.testing.emulators import Emulator

pytestmark = [pytest.mark.emulator, pytest.mark.story]
SEED = 1


@pytest.fixture
def on(ministack: Emulator) -> Iterator[Stage]:
    with stage(ministack) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "fault", "count"),
    [
        ("deploy", "kill-after", 2),
        ("update", "kill-before", 1),
        ("update", "kill-after", 1),
        ("destroy", "kill-answered", 2),
        ("rollback", "kill-after", 1),
    ],
)
def test_the_next_run_sets_right_what_a_killed_one_left(on: Stage, name: str, fault: Fault, count: int) -> None:
    bench = Bench(on, name, "serverless", fault, SEED)
    bench.rehearse()
    chosen = random.Random(f"{SEED} {name} {fault}").sample(bench.points[10:], count)
    assert bench.play(chosen) == []


class Untidy(Stage):
    """A stage on which every destroy leaves a queue behind."""

    def run(self, *args: str) -> Ended:
        """Run a command, and spoil it."""
        if args[0] == "destroy":
            self.client("sqs").create_queue(QueueName="nobody")
        return super().run(*args)


def test_the_bench_sees_what_nobody_recorded(on: Stage) -> None:
    untidy = Untidy(on.emulator, on.proxy, on.zygote, on.folder)
    bench = Bench(untidy, "deploy", "serverless", "drop-answer", SEED)
    bench.rehearse()
    failures = bench.play([Point("dynamodb:CreateTable Orders", 0)])
    assert any("nobody" in problem for problem in failures[0].problems)
    assert "--point 'dynamodb:CreateTable Orders #0'" in failures[0].replay
