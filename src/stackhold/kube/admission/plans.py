"""Who may approve a plan, and which plans still can be: what the definition's rules cannot see.

`clusterctl move` creates plans anew as the one who moves, approved ones among them: a plan that is over is taken with
whoever approved it, since nothing comes of it; one that is not counts as approved by the one who creates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.kube.admission.request import mapping
from stackhold.kube.names import Label
from stackhold.kube.policy import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackhold.kube.admission.request import Request
    from stackhold.model.values import JsonMap

_OVER = frozenset({"Applied", "Superseded", "Failed"})
_LABEL = f"metadata.labels[{Label.PLAN_PHASE}]"


def of_plan(request: Request, manager: str) -> Iterator[Problem]:
    """Everything that is wrong with a new or changed plan."""
    is_manager = request.requester.name == manager
    if request.old:
        yield from _of_changed(request, is_manager=is_manager)
    else:
        yield from _of_created(request, is_manager=is_manager)


def _of_created(request: Request, *, is_manager: bool) -> Iterator[Problem]:
    phase, approved = _phase(request.new), _is_approved(request.new)
    if is_manager or phase in _OVER:
        return
    if approved:
        yield from _of_approver(request)
    if phase not in (None, "Pending") and not (phase == "Approved" and approved):
        yield Problem(_LABEL, f"{phase} is for the manager to set")


def _of_changed(request: Request, *, is_manager: bool) -> Iterator[Problem]:
    before = _phase(request.old)
    if _phase(request.new) != before and not is_manager:
        yield Problem(_LABEL, "is for the manager to change")
    if not _is_approved(request.new) or _is_approved(request.old):
        return
    if before in _OVER:
        yield Problem("spec.approved", f"the plan is over ({before}) and cannot be approved any more")
    yield from _of_approver(request)


def _of_approver(request: Request) -> Iterator[Problem]:
    """The field names who approved, not who claims to have."""
    name = request.requester.name
    if mapping(request.new, "spec").get("approvedBy") != name:
        yield Problem("spec.approvedBy", f"must be {name!r}, the user who approves")


def _phase(plan: JsonMap) -> object:
    return mapping(plan, "metadata", "labels").get(Label.PLAN_PHASE)


def _is_approved(plan: JsonMap) -> bool:
    return mapping(plan, "spec").get("approved") is True
