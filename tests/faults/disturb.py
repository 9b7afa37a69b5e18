"""The faults: what happens to the command, or to its request, at a point."""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from tests.faults.points import label
from tests.faults.stage import COMMAND_SECONDS, Ended, kill

from stackhold.testing.proxy import Answer, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.points import Point
    from tests.faults.stage import Stage
    from tests.faults.zygote import Command

    from stackhold.testing.aws_requests import Named
    from stackhold.testing.http_messages import Message
    from stackhold.testing.proxy import Call

Fault = Literal[
    "kill-before",
    "kill-after",
    "kill-answered",
    "drop-answer",
    "error-500",
    "throttle",
    "late",
    "sigterm2",
    "deadline",
]
FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)
KILLS: Final[tuple[Fault, ...]] = ("kill-before", "kill-after", "kill-answered")
OTHERS: Final[tuple[Fault, ...]] = tuple(fault for fault in FAULTS if fault not in KILLS)
DEADLINE_SECONDS: Final = 6
_FLAGS: Final[dict[Fault, tuple[str, ...]]] = {
    "deadline": ("--deadline", f"{DEADLINE_SECONDS}s", "--grace", "2s", "--lock-timeout", "0"),
}


@dataclass
class Disturbance:
    """One fault at one point of one command."""

    stage: Stage
    fault: Fault
    point: Point
    _command: Command | None = None
    _is_started: threading.Event = field(default_factory=threading.Event)
    _began: float = 0.0

    def run(self, args: tuple[str, ...], *, seed: int) -> tuple[Ended, Rule]:
        """Run the command with the fault; its end, and the rule, which may still hold a request back."""
        rule = self._rule()
        self.stage.proxy.add(rule)
        if seed:
            self.stage.proxy.add(shuffled(seed))
        self._began = time.monotonic()
        self._command = self.stage.start(*args, *_FLAGS.get(self.fault, ()))
        self._is_started.set()
        if self.fault == "late":
            while not rule.reached.wait(0.01) and not self._command.ended.is_set():
                pass
            if rule.caught:
                kill(self._command)
        return self.stage.end(self._command), rule

    def _rule(self) -> Rule:
        def is_it(named: Named, message: Message) -> bool:
            return label(named, message) == self.point.label

        made: dict[Fault, Callable[[], Rule]] = {
            "kill-before": lambda: Rule(before=self._kill, drop="before"),
            "kill-after": lambda: Rule(after=self._kill, drop="after"),
            "kill-answered": lambda: Rule(answered=self._kill),
            "drop-answer": lambda: Rule(drop="after"),
            "error-500": lambda: Rule(answer=Answer(500, "InternalFailure", "said the proxy")),
            "throttle": lambda: Rule(answer=Answer(400, "ThrottlingException", "slow down")),
            "late": lambda: Rule(hold=threading.Event()),
            "sigterm2": lambda: Rule(before=self._ask_twice),
            "deadline": lambda: Rule(before=self._outlast),
        }
        rule = made[self.fault]()
        rule.when, rule.skip, rule.times = is_it, self.point.occurrence, 1
        return rule

    def _started(self) -> Command:
        self._is_started.wait(COMMAND_SECONDS)
        assert self._command is not None
        return self._command

    def _kill(self, _: Call) -> None:
        kill(self._started())

    def _ask_twice(self, _: Call) -> None:
        """The second signal ends the process while the request is on its way; it is carried out all the same."""
        command = self._started()
        command.signal(signal.SIGTERM)
        command.ended.wait(0.1)
        command.signal(signal.SIGTERM)
        command.ended.wait(COMMAND_SECONDS)

    def _outlast(self, _: Call) -> None:
        """The request is carried out when the deadline has just passed."""
        command = self._started()
        left = self._began + DEADLINE_SECONDS + 0.2 - time.monotonic()
        command.ended.wait(max(left, 0.0))


def shuffled(seed: int) -> Rule:
    """Lets requests that run side by side arrive in an order that the seed decides."""

    def pause(call: Call) -> None:
        # The label, not the number, so that a replay pauses the same requests.
        time.sleep((hash_of(f"{seed} {call.label}") % 16) / 1000)

    return Rule(before=pause)


def hash_of(text: str) -> int:
    """A hash that is the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
