"""The status of one object during one pass: what the pass wants to say is gathered, and written once at its end.

The patch holds only what changed, so a pass that found nothing new writes nothing. It names the version of the object
that was read, because the list of conditions is replaced as a whole.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackhold.kube.conditions import merge, read_conditions, ready, transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackhold.kube.condition_reasons import Type
    from stackhold.kube.conditions import Condition, Transition
    from stackhold.kube.names import Kind
    from stackhold.model.instant import Instant


@dataclass(slots=True)
class StatusDraft:
    """What one pass has to say."""

    document: Mapping[str, Any]
    """The object as it was read."""
    _said: dict[Type, Condition] = field(default_factory=dict, init=False)
    _fields: dict[str, Any] = field(default_factory=dict, init=False)

    @property
    def before(self) -> Mapping[str, Any]:
        """The status as it was read."""
        return self.document.get("status") or {}

    def say(self, *conditions: Condition | None) -> None:
        """Put conditions in; a later one of a type goes over an earlier one, and None says nothing."""
        self._said |= {each.type: each for each in conditions if each is not None}

    def put(self, name: str, value: object) -> None:
        """Set a field of the status as a whole; None takes it away."""
        self._fields[name] = value

    def conditions(self) -> dict[Type, Condition]:
        """How the conditions stand with what was said so far."""
        return read_conditions(self.before.get("conditions") or ()) | self._said

    def sum_up(self, kind: Kind, *, is_provisioned: bool) -> None:
        """Say what `Ready` makes of everything that was said."""
        self.say(ready(kind, self.conditions(), is_provisioned=is_provisioned))

    def transitions(self) -> list[Transition]:
        """What changed and is worth an event."""
        return transitions(read_conditions(self.before.get("conditions") or ()), self._said.values())

    def after(self, now: Instant) -> dict[str, Any]:
        """The status as it is to be."""
        kept = {name: value for name, value in self.before.items() if name not in self._fields}
        status = copy.deepcopy(kept | {name: value for name, value in self._fields.items() if value is not None})
        if self._said:
            generation = int((self.document.get("metadata") or {}).get("generation") or 0)
            listed = self.before.get("conditions") or []
            status["conditions"] = merge(listed, self._said.values(), generation=generation, now=now)
        return status

    def patch(self, now: Instant) -> dict[str, Any] | None:
        """The merge patch for the status subresource; None when there is nothing to write."""
        changes = merge_patch(self.before, self.after(now))
        if not changes:
            return None
        version = (self.document.get("metadata") or {}).get("resourceVersion")
        return {**({"metadata": {"resourceVersion": version}} if version else {}), "status": changes}


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What a JSON merge patch has to say to make one document of another that holds no nulls."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            inner = merge_patch(old, value)
            if inner:
                patch[name] = inner
        elif name not in before or old != value:
            patch[name] = value
    return patch
