"""The conditions of an object: which there are, which reasons each may have, and what `Ready` makes of them.

A reason belongs to a condition and has one status there, so a condition is made from its type and its reason and cannot
contradict itself. Waiting is `Unknown`; what needs somebody, or went wrong, is `False`. A condition's time moves when
its status does and not when only its reason or its words change. Nothing here decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stackhold.errors import Bug
from stackhold.kube.condition_reasons import REASONS, ConditionReason, Status, Type
from stackhold.kube.names import Kind
from stackhold.kube.times import second_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackhold.model.instant import Instant

LONGEST_MESSAGE: Final = 32_768


_NEGATIVE: Final = frozenset({Type.DELETING, Type.DRIFT_DETECTED, Type.DELETION_BLOCKED})
"""Those of which `True` is the bad one."""

_BEFORE_PROVISIONED: Final = (
    Type.DEPENDENCIES_READY,
    Type.IDENTITY_ALLOWED,
    Type.CREDENTIALS_MIRRORED,
    Type.RUNNER_RBAC_READY,
    Type.APPLY_JOB_SUCCEEDED,
    Type.STATE_READABLE,
    Type.OUTPUTS_VALID,
    Type.INFRASTRUCTURE_HEALTHY,
    Type.DELETING,
)
_PROVISIONED: Final = (Type.INFRASTRUCTURE_HEALTHY, Type.DELETING)
_PROVISIONED_POOL: Final = (Type.INFRASTRUCTURE_HEALTHY, Type.APPLY_JOB_SUCCEEDED, Type.DELETING)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition. Made by `condition`."""

    type: Type
    status: Status
    reason: ConditionReason
    message: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it stands as nobody wants it to. Being paused is neither good nor bad."""
        if self.type is Type.PAUSED:
            return False
        return self.status is (Status.TRUE if self.type in _NEGATIVE else Status.FALSE)


@dataclass(frozen=True, slots=True)
class Transition:
    """A condition that came to stand otherwise than before, or for another reason."""

    before: Condition | None
    after: Condition


def condition(type_: Type, reason: ConditionReason, message: str = "") -> Condition:
    """A condition with the status that its reason stands for."""
    status = REASONS[type_].get(reason)
    if status is None:
        raise Bug(f"{type_.value} has no reason {reason.value}")
    return Condition(type_, status, reason, message)


def read_conditions(documents: Iterable[Mapping[str, Any]]) -> dict[Type, Condition]:
    """The conditions of a status that are ours, as far as they can be understood."""
    found: dict[Type, Condition] = {}
    for each in documents:
        type_, status, reason = each.get("type"), each.get("status"), each.get("reason")
        if type_ in set(Type) and status in set(Status) and reason in set(ConditionReason):
            known = Condition(Type(type_), Status(status), ConditionReason(reason), each.get("message") or "")
            found[known.type] = known
    return found


def merge(
    documents: Sequence[Mapping[str, Any]], wanted: Iterable[Condition], *, generation: int, now: Instant
) -> list[dict[str, Any]]:
    """The conditions of a status with these put in; those of others, and what these do not name, stay as they are."""
    merged = {each.get("type", ""): dict(each) for each in documents}
    for each in wanted:
        merged[each.type.value] = _document(each, merged.get(each.type.value), generation=generation, now=now)
    return list(merged.values())


def transitions(before: Mapping[Type, Condition], after: Iterable[Condition]) -> list[Transition]:
    """What is worth an event: a new status or reason, and of a condition that is new only a bad one."""
    found: list[Transition] = []
    for each in after:
        old = before.get(each.type)
        is_told = each.is_bad if old is None else (old.status, old.reason) != (each.status, each.reason)
        if is_told:
            found.append(Transition(old, each))
    return found


def ready(kind: Kind, conditions: Mapping[Type, Condition], *, is_provisioned: bool) -> Condition:
    """The one condition that Cluster API reads.

    After the infrastructure has once been there, only its health counts, so that a failed change does not make it look
    lost; a pool, which is changed all the time, shows a failed one. What has not been said yet is unknown, except that
    an object of which nobody says so is not being deleted.
    """
    bad: list[str] = []
    open_: list[str] = []
    for type_ in _summed(kind, is_provisioned=is_provisioned):
        found = conditions.get(type_)
        if found is None:
            open_ += [] if type_ is Type.DELETING else [f"{type_.value}: not known yet"]
        elif found.is_bad:
            bad.append(_line(found))
        elif found.status is Status.UNKNOWN:
            open_.append(_line(found))
    if bad:
        return condition(Type.READY, ConditionReason.NOT_READY, "; ".join(bad))
    return condition(Type.READY, ConditionReason.READY_UNKNOWN if open_ else ConditionReason.READY, "; ".join(open_))


def _summed(kind: Kind, *, is_provisioned: bool) -> tuple[Type, ...]:
    if not is_provisioned:
        return _BEFORE_PROVISIONED
    return _PROVISIONED_POOL if kind is Kind.MACHINE_POOL else _PROVISIONED


def _line(of: Condition) -> str:
    return f"{of.type.value}: {of.reason.value}" + (f": {of.message}" if of.message else "")


def _document(of: Condition, before: Mapping[str, Any] | None, *, generation: int, now: Instant) -> dict[str, Any]:
    is_same = before is not None and before.get("status") == of.status.value and before.get("lastTransitionTime")
    return {
        "type": of.type.value,
        "status": of.status.value,
        "reason": of.reason.value,
        "message": of.message[:LONGEST_MESSAGE],
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if before is not None and is_same else second_time(now),
    }
