"""A holder that was paused past its expiry overwrites nothing, and says who came after it."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.stories.both_stores import SHORT, STACK, Landed, owner_of
from tests.stories.scene import wait_until

from stackhold.testing.proxy import Rule, SlowProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.stories.both_stores import Line, Watched

pytestmark = [pytest.mark.emulator, pytest.mark.story, pytest.mark.slow]


@pytest.fixture
def other(line: Line) -> Iterator[SlowProxy]:
    """A second proxy before the same emulator, for the run that comes after."""
    with SlowProxy(line.scene.emulator.url) as proxy:
        yield proxy


def paused_after_first(line: Line) -> Watched:
    """A deploy that is paused when its first parameter is made, before it learns so: made, and in no record."""
    line.warm()
    landed = Landed()
    line.proxy.add(Rule(service="ssm", operation="PutParameter", times=1, after=landed.hold))
    first = line.deploy(*SHORT, "--json", by=line.proxy)
    landed.wait(first)
    line.pause(first)
    landed.release()
    assert line.objects.held()["owner"] == owner_of(first)
    return first


def test_a_holder_that_wakes_after_another_run_has_finished_overwrites_nothing(line: Line) -> None:
    first = paused_after_first(line)
    second = line.deploy("--lock-timeout", "50s", made="two").finish()
    assert second.code == 0, second.err
    assert f"took over the lock of {owner_of(first)}" in second.out + second.err
    left = {name: line.objects.read(name) for name in ("state.json", "lock.json", "run.json")}
    assert left["lock.json"] is None

    first.running.signal(signal.SIGCONT)
    woken = first.finish()
    assert woken.code == 1
    successor = line.objects.runs()[-1]["owner"]
    assert f"the lock was lost; nobody holds it now; {successor} ran since" in woken.err
    assert "line-first-one" in woken.err
    assert {name: line.objects.read(name) for name in left} == left
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.in_cloud() >= {"line-first-two", "line-second-two"}
    assert "line-second-one" not in line.in_cloud()
    told = next(run for run in line.objects.runs() if run["owner"] == owner_of(first))
    assert (told["outcome"], told["exitCode"]) == ("lock-lost", 1)
    assert "line-first-one" in str(told["warnings"]) + str(told["summary"])


def test_a_holder_that_wakes_while_another_run_works_names_it_and_lets_it_work(line: Line, other: SlowProxy) -> None:
    first = paused_after_first(line)
    held = other.add(Rule(service="ssm", operation="PutParameter", skip=1, times=1, hold=threading.Event()))
    second = line.deploy("--lock-timeout", "50s", made="two", by=other)
    second.wait_caught(held)
    wait_until(lambda: line.objects.recorded() == {"First": "line-first-two"}, "the second run's save")
    before = line.objects.held()
    assert before["owner"] == owner_of(second)

    first.running.signal(signal.SIGCONT)
    woken = first.finish()
    assert woken.code == woken.json()["exitCode"] == 1
    assert woken.json()["outcome"] == "lock-lost"
    assert woken.json()["holder"] == owner_of(second)
    assert "line-first-one" in woken.err
    assert f"the lock was lost; {owner_of(second)} holds it now" in woken.err
    assert line.objects.held()["id"] == before["id"]
    assert line.objects.recorded() == {"First": "line-first-two"}

    held.release()
    result = second.finish()
    assert result.code == 0, result.err
    assert line.objects.recorded() == {"First": "line-first-two", "Second": "line-second-two"}
    assert line.objects.lock() is None
    again = line.scene.run("deploy", "line.yaml", "--parameter", "Made=two", "--json").json()
    assert (again["isEmpty"], again["stack"]) == (True, STACK)
