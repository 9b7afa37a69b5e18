"""The cloud of the model: named things that come to be, change and go, by requests that take their time.

A request is carried out within its call budget, or late: after its sender gave up, at most `latest_ms` after it was
sent. Whether a call may start, and whether it was still ours when it landed, the referee judges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from stackhold.errors import OutcomeUnknown

if TYPE_CHECKING:
    from tests.model_protocol.writers import Writer


class Verb(Enum):
    """What a call asks for."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    LOOK = "look"


class Missing(Exception):
    """There is no such thing."""


@dataclass(slots=True)
class Call:
    """One call on its way."""

    verb: Verb
    name: str
    sender: Writer
    started_at: int
    budget_ms: int
    latest_ms: int
    is_frozen: bool = False
    """Its sender was frozen between its last check and sending: nothing is promised for it."""


@dataclass(slots=True)
class Thing:
    """Something that exists."""

    name: str
    is_promised: bool
    """Whether a run made it in time; other tools' things, and those of a frozen sender, are not promised."""
    updates: int = 0


@dataclass(slots=True)
class Cloud:
    """All things."""

    things: dict[str, Thing] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    gone_abroad: set[str] = field(default_factory=set)
    """Things that another tool deleted."""
    has_frozen: bool = False
    """Whether a call was sent by someone who stood still between its last check and sending."""
    flying: list[Call] = field(default_factory=list)
    """Calls that may still be carried out."""

    def apply(self, call: Call) -> bool:
        """Carry a call out; what a look saw, and otherwise whether there was such a thing."""
        found = self.things.get(call.name)
        match call.verb:
            case Verb.CREATE if found is None:
                self.things[call.name] = Thing(call.name, _is_promised(call))
                self.gone.discard(call.name)
            case Verb.UPDATE if found is not None:
                found.updates += 1
            case Verb.DELETE if found is not None:
                del self.things[call.name]
                self.gone.add(call.name)
                if call.sender.is_foreign:
                    self.gone_abroad.add(call.name)
            case _:
                pass
        return found is not None

    def is_flying(self, name: str, verb: Verb, *, now: int) -> bool:
        """Whether such a call may still land, and something is promised for it."""
        return any(
            _is_promised(call) and (call.name, call.verb) == (name, verb) and now - call.started_at <= call.latest_ms
            for call in self.flying
        )


def _is_promised(call: Call) -> bool:
    return not call.sender.is_foreign and not call.is_frozen


def unknown(call: Call) -> OutcomeUnknown:
    """The error of a call without an answer."""
    return OutcomeUnknown(service="model", operation=call.verb.value, reason="no answer")
