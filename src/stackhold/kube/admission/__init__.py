"""The validating webhook's answers: an AdmissionReview with a request in, one with a response out.

The definitions' own rules come first at the API server; here is said what they cannot see: who asks, what an image or
a variable may be called, what a template may not become, and a Job policy with the whole story. A refusal names
everything that is wrong at once. Nothing here does I/O: what must be looked up goes through `Reads`, and when that
raises there is no answer, so that the webhook's failure policy decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackhold.kube.admission import identities, plans, templates, workspaces
from stackhold.kube.admission.request import Reads, Request, Requester, parse
from stackhold.kube.names import GROUP, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackhold.kube.policy import Problem
    from stackhold.model.values import JsonMap

__all__ = ["Reads", "Request", "Requester", "review"]

_INVALID, _FORBIDDEN = 422, 403
_TEMPLATES = {f"{kind.value}Template": kind for kind in Kind}


def review(document: JsonMap, *, manager: str, reads: Reads) -> JsonMap:
    """Answer one AdmissionReview. `manager` is the user name that the manager itself has at the API server.

    Raises `InputError` for a document that is no review.
    """
    request = parse(document)
    found = tuple(_problems(request, manager, reads))
    response: dict[str, object] = {"uid": request.uid, "allowed": not found}
    if found:
        response["status"] = _status(request, found)
    if warnings := _warnings(request):
        response["warnings"] = list(warnings)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _problems(request: Request, manager: str, reads: Reads) -> Iterable[Problem]:
    """What keeps the request from being done; a kind that is not ours is none of our business."""
    is_deletion = request.operation == "DELETE"
    if request.kind in _TEMPLATES:
        return () if is_deletion else templates.of_template(request, _TEMPLATES[request.kind])
    if request.kind == "TerraformPlan":
        return () if is_deletion else plans.of_plan(request, manager)
    if request.kind == "TerraformClusterIdentity":
        deleted, written = identities.of_deleted_identity, identities.of_identity
        return (deleted if is_deletion else written)(request, reads)
    if request.kind not in set(Kind):
        return ()
    kind = Kind(request.kind)
    return workspaces.of_deletion(request, kind, reads) if is_deletion else workspaces.of_object(request, kind, manager)


def _warnings(request: Request) -> Sequence[str]:
    kind = _TEMPLATES.get(request.kind)
    return () if kind is None or request.operation != "CREATE" else templates.warnings_of_template(request, kind)


def _status(request: Request, found: Sequence[Problem]) -> JsonMap:
    """As the API server itself refuses: a deletion is forbidden, an object invalid, with every problem told."""
    is_deletion = request.operation == "DELETE"
    what = "cannot be deleted" if is_deletion else "is invalid"
    said = "; ".join(problem.message if is_deletion else str(problem) for problem in found)
    return {
        "code": _FORBIDDEN if is_deletion else _INVALID,
        "reason": "Forbidden" if is_deletion else "Invalid",
        "message": f'{request.kind} "{request.name}" {what}: {said}',
        "details": {
            "group": GROUP,
            "kind": request.kind,
            "name": request.name,
            "causes": [{"field": each.path, "message": each.message} for each in found],
        },
    }
