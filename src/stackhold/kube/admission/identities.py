"""Who may make an identity, and when it may go.

An identity makes the manager copy a Secret into other namespaces. So whoever chooses the Secret, or who gets the
copies, must be allowed to read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stackhold.kube.admission.request import mapping, same
from stackhold.kube.labels import selector_problems
from stackhold.kube.policy import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackhold.kube.admission.request import Reads, Request

_CHOICES = ("secretRef", "allowedNamespaces")


def of_identity(request: Request, reads: Reads) -> Iterator[Problem]:
    """Everything that is wrong with a new or changed identity."""
    new, old = mapping(request.new, "spec"), mapping(request.old, "spec")
    if all(same(new.get(field), old.get(field)) for field in _CHOICES):
        return
    for place, said in selector_problems(mapping(new, "allowedNamespaces", "selector")):
        yield Problem(f"spec.allowedNamespaces.selector.{place}", said)
    secret = mapping(new, "secretRef")
    namespace, name = str(secret.get("namespace") or ""), str(secret.get("name") or "")
    if not namespace or not name:
        yield Problem("spec.secretRef", "needs a name and a namespace")
    elif not reads.may_get_secret(request.requester, namespace=namespace, name=name):
        yield Problem("spec.secretRef", f'user "{request.requester.name}" may not get Secret {namespace}/{name}')


def of_deleted_identity(request: Request, reads: Reads) -> Iterator[Problem]:
    """Why an identity may not be deleted: a destroy still needs the credentials."""
    user = reads.user_of_identity(request.name)
    if user is not None:
        yield Problem("metadata", f"{user} still uses it")
    mirrored = cast("Sequence[str]", mapping(request.old, "status").get("namespaces") or ())
    if mirrored:
        yield Problem("status.namespaces", f"it is still mirrored to {', '.join(mirrored)}")
