"""A writer's client of the model's cloud: checks, sends, and waits for an answer that may never come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.model_protocol.cloud import Call, Cloud, Verb, unknown
from tests.model_protocol.store import Fate

from stackhold.errors import StoodDown

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.model_protocol.referee import Referee
    from tests.model_protocol.writers import Writer

    from stackhold.testing.turns import Stage


@dataclass(slots=True, eq=False)
class CloudRequest:
    """A call on its way, as players put it to the stage."""

    call: Call
    fate: Fate = Fate.DONE
    is_answer: bool = False
    arrives_at: int = 0
    """Not before."""
    is_sending: bool = False
    """Its sender stands still between its last check and sending."""

    @property
    def writer(self) -> Writer:
        """Who sent it."""
        return self.call.sender


@dataclass(frozen=True, slots=True)
class CloudClient:
    """One writer's."""

    stage: Stage
    cloud: Cloud
    referee: Referee
    writer: Writer
    budget_ms: int
    latest_ms: int
    freezes: Callable[[], bool] = lambda: False
    """Whether this call meets a freeze between the check and sending."""

    def begin_operation(self) -> None:
        """A new operation begins: none may once the run has been told to begin nothing."""
        if self.writer.has_seen_stop:
            self.referee.complain(f"{self.writer.name} began an operation after it had been told to stop")

    def call(self, verb: Verb, name: str, *, check: Callable[[], None] = lambda: None) -> bool:
        """Make a call; what a look saw, or whether there was such a thing. Raises `OutcomeUnknown`."""
        try:
            check()
        except StoodDown:
            self.writer.has_stood_down = True
            raise
        call = Call(verb, name, self.writer, self.stage.now, self.budget_ms, self.latest_ms)
        self.referee.started(call)
        if self.freezes():
            call.is_frozen = self.cloud.has_frozen = True
            self.stage.send(CloudRequest(call, is_sending=True))
            call.started_at = self.stage.now
        self.cloud.flying.append(call)
        request = CloudRequest(call)
        self.stage.send(request)
        found = self._arrive(request)
        self.stage.send(CloudRequest(call, fate=Fate.ANSWER, is_answer=True))
        if found is None or request.fate is Fate.ANSWER_LOST or self.stage.now > call.started_at + self.budget_ms:
            raise unknown(call)
        return found

    def _arrive(self, request: CloudRequest) -> bool | None:
        call, age = request.call, self.stage.now - request.call.started_at
        if request.fate is Fate.REQUEST_LOST or age > call.latest_ms:
            self.cloud.flying.remove(call)
            return None
        if request.fate is Fate.LATE:
            return None
        self.cloud.flying.remove(call)
        if age <= self.budget_ms:
            self.referee.landed(call)
        return self.cloud.apply(call)
