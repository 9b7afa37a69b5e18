"""Walks a graph: starts each node the moment the last one it needs is done, on a bounded crew of threads.

The walk itself runs in the caller's thread and only schedules. A node that fails either stops the walk (nothing new
starts, what is in flight finishes) or only holds back what needs it. Crew threads are daemons: one that hangs in a
call can never keep the process from ending.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from stackhold.ports.engine import Stop

Node = TypeVar("Node", bound=Hashable)
Work = Callable[[Node, Callable[[], None]], None]
"""Does one node; its second argument lets those that need it start before it returns."""

_LOOK_SECONDS: Final = 0.1
"""How often a waiting walk looks whether it should stop."""


class Crew:
    """Daemon threads that take jobs in turn; they are made when needed, up to `size`."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = 0
        self._busy = 0
        self._lock = threading.Lock()

    def start(self, job: Callable[[], None]) -> None:
        """Queue a job, which must not raise."""
        with self._lock:
            self._busy += 1
            is_short = self._busy > self._threads and self._threads < self._size
            if is_short:
                self._threads += 1
                number = self._threads
        self._jobs.put(job)
        if is_short:
            threading.Thread(target=self._take_jobs, name=f"operation-{number}", daemon=True).start()

    def has_room(self) -> bool:
        """Whether a job would start at once."""
        with self._lock:
            return self._busy < self._size

    def dismiss(self) -> None:
        """Let idle threads end; those with a job end after it."""
        with self._lock:
            threads = self._threads
        for _ in range(threads):
            self._jobs.put(None)

    def _take_jobs(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._busy -= 1


@dataclass(slots=True)
class Walked(Generic[Node]):
    """How a walk ended. Every node is in exactly one of these."""

    done: list[Node] = field(default_factory=list)
    """In the order in which they ended."""
    failed: dict[Node, Exception] = field(default_factory=dict)
    not_started: list[Node] = field(default_factory=list)
    """Held back by a failure, or by the stop."""
    in_flight: set[Node] = field(default_factory=set)
    """Given up: their threads may still be at it."""

    @property
    def is_complete(self) -> bool:
        """Every node is done."""
        return not (self.failed or self.not_started or self.in_flight)


class _Report(Enum):
    """What a thread says of its node."""

    RELEASED = "its dependents may start"
    ENDED = "done, or failed"
    NOT_BEGUN = "its turn came when nothing may start any more"


class _Walk(Generic[Node]):
    """One walk's bookkeeping. Only `_run` is called in other threads; they report through `_ended`.

    A job may lie in the crew's queue for long: it asks once more, in its thread, whether it may still start.
    """

    def __init__(
        self,
        needs: Mapping[Node, Collection[Node]],
        work: Work[Node],
        *,
        crew: Crew,
        may_start: Callable[[Walked[Node]], bool],
    ) -> None:
        self._work = work
        self._crew = crew
        self._may_start = may_start
        self._left = {node: {need for need in needs[node] if need in needs and need != node} for node in needs}
        self._needed_by: dict[Node, list[Node]] = {}
        for node, left in self._left.items():
            for need in left:
                self._needed_by.setdefault(need, []).append(node)
        self._ready = deque(node for node, left in self._left.items() if not left)
        self._released: set[Node] = set()
        self._begun: set[Node] = set()
        self._ended: SimpleQueue[tuple[Node, _Report, Exception | None]] = SimpleQueue()
        self.flying: set[Node] = set()
        self.walked: Walked[Node] = Walked()

    def start_ready(self, is_instant: Callable[[Node], bool]) -> None:
        while self._ready and self._may_start(self.walked):
            node = self._ready.popleft()
            self.flying.add(node)
            if is_instant(node):
                self._run(node)
            else:
                self._crew.start(functools.partial(self._run, node))

    def take_report(self) -> bool:
        """Wait a moment for a node to end or to let its dependents start; False when none did."""
        try:
            node, report, problem = self._ended.get(timeout=_LOOK_SECONDS)
        except Empty:
            return False
        if report is not _Report.RELEASED:
            self.flying.discard(node)
        if problem is not None:
            self.walked.failed[node] = problem
        elif report is not _Report.NOT_BEGUN:
            if report is _Report.ENDED:
                self.walked.done.append(node)
            self._release(node)
        return True

    def finish(self) -> Walked[Node]:
        walked = self.walked
        walked.in_flight = self.flying & self._begun
        ended = {*walked.done, *walked.failed, *walked.in_flight}
        walked.not_started = [node for node in self._left if node not in ended]
        return walked

    def _run(self, node: Node) -> None:
        self._begun.add(node)
        if not self._may_start(self.walked):
            self._begun.discard(node)
            self._ended.put((node, _Report.NOT_BEGUN, None))
            return
        problem: Exception | None = None
        try:
            self._work(node, lambda: self._ended.put((node, _Report.RELEASED, None)))
        except Exception as error:
            problem = error
        self._ended.put((node, _Report.ENDED, problem))

    def _release(self, node: Node) -> None:
        if node in self._released:
            return
        self._released.add(node)
        for dependent in self._needed_by.get(node, ()):
            self._left[dependent].discard(node)
            if not self._left[dependent]:
                self._ready.append(dependent)


def walk(
    needs: Mapping[Node, Collection[Node]],
    work: Work[Node],
    *,
    crew: Crew,
    stopping: Callable[[], Stop | None],
    goes_on: bool = False,
    is_instant: Callable[[Node], bool] = lambda node: False,
    is_held: Callable[[], bool] = lambda: False,
) -> Walked[Node]:
    """Do every node after those it needs (needs outside of the graph count as done).

    `goes_on`: after a failure, what does not need the failed one is still done. Instant nodes are done in this
    thread. Nothing starts while the walk is held, which a node may bring about before its failure is reported.
    Returns when nothing is in flight, or when the stop is over and nothing more is reported: after a pause of the
    whole process the stop is over at once, while answers that came long ago are still to be read.
    """

    def may_start(walked: Walked[Node]) -> bool:
        return stopping() is None and not is_held() and (goes_on or not walked.failed)

    state = _Walk(needs, work, crew=crew, may_start=may_start)
    state.start_ready(is_instant)
    while state.flying:
        if state.take_report():
            state.start_ready(is_instant)
        elif (stop := stopping()) is not None and stop.is_over and not state.take_report():
            break
    return state.finish()


def near_needs(nodes: Collection[Node], needs: Mapping[Node, Collection[Node]]) -> dict[Node, set[Node]]:
    """For each node the nearest others among `nodes` that it needs, looking through those that are not."""
    found: dict[Node, set[Node]] = {}
    for node in nodes:
        near: set[Node] = set()
        seen = {node}
        ahead = list(needs.get(node, ()))
        while ahead:
            need = ahead.pop()
            if need in seen:
                continue
            seen.add(need)
            if need in nodes:
                near.add(need)
            else:
                ahead.extend(needs.get(need, ()))
        found[node] = near
    return found


def turned(needs: Mapping[Node, Collection[Node]]) -> dict[Node, set[Node]]:
    """The same graph the other way round: who needed a node must now come before it."""
    back: dict[Node, set[Node]] = {node: set() for node in needs}
    for node, before in needs.items():
        for need in before:
            if need in back:
                back[need].add(node)
    return back
