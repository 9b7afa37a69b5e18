"""A cloud in memory for tests of the engine: one service, `fake`, whose things are made, read, changed and deleted.

`CreateThing`, `GetThing`, `UpdateThing` and `DeleteThing` take a `Name`; a thing has `Properties`. Tests script it:
refuse a call, lose its answer before or after it was carried out, hold it until told, make a thing slow to become
active. `log` has every call as it was carried out.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.errors import AwsError, OutcomeUnknown
from stackhold.model.ids import Region
from stackhold.ports.aws import Aws, Resend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_REAL_SECONDS = 20.0


@dataclass(slots=True)
class Thing:
    """One thing that exists."""

    properties: dict[str, Any]
    number: int
    polls_left: int = 0


@dataclass(slots=True)
class Gate:
    """Holds a call until `open` is set; `reached` is set when a call waits at it."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def wait_reached(self) -> None:
        """Block until a call is held here; raises `TimeoutError` when none comes."""
        if not self.reached.wait(_REAL_SECONDS):
            raise TimeoutError("no call has reached the gate")

    def open(self) -> None:
        """Let it go on."""
        self.opened.set()

    def hold(self) -> None:
        """Called by the cloud: wait here."""
        self.reached.set()
        if not self.opened.wait(_REAL_SECONDS):
            raise TimeoutError("the gate was never opened")


@dataclass(frozen=True, slots=True)
class _Script:
    """What happens to one call in place of, or around, its normal course."""

    error: Exception
    is_after: bool = False


class FakeCloud:
    """An `Aws` that keeps everything in memory. Thread-safe."""

    def __init__(self, *, region: str = "eu-west-1", account: str = "123456789012") -> None:
        self.things: dict[str, Thing] = {}
        self.log: list[tuple[str, str]] = []
        """Operation and name of each call that was carried out, reads included."""
        self._region = Region(region)
        self._account = account
        self._scripts: defaultdict[tuple[str, str], deque[_Script]] = defaultdict(deque)
        self._gates: dict[tuple[str, str], Gate] = {}
        self._slow: dict[str, int] = {}
        self._lock = threading.RLock()
        self._numbers = 0
        self.most_at_once = 0
        self._at_once = 0

    @property
    def region(self) -> Region:
        """The region."""
        return self._region

    @property
    def partition(self) -> str:
        """`aws`."""
        return "aws"

    def account(self) -> str:
        """The account."""
        return self._account

    def guarded(self, check: Callable[[], None]) -> Aws:
        """The same cloud with a check before every call."""
        return _Guarded(self, check)

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """One page."""
        yield self.call(service, operation, params)

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """One call, in the course that the script gives it."""
        name = str(params.get("Name", ""))
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            gate = self._gates.get((operation, name))
            if gate is not None:
                gate.hold()
            with self._lock:
                waiting = self._scripts[operation, name]
                script = waiting.popleft() if waiting else None
                if script is not None and not script.is_after:
                    raise script.error
                answer = self._carry_out(operation, name, params)
                if script is not None:
                    raise script.error
                return answer
        finally:
            with self._lock:
                self._at_once -= 1

    def refuse(self, operation: str, name: str, *, code: str = "Denied", reason: str = "no", times: int = 1) -> None:
        """Refuse the next calls, before they do anything."""
        error = AwsError(service="fake", operation=operation, code=code, reason=reason, status=400)
        self._scripts[operation, name].extend([_Script(error)] * times)

    def lose(self, operation: str, name: str, *, is_carried_out: bool) -> None:
        """Lose the next call's answer, before or after it was carried out."""
        error = OutcomeUnknown(service="fake", operation=operation, reason="connection closed")
        self._scripts[operation, name].append(_Script(error, is_after=is_carried_out))

    def hold(self, operation: str, name: str) -> Gate:
        """Hold calls of this kind until the gate is opened."""
        gate = self._gates[operation, name] = Gate()
        return gate

    def make_slow(self, name: str, *, polls: int) -> None:
        """The thing of this name becomes active only after so many reads."""
        self._slow[name] = polls

    def changes(self) -> list[tuple[str, str]]:
        """The log without reads."""
        return [entry for entry in self.log if entry[0] != "GetThing"]

    def _carry_out(self, operation: str, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.log.append((operation, name))
        match operation:
            case "CreateThing":
                return self._create(name, params)
            case "UpdateThing":
                self._thing(operation, name).properties = dict(params["Properties"])
                return {}
            case "DeleteThing":
                self._thing(operation, name)
                del self.things[name]
                return {}
            case "GetThing":
                return self._get(name)
            case _:
                raise self._error(operation, "InvalidAction", f"there is no {operation}")

    def _create(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if name in self.things:
            raise self._error("CreateThing", "AlreadyExists", f"{name} exists")
        self._numbers += 1
        slow = next((polls for part, polls in self._slow.items() if part in name), 0)
        self.things[name] = Thing(dict(params["Properties"]), self._numbers, polls_left=slow)
        return {"Arn": f"arn:aws:fake:::thing/{name}", "Active": slow == 0}

    def _get(self, name: str) -> dict[str, Any]:
        thing = self._thing("GetThing", name)
        thing.polls_left = max(thing.polls_left - 1, 0)
        return {
            "Properties": dict(thing.properties),
            "Arn": f"arn:aws:fake:::thing/{name}",
            "Late": f"late-{name}",
            "Active": thing.polls_left == 0,
        }

    def _thing(self, operation: str, name: str) -> Thing:
        if name not in self.things:
            raise self._error(operation, "NotFound", f"there is no {name}")
        return self.things[name]

    def _error(self, operation: str, code: str, reason: str) -> AwsError:
        return AwsError(service="fake", operation=operation, code=code, reason=reason, status=400)


class _Guarded:
    def __init__(self, cloud: FakeCloud, check: Callable[[], None]) -> None:
        self._cloud = cloud
        self._check = check

    @property
    def region(self) -> Region:
        return self._cloud.region

    @property
    def partition(self) -> str:
        return self._cloud.partition

    def account(self) -> str:
        return self._cloud.account()

    def guarded(self, check: Callable[[], None]) -> Aws:
        return _Guarded(self._cloud, check)

    def pages(self, service: str, operation: str, params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self._check()
        return self._cloud.pages(service, operation, params)

    def call(
        self,
        service: str,
        operation: str,
        params: Mapping[str, Any],
        *,
        resend: Resend = Resend.SAFE,
        look: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        self._check()
        return self._cloud.call(service, operation, params, resend=resend)


if TYPE_CHECKING:
    _: type[Aws] = FakeCloud
