"""Walking a graph: every node once, after its needs; failures, stops, and the two ways to turn a graph."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from stackhold.engines.cloudformation.walk import Crew, near_needs, turned, walk
from stackhold.model.run import StopCause
from stackhold.ports.engine import Stop

if TYPE_CHECKING:
    from collections.abc import Callable


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, set[int]]:
    count = draw(st.integers(1, 15))
    return {node: set(draw(st.lists(st.integers(0, node - 1), max_size=4))) if node else set() for node in range(count)}


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(1, 8), st.sets(st.integers(0, 14), max_size=3))
def test_every_node_ends_once_after_its_needs_and_only_what_needs_a_failed_one_is_held_back(
    graph: dict[int, set[int]], size: int, failing: set[int]
) -> None:
    seen: list[int] = []
    lock = threading.Lock()

    def work(node: int, release: Callable[[], None]) -> None:
        with lock:
            seen.append(node)
        if node in failing:
            raise ValueError(node)

    crew = Crew(size)
    walked = walk(graph, work, crew=crew, stopping=lambda: None, goes_on=True)
    crew.dismiss()
    assert len(seen) == len(set(seen))
    assert sorted([*walked.done, *walked.failed, *walked.not_started]) == sorted(graph)
    assert set(walked.failed) <= failing
    assert all(need in walked.done for node in walked.done for need in graph[node])
    assert all(not graph[node] <= set(walked.done) for node in walked.not_started)


def test_without_going_on_nothing_starts_after_a_failure() -> None:
    def work(node: str, release: Callable[[], None]) -> None:
        if node == "a":
            raise ValueError(node)

    walked = walk({"a": (), "b": ("a",), "c": ("b",)}, work, crew=Crew(1), stopping=lambda: None)
    assert list(walked.failed) == ["a"]
    assert walked.not_started == ["b", "c"]


def test_a_stop_that_is_over_leaves_what_hangs_in_flight() -> None:
    hang = threading.Event()
    stop = Stop(StopCause.SIGTERM, is_over=True)
    stops: list[Stop] = []

    def work(node: str, release: Callable[[], None]) -> None:
        stops.append(stop)
        hang.wait(20)

    walked = walk({"a": ()}, work, crew=Crew(1), stopping=lambda: stops[0] if stops else None)
    hang.set()
    assert walked.in_flight == {"a"}
    assert not walked.is_complete


def test_what_is_reported_just_after_a_stop_is_over_still_counts() -> None:
    answered = threading.Event()

    def stopping() -> Stop | None:
        if threading.current_thread() is not threading.main_thread():
            return None
        if not looked:
            looked.append(True)
            return None
        answered.set()
        return Stop(StopCause.STOOD_DOWN, is_over=True)

    looked: list[bool] = []
    walked = walk({"a": set()}, lambda _node, _release: _wait(answered), crew=Crew(1), stopping=stopping)
    assert walked.done == ["a"]
    assert not walked.in_flight


def _wait(answered: threading.Event) -> None:
    answered.wait(10)


def test_a_stop_keeps_what_waits_for_a_free_thread_from_starting() -> None:
    began, go_on = threading.Event(), threading.Event()
    stops: list[Stop] = []

    def work(node: str, release: Callable[[], None]) -> None:
        began.set()
        go_on.wait(20)

    def stop() -> None:
        began.wait(20)
        stops.append(Stop(StopCause.SIGTERM, is_over=False))
        go_on.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    wide: dict[str, tuple[str, ...]] = {"a": (), "b": (), "c": ()}
    walked = walk(wide, work, crew=Crew(1), stopping=lambda: stops[0] if stops else None, goes_on=True)
    stopper.join()
    assert walked.done == ["a"]
    assert walked.not_started == ["b", "c"]
    assert not walked.in_flight


def test_what_never_got_a_thread_is_not_in_flight_when_the_stop_is_over() -> None:
    began, hang = threading.Event(), threading.Event()

    def work(node: str, release: Callable[[], None]) -> None:
        began.set()
        hang.wait(20)

    over = Stop(StopCause.SIGTERM, is_over=True)
    walked = walk({"a": (), "b": ()}, work, crew=Crew(1), stopping=lambda: over if began.is_set() else None)
    hang.set()
    assert walked.in_flight == {"a"}
    assert walked.not_started == ["b"]


def test_a_failure_keeps_what_waits_for_a_free_thread_from_starting() -> None:
    held = threading.Event()

    def work(node: str, release: Callable[[], None]) -> None:
        held.set()
        raise ValueError(node)

    walked = walk({"a": (), "b": ()}, work, crew=Crew(1), stopping=lambda: None, is_held=held.is_set)
    assert list(walked.failed) == ["a"]
    assert walked.not_started == ["b"]


def test_a_cycle_ends_the_walk_instead_of_hanging_it() -> None:
    walked = walk({"a": ("b",), "b": ("a",)}, lambda node, release: None, crew=Crew(1), stopping=lambda: None)
    assert walked.not_started == ["a", "b"]


@given(graphs())
def test_a_graph_turned_twice_is_itself(graph: dict[int, set[int]]) -> None:
    assert turned(turned(graph)) == graph


def test_needs_are_seen_through_what_is_not_in_the_graph() -> None:
    needs = {"c": {"b"}, "b": {"a"}, "d": {"c", "b"}}
    assert near_needs(["a", "c", "d"], needs) == {"a": set(), "c": {"a"}, "d": {"a", "c"}}
