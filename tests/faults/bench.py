"""Disturbs an operation at each of its requests, and looks whether the next run sets everything right.

For each point: the operation as a process with the fault there; then the same command undisturbed; where a request was
held back, that lands, and the command runs once more. Afterwards exactly what an undisturbed run leaves exists, all of
it is recorded and as recorded, nothing is left of the runs, and a destroy leaves nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from tests.faults.disturb import OTHERS, Disturbance, hash_of, shuffled
from tests.faults.looks import beyond, difference, unrecorded
from tests.faults.operations import Unprepared, operation
from tests.faults.points import STACK, Point, points_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.faults.disturb import Fault
    from tests.faults.stage import Ended, Stage

Unlocking = Literal["force", "expiry"]
_SHORT: Final = ("--lock-ttl", "8s", "--lock-renew", "1s")
_REFUSED_WHEN_DONE: Final = {
    "destroy": ("no stack ", "there is nothing to destroy"),
}
_LATE_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Failure:
    """A point at which something is not as it must be."""

    point: Point
    problems: tuple[str, ...]
    replay: str


@dataclass
class Bench:
    """One operation under one fault, or, with `None`, under another one at each point, as the seed has it."""

    stage: Stage
    name: str
    template: str
    fault: Fault | None
    seed: int = 1
    unlocking: Unlocking = "force"
    points: list[Point] = field(default_factory=list)
    unreached: int = 0

    def __post_init__(self) -> None:
        self._operation = operation(self.name, self.template, self.stage.folder)
        self._nothing: dict[str, list[str]] = {}
        self._want: dict[str, int] = {}
        self._recorded: set[str] = set()

    def rehearse(self) -> None:
        """Run it undisturbed: its points, and what it leaves. Raises `Unprepared`."""
        on = self.stage
        on.clear()
        self._nothing = on.held()
        self._operation.prepare(on)
        if self.seed:
            on.proxy.add(shuffled(self.seed))
        first = len(on.proxy.calls)
        ended = on.run(*self._operation.command)
        if ended.code:
            raise Unprepared(ended.told())
        self.points = points_of(on.proxy.calls[first:])
        self._want = self._count()
        self._recorded = set((on.stored("state.json") or {}).get("resources", {}))

    def play(self, points: Sequence[Point], *, tell: Callable[[str], None] = print) -> list[Failure]:
        """Disturb each point in turn."""
        failures = []
        for number, point in enumerate(points):
            began, unreached = time.monotonic(), self.unreached
            problems = self._played(point)
            if problems:
                failures.append(Failure(point, tuple(problems), self.replay(point)))
                tell(f"FAILURE at {point}:\n  " + "\n  ".join("\n".join(problems).splitlines()))
                tell(f"  replay: {failures[-1].replay}")
            spent = time.monotonic() - began
            verdict = "FAILED" if problems else "ok" if unreached == self.unreached else "ok, but not reached"
            fault = self.fault_at(point)
            tell(f"{number + 1}/{len(points)} {self.name} {fault} {point} {verdict} {spent:.1f} s")
        return failures

    def fault_at(self, point: Point) -> Fault:
        """What happens at a point."""
        return self.fault or OTHERS[hash_of(f"{self.seed} {self.name} {point}") % len(OTHERS)]

    def replay(self, point: Point) -> str:
        """The command that plays one point again."""
        return (
            f"python -m tests.faults --operation {self.name} --template {self.template} --fault {self.fault_at(point)}"
            f" --seed {self.seed} --unlocking {self.unlocking} --point '{point}'"
        )

    def _played(self, point: Point) -> list[str]:
        try:
            return self._play(point)
        except (TimeoutError, Unprepared) as error:
            return [str(error)]

    def _play(self, point: Point) -> list[str]:
        on, command, fault = self.stage, self._operation.command, self.fault_at(point)
        on.clear()
        self._operation.prepare(on)
        flags = _SHORT if self.unlocking == "expiry" else ()
        first, rule = Disturbance(on, fault, point).run((*command, *flags), seed=self.seed)
        if not rule.caught:
            self.unreached += 1
        problems = [first.told()] if "Traceback" in first.err else []
        ends = [self._again(command)]
        if fault == "late" and rule.caught:
            seen = next(call for call in on.proxy.calls if call.label == point.label and not call.status)
            rule.release()
            give_up = time.monotonic() + _LATE_SECONDS
            while not seen.status and time.monotonic() < give_up:
                time.sleep(0.01)
            ends.append(self._again(command))
        for ended in ends:
            if not self._is_well(ended):
                problems.append(f"after {point}: {ended.told()}")
        problems += self._looked()
        if problems:
            problems.append(f"the disturbed command: {first.told()}")
            problems += [f"then: {ended.told()}" for ended in ends]
        return problems

    def _is_well(self, ended: Ended) -> bool:
        """Whether a run came to a good end: also a destroy that finds all of it done already."""
        is_done = self.name in _REFUSED_WHEN_DONE and any(text in ended.err for text in _REFUSED_WHEN_DONE[self.name])
        return (ended.code == 0 or is_done) and "Traceback" not in ended.err

    def _again(self, command: tuple[str, ...]) -> Ended:
        """The next run, past the lock of the dead one."""
        if self.stage.stored("lock.json") is None:
            return self.stage.run(*command)
        if self.unlocking == "force":
            self.stage.run("force-unlock", STACK, "--yes")
            return self.stage.run(*command)
        return self.stage.run(*command, "--lock-timeout", "60s")

    def _looked(self) -> list[str]:
        """What is wrong now, and after a destroy."""
        problems = self._wrong()
        if self._recorded:
            drift = self.stage.run("drift", STACK)
            if drift.code:
                problems.append(drift.told())
            destroyed = self.stage.run("destroy", STACK, "--yes")
            if destroyed.code:
                problems.append(destroyed.told())
        left = difference(self._of_stack(), {})
        problems += [f"after a destroy there is still {what}" for what in left]
        if self.stage.stored("state.json") is not None:
            problems.append("after a destroy there is still a record")
        return problems

    def _wrong(self) -> list[str]:
        held = self._of_stack()
        problems = [f"there is {what}" for what in difference(held, self._want)]
        record = self.stage.stored("state.json") or {}
        resources = record.get("resources", {})
        if set(resources) != self._recorded:
            problems.append(f"recorded is {sorted(set(resources) ^ self._recorded)} otherwise than it should be")
        problems += unrecorded(held, [item["physicalId"] for item in resources.values()])
        if record.get("pendingDeletes"):
            problems.append(f"to be deleted yet: {record['pendingDeletes']}")
        if self.stage.stored("lock.json") is not None:
            problems.append("the lock is still there")
        return problems + self._left_in_run_file()

    def _left_in_run_file(self) -> list[str]:
        """Only what may still land may be left in it, and nothing once a lock has expired."""
        left = self.stage.stored("run.json")
        if left is None:
            return []
        entries = left.get("intents", [])
        kinds = [f"{item.get('kind')} {item.get('logicalId')}" for item in entries if not item.get("firstSeenAt")]
        if self.unlocking == "expiry" and entries:
            kinds = [f"{item.get('kind')} {item.get('logicalId')}" for item in entries]
        return [f"left in the run file: {', '.join(kinds)}"] if kinds else []

    def _count(self) -> dict[str, int]:
        return {kind: len(names) for kind, names in self._of_stack().items()}

    def _of_stack(self) -> dict[str, list[str]]:
        """What exists now and did not when nothing was done."""
        return beyond(self.stage.held(), self._nothing)
